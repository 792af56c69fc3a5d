"""Intervals, verdicts and fits over blocks; all deterministic: the same samples give the same numbers.

The unit of inference is the block; where several processes measured, it is the process
(:mod:`octopus_study.measure.dependence`). A comparison is the median of the per-block ratio (Kalibera & Jones,
"Rigorous benchmarking in reasonable time", 2013), never the ratio of two summaries; pairing removes whatever slowed the
whole block. The interval of a median lies between two of its samples, so nothing is drawn and no seed decides.
``tests/study/measure/test_statistics.py`` checks the coverage of the intervals by simulation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np

from octopus.errors import InputError
from octopus_study.measure.dependence import blocks_of, by_process, memory

CONFIDENCE = 0.95  # of every interval
MIN_BLOCKS = 20
MIN_PROCESSES = 3  # with two, Student's t reaches nine times as far as the two lie apart: that tells nothing
EQUAL_WITHIN = 0.02
FEW_PROCESSES = f"fewer than {MIN_PROCESSES} processes are too few for a verdict"
Verdict = Literal["faster", "slower", "equal", "ambiguous"]
_NORMAL = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)  # two-sided quantile: 1.960


class Interval(NamedTuple):
    """A median, its confidence interval (NaN for a single block), and what it rests on: how many blocks, of how many
    processes, and whether by resampling, which another seed would move."""

    value: float
    low: float
    high: float
    count: int
    processes: int = 1
    resampled: bool = False

    @property
    def relative_halfwidth(self) -> float:
        """Half the width of the interval as a fraction of the value; infinite where there is no interval."""
        width = (self.high - self.low) / 2
        return width / abs(self.value) if math.isfinite(width) and self.value else math.inf

    def scaled(self, factor: float) -> Interval:
        """Return the interval in another unit, or per item: all of it times a positive factor."""
        return self._replace(value=factor * self.value, low=factor * self.low, high=factor * self.high)

    def moved(self, by: float) -> Interval:
        """Return the interval with a constant added to all of it."""
        return self._replace(value=self.value + by, low=self.low + by, high=self.high + by)


class Comparison(NamedTuple):
    """How long one method takes, as a multiple of another's time."""

    ratio: float  # median over the blocks of time(a) / time(b), below 1 where a is the faster one; its 95 % interval
    low: float
    high: float
    verdict: Verdict  # {"faster", "slower", "equal", "ambiguous"}: of a against b
    text: str  # the verdict in words, with the interval, the number of blocks and the noise floor


def median_interval(x: Sequence[float] | np.ndarray, blocks: Sequence[int] | np.ndarray | None = None) -> Interval:
    """Return the median of `x`, one sample per block, with the interval between two samples that holds the true one.

    Of several processes it is the mean of their medians (the geometric one of positive samples) with its interval by
    Student's t. `blocks`, the rows' numbers of the blocks, tell the processes; by default the index of a pandas Series.
    """
    samples = finite_samples(x, "x")
    parts = by_process(samples, blocks_of(x) if blocks is None else blocks)
    if len(parts) > 1:
        return over_processes(np.array([_middle(part) for part in parts]), samples.size)
    value = _middle(samples)
    if samples.size < 2:
        return Interval(value, math.nan, math.nan, int(samples.size))
    return Interval(value, *_ends(samples), int(samples.size))


def _middle(samples: np.ndarray) -> float:
    """Return the median of finite samples, as NumPy does in five times the time."""
    ordered, half = np.sort(samples), samples.size // 2
    return float(ordered[half] if samples.size % 2 else (ordered[half - 1] + ordered[half]) / 2)


def _ends(samples: np.ndarray) -> tuple[float, float]:
    """Return the two samples between which the median of what they are drawn from lies.

    How many of n samples lie below it is binomial, with the variance n / 4; times their memory where neighbours are
    alike. The ranks are those of the normal approximation, which for 6 to 1000 samples at 95 % hold no less than that
    by the binomial distribution itself (a test counts it). Fewer than 6 have their least and greatest.
    """
    reach = _NORMAL * math.sqrt(samples.size * memory(samples)) / 2
    rank = max(math.floor((samples.size + 1) / 2 - reach), 1)
    ordered = np.sort(samples)
    return float(ordered[rank - 1]), float(ordered[-rank])


def ratio_interval(
    a: Sequence[float] | np.ndarray, b: Sequence[float] | np.ndarray, blocks: Sequence[int] | np.ndarray | None = None
) -> Interval:
    """Return the median of the per-block ratio a / b of positive samples with its interval, as :func:`median_interval`
    has it; `blocks` or the index of a pandas Series `a` tells the blocks' numbers."""
    top, bottom = finite_samples(a, "a"), finite_samples(b, "b")
    if top.size != bottom.size:
        raise InputError(f"Paired samples need the same blocks: a has {top.size} of them, b has {bottom.size}.")
    if (top <= 0).any() or (bottom <= 0).any():
        raise InputError("A ratio of times needs positive times; a sample is zero or negative.")
    return median_interval(top / bottom, blocks_of(a) if blocks is None else blocks)


def unpaired_ratio_interval(a: Sequence[float] | np.ndarray, b: Sequence[float] | np.ndarray) -> Interval:
    """Return median(a) / median(b) of samples that share no blocks; or, where the same number of processes measured
    both, the mean of their ratios.

    For how a time grows with the work; methods are compared within blocks, by :func:`ratio_interval`. On either side
    the interval reaches as far as the root of the sum of the squares of both intervals, as logarithms (Zou & Donner,
    "Construction of confidence limits about effect measures: a general approach", 2008).
    """
    top, bottom = finite_samples(a, "a"), finite_samples(b, "b")
    if (top <= 0).any() or (bottom <= 0).any():
        raise InputError("A ratio needs positive samples; one of a or b is zero or negative.")
    parts = [by_process(samples, blocks_of(given)) for samples, given in ((top, a), (bottom, b))]
    if len(parts[0]) == len(parts[1]) > 1:
        medians = [np.array([np.median(part) for part in of_one]) for of_one in parts]
        return over_processes(medians[0] / medians[1], min(top.size, bottom.size))
    over, under = (median_interval(np.log(samples)) for samples in (top, bottom))
    down = math.hypot(over.value - over.low, under.high - under.value)
    up = math.hypot(over.high - over.value, under.value - under.low)
    value = float(np.median(top) / np.median(bottom))
    return Interval(value, value * math.exp(-down), value * math.exp(up), min(top.size, bottom.size))


def mean_interval(values: Sequence[float] | np.ndarray) -> Interval:
    """Return the mean and its interval of 95 % by Student's t; the ends are NaN for a single value."""
    array = np.asarray(values, dtype=np.float64)
    mean = float(array.mean())
    if array.size < 2:
        return Interval(mean, math.nan, math.nan, int(array.size))
    reach = t_quantile(array.size - 1) * float(array.std(ddof=1)) / math.sqrt(array.size)
    return Interval(mean, mean - reach, mean + reach, int(array.size))


def noise_floor(
    a: Sequence[float] | np.ndarray,
    again: Sequence[float] | np.ndarray,
    blocks: Sequence[int] | np.ndarray | None = None,
) -> float:
    """Return the difference that this set-up reports between a method and itself. It is the end of the interval of a /
    again that lies farther from 1, as a fraction: 0.013 says that differences up to 1.3 % are seen where there are
    none. NaN with fewer than 20 blocks."""
    interval = ratio_interval(a, again, blocks)
    if interval.count < MIN_BLOCKS:
        return math.nan
    return math.expm1(max(abs(math.log(interval.low)), abs(math.log(interval.high))))


def compare(
    a: Sequence[float] | np.ndarray,
    b: Sequence[float] | np.ndarray,
    noise_floor: float = 0.0,
    blocks: Sequence[int] | np.ndarray | None = None,
) -> Comparison:
    """Judge the times `a` against the times `b` of the same blocks.

    ``equal``: the whole interval lies within 2 % of 1, and so does the noise floor. ``faster``
    and ``slower``: the whole interval lies beyond the noise floor. Everything else, and anything on fewer
    than 20 blocks, on two processes or without a noise floor (NaN), is ``ambiguous``.

    Chance counts twice in this: in the interval, and in the noise floor, which is the end of an interval of its own.
    That is meant. The floor bounds what else sets two equal methods apart, such as where their memory lies, and one
    pair shows that no better than its interval tells. So a difference must exceed both; between equals a verdict is
    wrong less often than the 5 % that the interval alone allows, also over processes (a test simulates it), and what
    the caution costs is verdicts on differences below twice the width of an interval.
    """
    interval = ratio_interval(a, b, blocks)
    if few := _few(interval):
        return Comparison(*interval[:3], "ambiguous", f"ambiguous: {few}")
    verdict = _verdict(interval, noise_floor)
    text = _verdict_text(interval, verdict, noise_floor)
    return Comparison(*interval[:3], verdict, text)


def _few(interval: Interval) -> str:
    """Say that an interval rests on too little for a verdict; empty where it doesn't."""
    if interval.count < MIN_BLOCKS:
        return f"{interval.count} blocks are too few, {MIN_BLOCKS} are needed"
    return FEW_PROCESSES if 1 < interval.processes < MIN_PROCESSES else ""


def finite_samples(x: Sequence[float] | np.ndarray, name: str) -> np.ndarray:
    samples = np.asarray(x, dtype=np.float64).reshape(-1)
    if not samples.size or not np.isfinite(samples).all():
        missing = int(samples.size - np.isfinite(samples).sum())
        raise InputError(f"Samples {name} must be finite and at least one; {missing} of {samples.size} are not finite.")
    return samples


def over_processes(medians: np.ndarray, count: int) -> Interval:
    """Return the mean of the processes' medians and its interval by Student's t; of logarithms where they have any.
    `count` is the number of blocks behind them."""
    logarithmic = bool((medians > 0).all())
    middles = np.log(medians) if logarithmic else medians
    reach = t_quantile(middles.size - 1) * float(middles.std(ddof=1)) / math.sqrt(middles.size)
    ends = middles.mean() + np.array([0.0, -reach, reach])
    middle, low, high = (np.exp(ends) if logarithmic else ends).tolist()
    return Interval(middle, low, high, count, int(medians.size))


def _verdict(interval: Interval, noise: float) -> Verdict:
    if math.isnan(noise):
        return "ambiguous"
    if noise <= EQUAL_WITHIN and interval.low >= 1 / (1 + EQUAL_WITHIN) and interval.high <= 1 + EQUAL_WITHIN:
        return "equal"
    if interval.high < 1 / (1 + noise):
        return "faster"
    return "slower" if interval.low > 1 + noise else "ambiguous"


def _verdict_text(interval: Interval, verdict: Verdict, noise: float) -> str:
    """Put the verdict in words; speed-ups are the inverse of the ratio of times."""
    of = f" of {interval.processes} processes" if interval.processes > 1 else ""
    facts = f"{interval.count} blocks{of}, noise floor {noise:.1%}"
    times = f"[{1 / interval.high:.3g}, {1 / interval.low:.3g}]"
    if verdict == "faster":
        return f"{1 / interval.value:.3g} times as fast, 95 % {times} ({facts})"
    if verdict == "slower":
        return f"{interval.value:.3g} times as slow, 95 % [{interval.low:.3g}, {interval.high:.3g}] ({facts})"
    if verdict == "equal":
        return f"equal within {EQUAL_WITHIN:.0%}, ratio of times {interval.value:.3f} ({facts})"
    if math.isnan(noise):
        return "ambiguous: there is no noise floor to judge by"
    interval_text = f"95 % [{interval.low:.3g}, {interval.high:.3g}]"
    return f"ambiguous: ratio of times {interval.value:.3g}, {interval_text} ({facts})"


@cache
def t_quantile(freedom: int) -> float:
    """Return the two-sided quantile of Student's t for 95 %, by bisection: 2.776 for four degrees of freedom."""
    low, high = 0.0, 1.0
    while _t_probability(high, freedom) < CONFIDENCE:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_probability(middle, freedom) < CONFIDENCE else (low, middle)
    return (low + high) / 2


def _t_probability(t: float, freedom: int) -> float:
    """Return P(-t < T < t) of Student's t with a whole number of degrees of freedom. The finite series of Abramowitz
    and Stegun, "Handbook of Mathematical Functions", 26.7.3 and 26.7.4."""
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
