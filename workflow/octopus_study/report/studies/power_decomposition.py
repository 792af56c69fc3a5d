"""Why one method needs less energy than another: energy ratio = time ratio x power ratio, window by window.

Energy per frame is time per frame times mean power, so the ratio of two energies is the product of two other ratios.
A table in which the power's ratio is always one has measured time twice; a table with a real power shows what each
factor does, and the two may work against each other.

There are as many windows as rounds, five or a few more. A percentile bootstrap of so few is far too narrow, since it
can't see beyond its smallest and largest sample; each window on the other hand is a mean over hundreds of frames, so
that the logarithms of its ratios are close to normal. The intervals here are therefore Student's t of the mean
logarithm, and the values are geometric means: the product of time and power ratio is the energy ratio exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from octopus.errors import InputError
from octopus_study.report.student import mean_interval

SAVES, COSTS, UNCLEAR = "saves", "costs", "unclear"
# By what energy, time and power do, whole intervals beyond the noise: one clause each.
SENTENCES = {
    (
        UNCLEAR,
        SAVES,
        COSTS,
    ): "no energy is saved beyond noise: a higher power takes back what the shorter time saves",
    (
        UNCLEAR,
        COSTS,
        SAVES,
    ): "no energy is saved beyond noise: a longer time takes back what the lower power saves",
    (SAVES, SAVES, UNCLEAR): "the saving of {energy} is all time",
    (SAVES, UNCLEAR, SAVES): "the saving of {energy} is all power",
    (SAVES, SAVES, COSTS): "time saves {time}, a higher power takes back {power}, which leaves {energy}",
    (
        SAVES,
        COSTS,
        SAVES,
    ): "a lower power saves {power}, a longer time takes back {time}, which leaves {energy}",
    (SAVES, SAVES, SAVES): "time saves {time}, a lower power another {power}, together {energy}",
    (COSTS, COSTS, UNCLEAR): "the extra {energy} is all time",
    (COSTS, UNCLEAR, COSTS): "the extra {energy} is all power",
    (COSTS, SAVES, COSTS): "time saves {time}, but a higher power costs {power}: {energy} more energy",
    (
        COSTS,
        COSTS,
        SAVES,
    ): "a lower power saves {power}, but a longer time costs {time}: {energy} more energy",
    (COSTS, COSTS, COSTS): "time costs {time}, a higher power another {power}, together {energy} more energy",
}
OTHERWISE = {
    UNCLEAR: "no difference in energy beyond noise",
    SAVES: "{energy} is saved, but neither time nor power alone differs beyond noise",
    COSTS: "{energy} more energy, but neither time nor power alone differs beyond noise",
}

Values = Sequence[float] | np.ndarray


class Ratio(NamedTuple):
    """A geometric mean ratio and its 95 % interval; the interval is NaN for a single window."""

    value: float
    low: float
    high: float

    def direction(self, noise: float = 0.0) -> str:
        """Return ``saves`` or ``costs`` where the whole interval lies beyond the noise, else ``unclear``."""
        if self.high < 1 / (1 + noise):
            return SAVES
        return COSTS if self.low > 1 + noise else UNCLEAR


class Floors(NamedTuple):
    """Differences that are seen where there are none, as fractions: of a method that was entered twice."""

    time: float
    power: float
    energy: float


NO_FLOORS = Floors(0.0, 0.0, 0.0)


class Decomposition(NamedTuple):
    """What makes the energy ratio of a method over another; below 1 the method needs less.

    Attributes
    ----------
    time, power, energy : Ratio
        Of time per frame, mean power, and energy per frame; ``energy.value == time.value * power.value``.
    windows : int
        Number of paired windows.
    """

    time: Ratio
    power: Ratio
    energy: Ratio
    windows: int

    @property
    def share_of_time(self) -> float:
        """Part of the logarithm of the energy ratio that is the time's: 1 where power is equal, above 1 where a
        higher power takes something back. NaN where the energy ratio does not differ from 1."""
        if self.energy.direction() == UNCLEAR:
            return math.nan
        return math.log(self.time.value) / math.log(self.energy.value)


def decompose(time: Values, energy: Values, other_time: Values, other_energy: Values) -> Decomposition:
    """Take the energy ratio of a method over another apart.

    Parameters
    ----------
    time, energy : array_like, shape (windows,)
        Time and energy per frame of the method; the unit cancels. Power is energy over time.
    other_time, other_energy : array_like, shape (windows,)
        Those of the other method; the same position is the same block (round).

    Raises
    ------
    InputError
        The lengths differ, there are no windows, or a value is not finite and positive.
    """
    times, energies = _paired_logs(time, other_time, "time"), _paired_logs(energy, other_energy, "energy")
    if times.size != energies.size:
        raise InputError(f"Each window has a time and an energy; found {times.size} and {energies.size}.")
    return Decomposition(*map(_ratio, (times, energies - times, energies)), windows=int(times.size))


def paired_ratio(values: Values, other: Values) -> Ratio:
    """Return the geometric mean of the ratios of paired windows with its interval; see :func:`decompose`."""
    return _ratio(_paired_logs(values, other, "value"))


def sentence(parts: Decomposition, noise: Floors = NO_FLOORS) -> str:
    """Say by rule where the difference in energy comes from: one clause, without a capital and without a full stop.

    A factor counts where its whole interval lies beyond its noise floor; percentages are of the other's energy, and
    what power adds is what it adds to the time that is left, so that the numbers of a sentence add up.

    Parameters
    ----------
    parts : Decomposition
    noise : Floors
    """
    if parts.windows < 2:
        return f"{parts.windows} window{'s' if parts.windows != 1 else ''} can't tell a difference from noise"
    energy, time, power = (
        getattr(parts, name).direction(getattr(noise, name)) for name in ("energy", "time", "power")
    )
    words = SENTENCES.get((energy, time, power), OTHERWISE[energy])
    effects = _effects(parts, power_first=(time, power) == (COSTS, SAVES))
    return words.format(**{name: _percent(effect) for name, effect in effects.items()})


def _effects(parts: Decomposition, power_first: bool) -> dict[str, float]:
    """Return by how much each changes the energy: the first factor from the whole, the second from what is left."""
    time, power, energy = parts.time.value, parts.power.value, parts.energy.value
    by_time, by_power = (energy - power, power - 1) if power_first else (time - 1, energy - time)
    return {"energy": energy - 1, "time": by_time, "power": by_power}


def _percent(effect: float) -> str:
    """Return the size of an effect; the sentence says whether it saves or costs."""
    percent = 100 * abs(effect)
    return f"{percent:.0f} %" if round(percent, 1) >= 10 else f"{percent:.1f} %"


def _paired_logs(values: Values, other: Values, name: str) -> np.ndarray:
    """Return log(values / other), shape (windows,)."""
    first, second = (np.asarray(array, dtype=np.float64).reshape(-1) for array in (values, other))
    if first.size != second.size or not first.size:
        raise InputError(
            f"Paired windows need the same blocks; the {name} has {first.size} and {second.size} of them."
        )
    both = np.concatenate((first, second))
    if not np.isfinite(both).all() or (both <= 0).any():
        raise InputError(f"The {name} of each window must be finite and positive, found {both}.")
    return np.log(first / second)


def _ratio(logs: np.ndarray) -> Ratio:
    return Ratio(*map(math.exp, mean_interval(logs)[:3]))
