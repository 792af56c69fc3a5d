"""Clocks: how one run of a method is timed. The clock says which layer its values belong to."""

import time
from collections.abc import Callable
from typing import Protocol, runtime_checkable

LONG_MS = 50.0  # what a run finds cold takes up to half a millisecond: below 1 % of one that is as long as this


@runtime_checkable
class Clock(Protocol):
    """What :func:`octopus_study.measure.run_paired` needs of a clock. A clock may also have an attribute
    ``watches_throttling: bool``; False says that throttling can't be read on this machine, and the rows then say so
    instead of counting zero discarded blocks."""

    layer: str

    def time(self, run: Callable[[], object]) -> float:
        """Run once and return the elapsed milliseconds."""
        ...

    def settle(self) -> None:
        """Bring the machine to the state in which a block begins; not timed."""
        ...

    def throttled(self) -> str | None:
        """Say why the machine was slowed down at any time since the last call, or None."""
        ...


def _nothing() -> None:
    return None


class HostClock:
    """Wall time on the host, from submission to a synchronised result (layer ``host``, or ``pipelined`` and
    ``cold_start`` where the run is of that kind).

    On a CPU there is no cold or hot: a run finds the caches as the method before it in the block left them, and since
    the order is random in each block, every method meets every predecessor. `synchronize` waits for the device, before
    the start and, inside the timed part, after the run. `throttle` says why the machine was slowed down since its last
    call, or None; without one, that can't be read.

    A `warm` clock runs once before the timed run, so that the host's caches hold the method's own code and data, and
    the GPU has not fallen asleep behind a long method of the host: a call of 50 µs takes several times as long right
    after another method, which says more about that one. A first run of `LONG_MS` or more is the timed one itself.
    """

    def __init__(
        self,
        synchronize: Callable[[], object] | None = None,
        throttle: Callable[[], str | None] | None = None,
        layer: str = "host",
        warm: bool = False,
    ) -> None:
        self.layer = layer
        self.warm = warm
        self.synchronize = synchronize or _nothing
        self.throttle = throttle
        self.watches_throttling = bool(getattr(throttle, "readable", throttle is not None))

    def time(self, run: Callable[[], object]) -> float:
        """Return the milliseconds from the call of `run` to the end of the synchronisation after it."""
        if self.warm and (first := self._once(run)) >= LONG_MS:
            return first
        return self._once(run)

    def runs(self, elapsed_ms: float) -> int:
        """How often a method that takes so long is run for one time."""
        return 2 if self.warm and elapsed_ms < LONG_MS else 1

    def _once(self, run: Callable[[], object]) -> float:
        self.synchronize()
        start = time.perf_counter_ns()
        run()
        self.synchronize()
        return (time.perf_counter_ns() - start) / 1e6

    def settle(self) -> None:
        """Wait for the device, so that nothing of the block before runs into this one."""
        self.synchronize()

    def throttled(self) -> str | None:
        """Ask the watcher that the clock was made with."""
        return self.throttle() if self.throttle else None
