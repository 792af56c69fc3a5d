"""What sampling costs: the smallest batch, whose time is the host's, and the idle device, each with and without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from octopus_study.measure import Case, Row
from octopus_study.power.quantities import Watt
from octopus_study.power.selftest import SYSTEM_CLOCK, TimeSource
from octopus_study.power.session import PowerSession
from octopus_study.power.source import Sample, SensorError
from octopus_study.power.windows import Stretch, back_to_back
from octopus_study.studies.comparison import BASE
from octopus_study.studies.power.rows import HOST, IDLE

REPETITIONS = 5
_BUSY = Stretch(seconds=1.0, settle_seconds=0.3, tail_seconds=0.0)
_IDLE_SECONDS, _IDLE_REPETITIONS = 3.0, 3
_SETTLE_SECONDS, _LOOK_SECONDS, _PATIENCE_SECONDS = 2.0, 0.002, 2.0


def sampling_rows(
    case: Case, session: PowerSession, frame: Callable[[], object], clock: TimeSource = SYSTEM_CLOCK
) -> Iterator[Row]:
    """Yield a frame's time, and the idle power where a counter gives it, with and without the sampler.

    The two take turns, and the one that begins changes. Whatever ends it, the sampler reads again.
    """
    try:
        for block, how in _turns(session, REPETITIONS):
            window = back_to_back(frame, _BUSY, clock)
            yield case.row(f"{BASE}-{how}", HOST, "time_per_frame", "ms", window.frame_ms, block=block)
        if session.source.read().counter is not None:  # else nobody knows what is drawn while nobody reads
            yield from _idle_rows(case, session, clock)
    finally:
        session.sampler.resume()


def _turns(session: PowerSession, repetitions: int) -> Iterator[tuple[int, str]]:
    """Let the sampler read or wait; yield the block and which."""
    for block in range(repetitions):
        for sampled in (bool(block % 2), not block % 2):
            (session.sampler.resume if sampled else session.sampler.pause)()
            yield block, "sampled" if sampled else "unsampled"


def _idle_rows(case: Case, session: PowerSession, clock: TimeSource) -> Iterator[Row]:
    clock.sleep(_SETTLE_SECONDS)
    scope = session.source.scope
    for block, how in _turns(session, _IDLE_REPETITIONS):
        watts = _counted_power(session, clock).watts
        yield case.row(f"idle-{how}", IDLE, "power_mean", "W", watts, block=block, scope=scope)


def _counted_power(session: PowerSession, clock: TimeSource) -> Watt:
    """Return the mean power between two advances of the counter, some seconds apart, by two short looks at it."""
    first = _next_advance(session, clock)
    clock.sleep(_IDLE_SECONDS)
    last = _next_advance(session, clock)
    return Watt.from_counter(first.counter, last.counter, last.at_ns - first.at_ns)


def _next_advance(session: PowerSession, clock: TimeSource) -> Sample:
    first = session.source.read()
    end = clock.monotonic_ns() + round(_PATIENCE_SECONDS * 1e9)
    while clock.monotonic_ns() < end:
        clock.sleep(_LOOK_SECONDS)
        sample = session.source.read()
        if sample.counter != first.counter:
            return sample
    raise SensorError(f"the energy counter stood still for {_PATIENCE_SECONDS:g} s", "counter-agrees")
