"""Rounds of windows: in each every arm has one, and one in which the device was slowed down is thrown away whole."""

from __future__ import annotations

import logging
import math
import statistics
from dataclasses import dataclass, field

from octopus_study.measure import Case, Row, unavailable
from octopus_study.studies.power.rows import ENERGY, Taken

log = logging.getLogger(__name__)

SPARE_ROUNDS = 3
DISCARDED = "discarded_blocks"


@dataclass(frozen=True)
class Round:
    """One window of each arm.

    Attributes
    ----------
    number : int
        The block of its rows.
    windows : dict of str to Taken
        By arm; an arm that raised, or that the sensor's end left out, has none.
    """

    number: int
    windows: dict[str, Taken] = field(default_factory=dict)


@dataclass
class Rounds:
    """The rounds of one layer: `least` are wanted, and some more are tried where any are thrown away.

    Attributes
    ----------
    least : int
    kept : list of Round
    discarded : list of str
        Why each of the others was thrown away.
    failed : dict
        Why an arm raised, by its name; it has no windows from then on, and those before are not used.
    lost : str
        Why nothing can be sampled any more; empty while the sampler runs.
    """

    least: int
    kept: list[Round] = field(default_factory=list)
    discarded: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    lost: str = ""

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

    def add(self, found: Round, slowed: str) -> None:
        """Keep a round, or throw it away because of what slowed the device down."""
        if slowed:
            log.warning("round %d discarded: %s", found.number, slowed)
            self.discarded.append(slowed)
        elif found.windows:
            self.kept.append(found)

    def of(self, name: str) -> list[tuple[int, Taken]]:
        """Return an arm's windows, each with the number of its round."""
        return [(each.number, each.windows[name]) for each in self.kept if name in each.windows]

    def why_none(self, name: str) -> str:
        """Return why an arm has no numbers; empty where it has some."""
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

    def frame_ms(self, name: str) -> float:
        """Median time of an arm's frame in milliseconds; infinite where there is none."""
        times = [taken.window.frame_ms for _, taken in self.of(name)]
        return statistics.median(times) if times else math.inf

    def discarded_row(self, case: Case, layer: str, readable: bool) -> Row:
        """Count the rounds that were thrown away, or say that this machine doesn't tell."""
        if not readable:
            return unavailable(
                case, ENERGY, layer, DISCARDED, "count", "throttling can't be read on this machine"
            )
        return case.row(ENERGY, layer, DISCARDED, "count", len(self.discarded))

    def _lacks_energies(self) -> bool:
        """Whether a sensor that failed for a moment left an arm with too few energies.

        An arm that never had one gets no further rounds: what keeps it from one is there to stay.
        """
        names = {name for each in self.kept for name in each.windows} - set(self.failed)
        known = (sum(taken.energy is not None for _, taken in self.of(name)) for name in names)
        return any(0 < energies < self.least for energies in known)
