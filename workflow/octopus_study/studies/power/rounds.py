"""Rounds of windows: in each every method has one; a round in which the device was slowed down is thrown away whole.

Heat and hardware brakes make a window a measurement of the room. The power cap is different: a board that a load drives
to its limit stays there, and a user of that load gets just that. Such a window is kept, since its time and its energy
are of the same stretch, and its rows say for how much of it the cap held.
"""

import logging
import math
import statistics
import time
from dataclasses import dataclass, field

from octopus_study.measure import Case, CpuThrottle, GpuThrottle, Row, _nvml, unavailable
from octopus_study.studies.power.rows import ENERGY, Taken

log = logging.getLogger(__name__)

SPARE_ROUNDS = 3
DISCARDED = "discarded_blocks"


@dataclass
class Rounds:
    """The rounds of one layer: `least` are wanted, and some more are tried where any are thrown away."""

    least: int
    # Why a method raised, by its name; it has no windows from then on, and those before are not used.
    failed: dict[str, str] = field(default_factory=dict)
    lost: str = ""  # why nothing can be sampled any more; empty while the sampler runs
    # By the number of the round, the block of its rows: one window per method. A method that raised, or that the
    # sensor's end left out, has none.
    kept: dict[int, dict[str, Taken]] = field(default_factory=dict)
    discarded: list[str] = field(default_factory=list)  # why each of the others was thrown away

    @property
    def tried(self) -> int:
        """Rounds so far."""
        return len(self.kept) + len(self.discarded)

    @property
    def wanted(self) -> bool:
        """Whether another one is needed, and allowed."""
        if self.lost or self.tried >= self.least + SPARE_ROUNDS:
            return False
        return len(self.kept) < self.least or self._lacks_energies()

    def add(self, number: int, windows: dict[str, Taken], slowed: str) -> None:
        """Keep a round, or throw it away because of what slowed the device down."""
        if slowed:
            log.warning("round %d discarded: %s", number, slowed)
            self.discarded.append(slowed)
        elif windows:
            self.kept[number] = windows

    def of(self, name: str) -> list[tuple[int, Taken]]:
        """Return a method's windows, each with the number of its round."""
        return [(number, windows[name]) for number, windows in self.kept.items() if name in windows]

    def why_none(self, name: str) -> str:
        """Return why a method has no numbers; empty where it has some."""
        if name in self.failed:
            return self.failed[name]
        if self.lost:
            return "" if self.of(name) else self.lost
        if len(self.kept) >= self.least:
            return ""
        return (
            f"{len(self.kept)} rounds are left of the {self.least} needed: {len(self.discarded)} were discarded, "
            f"throttled ({self.discarded[-1]})"
        )

    def too_slow(self, name: str, rate: float) -> str:
        """Return why a method can't keep a rate of frames per second, by these windows; empty if it can."""
        limit, times = 1e3 / rate, [taken.window.frame_ms for _, taken in self.of(name)]
        took = statistics.median(times) if times else math.inf
        if why := self.why_none(name):
            return why
        return "" if took < limit else f"one frame takes {took:.3g} ms; at {rate:g} frames/s there are {limit:.1f} ms"

    def discarded_row(self, case: Case, layer: str, readable: bool) -> Row:
        """Count the rounds that were thrown away, or say that this machine doesn't tell."""
        if not readable:
            reason = "throttling can't be read on this machine"
            return unavailable(case, ENERGY, layer, DISCARDED, "count", reason)
        return case.row(ENERGY, layer, DISCARDED, "count", len(self.discarded))

    def _lacks_energies(self) -> bool:
        """Whether a sensor that failed for a moment left a method with too few energies. A method that never had one
        gets no further rounds: what keeps it from one is there to stay."""
        names = {name for windows in self.kept.values() for name in windows} - set(self.failed)
        counts = (sum(taken.energy is not None for _, taken in self.of(name)) for name in names)
        return any(0 < energies < self.least for energies in counts)


_POWER_REASONS = ("power cap", "power limit")


class Watch:
    """Was the device slowed down during a window, and was it its power cap? Asked after each."""

    def __init__(self, throttle: GpuThrottle | CpuThrottle) -> None:
        self._throttle, self._is_gpu = throttle, isinstance(throttle, GpuThrottle)
        self.readable = throttle.readable
        self.restart()

    def restart(self) -> None:
        """Forget what was until now."""
        self._throttle()
        self._capped_ns, self._at_ns = self._lost_to_cap(), time.monotonic_ns()

    def slowed(self) -> str:
        """Say what but the power cap slowed the device down since the last call; empty when nothing did."""
        reasons = (self._throttle() or "").split(", ")
        return ", ".join(one for one in reasons if one and not one.startswith(_POWER_REASONS))

    def capped(self) -> float | None:
        """Return the share of the time since the last call in which the power cap held; None where it isn't told."""
        before, since = self._capped_ns, self._at_ns
        self._capped_ns, self._at_ns = self._lost_to_cap(), time.monotonic_ns()
        if before is None or self._capped_ns is None:
            return None
        return min(1.0, (self._capped_ns - before) / max(self._at_ns - since, 1))

    def _lost_to_cap(self) -> int | None:
        """Return for how long the power policy has held the clocks down, in nanoseconds since the driver was loaded."""
        if not self._is_gpu:
            return None
        status = _nvml.read("nvmlDeviceGetViolationStatus", "NVML_PERF_POLICY_POWER")
        return None if status is None else int(status.violationTime)
