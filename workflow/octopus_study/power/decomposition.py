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
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from octopus.errors import InputError

LEAST_WINDOWS = 2
_SAVES, _COSTS, _UNCLEAR = "saves", "costs", "unclear"


class Ratio(NamedTuple):
    """A geometric mean ratio and its 95 % interval; the interval is NaN for a single window."""

    value: float
    low: float
    high: float

    def direction(self, noise: float = 0.0) -> str:
        """Return ``saves`` or ``costs`` where the whole interval lies beyond the noise, else ``unclear``."""
        if self.high < 1 / (1 + noise):
            return _SAVES
        return _COSTS if self.low > 1 + noise else _UNCLEAR


@dataclass(frozen=True)
class Decomposition:
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
        if self.energy.direction() == _UNCLEAR:
            return math.nan
        return math.log(self.time.value) / math.log(self.energy.value)


def decompose(
    time: Sequence[float] | np.ndarray,
    energy: Sequence[float] | np.ndarray,
    other_time: Sequence[float] | np.ndarray,
    other_energy: Sequence[float] | np.ndarray,
    confidence: float = 0.95,
) -> Decomposition:
    """Take the energy ratio of a method over another apart.

    Parameters
    ----------
    time, energy : array_like, shape (windows,)
        Time and energy per frame of the method; the unit cancels. Power is energy over time.
    other_time, other_energy : array_like, shape (windows,)
        Those of the other method; the same position is the same block (round).
    confidence : float

    Returns
    -------
    Decomposition

    Raises
    ------
    InputError
        The lengths differ, there are no windows, or a value is not finite and positive.
    """
    times, energies = _paired_logs(time, other_time, "time"), _paired_logs(energy, other_energy, "energy")
    if times.size != energies.size:
        raise InputError(f"Each window has a time and an energy; found {times.size} and {energies.size}.")
    ratios = (_ratio(each, confidence) for each in (times, energies - times, energies))
    return Decomposition(*ratios, windows=int(times.size))


def paired_ratio(
    values: Sequence[float] | np.ndarray, other: Sequence[float] | np.ndarray, confidence: float = 0.95
) -> Ratio:
    """Return the geometric mean of the ratios of paired windows with its interval; see :func:`decompose`."""
    return _ratio(_paired_logs(values, other, "value"), confidence)


def sentence(found: Decomposition, noise: float = 0.0) -> str:
    """Say by rule where the difference in energy comes from.

    A factor counts where its whole interval lies beyond the noise floor; percentages are of the other's energy, and
    what power adds is what it adds to the time that is left, so that the numbers of a sentence add up.

    Parameters
    ----------
    found : Decomposition
    noise : float
        Difference that is seen where there is none, as a fraction (from a method that was entered twice).

    Returns
    -------
    str
        One clause, without a capital and without a full stop.
    """
    if found.windows < LEAST_WINDOWS:
        return f"{found.windows} window{'s' if found.windows != 1 else ''} can't tell a difference from noise"
    time, power, energy = (ratio.direction(noise) for ratio in (found.time, found.power, found.energy))
    if energy == _UNCLEAR:
        return _undecided(time, power)
    if energy == _SAVES:
        return _saving(found, time, power)
    return _extra(found, time, power)


def _undecided(time: str, power: str) -> str:
    if (time, power) == (_SAVES, _COSTS):
        return "no energy is saved beyond noise: a higher power takes back what the shorter time saves"
    if (time, power) == (_COSTS, _SAVES):
        return "no energy is saved beyond noise: a longer time takes back what the lower power saves"
    return "no difference in energy beyond noise"


def _saving(found: Decomposition, time: str, power: str) -> str:
    whole, by_time, by_power = _effects(found)
    match (time, power):
        case ("saves", "unclear"):
            return f"the saving of {-whole} is all time"
        case ("unclear", "saves"):
            return f"the saving of {-whole} is all power"
        case ("saves", "costs"):
            return f"time saves {-by_time}, a higher power takes back {by_power}, which leaves {-whole}"
        case ("costs", "saves"):
            by_time, by_power = _power_first(found)
            return (
                f"a lower power saves {-by_power}, a longer time takes back {by_time}, which leaves {-whole}"
            )
        case ("saves", "saves"):
            return f"time saves {-by_time}, a lower power another {-by_power}, together {-whole}"
    return f"{-whole} is saved, but neither time nor power alone differs beyond noise"


def _extra(found: Decomposition, time: str, power: str) -> str:
    whole, by_time, by_power = _effects(found)
    match (time, power):
        case ("costs", "unclear"):
            return f"the extra {whole} is all time"
        case ("unclear", "costs"):
            return f"the extra {whole} is all power"
        case ("saves", "costs"):
            return f"time saves {-by_time}, but a higher power costs {by_power}: {whole} more energy"
        case ("costs", "saves"):
            by_time, by_power = _power_first(found)
            return f"a lower power saves {-by_power}, but a longer time costs {by_time}: {whole} more energy"
        case ("costs", "costs"):
            return f"time costs {by_time}, a higher power another {by_power}, together {whole} more energy"
    return f"{whole} more energy, but neither time nor power alone differs beyond noise"


class _Percent(float):
    """A fraction that prints as percent, a negative one as what is missing from the whole."""

    def __neg__(self) -> _Percent:
        return _Percent(-float(self))

    def __str__(self) -> str:
        percent = 100 * float(self)
        return f"{percent:.0f} %" if round(abs(percent), 1) >= 10 else f"{percent:.1f} %"

    def __format__(self, specification: str) -> str:
        return str(self)


def _effects(found: Decomposition) -> tuple[_Percent, _Percent, _Percent]:
    """Return by how much energy, time, and power after time change the energy."""
    time, energy = found.time.value, found.energy.value
    return _Percent(energy - 1), _Percent(time - 1), _Percent(energy - time)


def _power_first(found: Decomposition) -> tuple[_Percent, _Percent]:
    """Return by how much time after power, and power, change the energy."""
    return _Percent(found.energy.value - found.power.value), _Percent(found.power.value - 1)


def _paired_logs(
    values: Sequence[float] | np.ndarray, other: Sequence[float] | np.ndarray, name: str
) -> np.ndarray:
    """Return log(values / other), shape (windows,)."""
    first, second = (np.asarray(each, dtype=np.float64).reshape(-1) for each in (values, other))
    if first.size != second.size or not first.size:
        raise InputError(
            f"Paired windows need the same blocks; the {name} has {first.size} and {second.size} of them."
        )
    both = np.concatenate((first, second))
    if not np.isfinite(both).all() or (both <= 0).any():
        raise InputError(f"The {name} of each window must be finite and positive, found {both}.")
    return np.log(first / second)


def _ratio(logs: np.ndarray, confidence: float) -> Ratio:
    mean = float(logs.mean())
    if logs.size < LEAST_WINDOWS:
        return Ratio(math.exp(mean), math.nan, math.nan)
    reach = t_quantile(confidence, logs.size - 1) * float(logs.std(ddof=1)) / math.sqrt(logs.size)
    return Ratio(math.exp(mean), math.exp(mean - reach), math.exp(mean + reach))


def t_quantile(confidence: float, freedom: int) -> float:
    """Return the two-sided quantile of Student's t: 2.776 for 95 % and four degrees of freedom.

    Bisection on :func:`t_probability`; the package has no other use for a library of distributions.

    Raises
    ------
    InputError
        The confidence is not between 0 and 1, or there is no degree of freedom.
    """
    if not 0 < confidence < 1 or freedom < 1:
        raise InputError(f"No quantile of Student's t for {confidence} and {freedom} degrees of freedom.")
    low, high = 0.0, 1.0
    while t_probability(high, freedom) < confidence:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if t_probability(middle, freedom) < confidence else (low, middle)
    return (low + high) / 2


def t_probability(t: float, freedom: int) -> float:
    """Return P(-t < T < t) of Student's t with a whole number of degrees of freedom.

    The finite series of Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.7.3 and 26.7.4.
    """
    angle = math.atan2(t, math.sqrt(freedom))
    odd, square = freedom % 2, math.cos(angle) ** 2
    term, total = 1.0, 0.0
    for index in range(freedom // 2):
        total += term
        step = 2 * index + 1 + odd
        term *= square * step / (step + 1)
    if not odd:
        return math.sin(angle) * total
    return 2 / math.pi * (angle + math.sin(angle) * math.cos(angle) * total)
