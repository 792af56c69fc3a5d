"""Rounds of windows: in each every arm has one, and one in which the device was slowed down is thrown away whole."""

from __future__ import annotations

import logging
import math
import statistics
from dataclasses import dataclass, field

from octopus.measure import Case, Row, unavailable
from octopus.power.windows import Window
from octopus.studies.power_rows import ENERGY, Place

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
    windows : mapping of str to Window
        By arm.
    capped : mapping of str to float or None
        Share of the window in which the power cap held, by arm.
    """

    number: int
    windows: dict[str, Window]
    capped: dict[str, float | None]

    def capped_rows(self, place: Place) -> list[Row]:
        """The row of how long the power cap held, where the device tells."""
        share = self.capped[place.method]
        if share is None:
            return []
        return [
            place.case.row(
                place.method,
                place.layer,
                "power_capped",
                "fraction",
                share,
                block=place.block,
                answer=place.answer,
            )
        ]


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
    """

    least: int
    kept: list[Round] = field(default_factory=list)
    discarded: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def tried(self) -> int:
        """Rounds so far."""
        return len(self.kept) + len(self.discarded)

    @property
    def wanted(self) -> bool:
        """Whether another one is needed, and allowed."""
        return len(self.kept) < self.least and self.tried < self.least + SPARE_ROUNDS

    @property
    def too_few(self) -> str:
        """Why there are no numbers; empty where there are enough rounds."""
        if len(self.kept) >= self.least:
            return ""
        if not self.tried:
            return "no method was left to measure"
        return (
            f"{len(self.kept)} rounds are left of the {self.least} needed: {len(self.discarded)} were discarded, "
            f"throttled ({self.discarded[-1]})"
        )

    def add(self, found: Round, slowed: str) -> None:
        """Keep a round, or throw it away because of what slowed the device down."""
        if slowed:
            log.warning("round %d discarded: %s", found.number, slowed)
            self.discarded.append(slowed)
        else:
            self.kept.append(found)

    def frame_ms(self, name: str) -> float:
        """Median time of an arm's frame in milliseconds; infinite where there is none."""
        times = [each.windows[name].frame_ms for each in self.kept if name in each.windows]
        return statistics.median(times) if times else math.inf

    def discarded_row(self, case: Case, layer: str, readable: bool) -> Row:
        """Count the rounds that were thrown away, or say that this machine doesn't tell."""
        if not readable:
            return unavailable(
                case, ENERGY, layer, DISCARDED, "count", "throttling can't be read on this machine"
            )
        return case.row(ENERGY, layer, DISCARDED, "count", len(self.discarded))
