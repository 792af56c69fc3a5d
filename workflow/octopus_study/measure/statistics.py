"""Intervals, verdicts and fits over blocks; all deterministic: the same samples give the same numbers.

The unit of inference is the block; where several processes measured, it is the process, and where neighbouring blocks
resemble each other, a run of them (:mod:`octopus_study.measure.dependence`). A comparison is the median of the
per-block ratio with a percentile bootstrap interval (Kalibera & Jones, "Rigorous benchmarking in reasonable time",
2013), never the ratio of two summaries; pairing removes whatever slowed the whole block.
``tests/study/measure/test_statistics.py`` checks the coverage of the intervals by simulation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from octopus.errors import InputError
from octopus_study.measure.bootstrap import (
    bootstrap_medians,
    medians_at,
    medians_of_runs,
    percentiles,
    run_length,
    seeded_ranks,
)
from octopus_study.measure.dependence import autocorrelation, blocks_of, by_process, process_count
from octopus_study.measure.student import t_quantile

MIN_BLOCKS = 20
RESAMPLES = 2000
EQUAL_WITHIN = 0.02
Verdict = Literal["faster", "slower", "equal", "ambiguous"]


class Interval(NamedTuple):
    """A median, its confidence interval (NaN for a single block), and the number of blocks."""

    value: float
    low: float
    high: float
    count: int

    @property
    def relative_halfwidth(self) -> float:
        """Half the width of the interval as a fraction of the value; infinite where there is no interval."""
        width = (self.high - self.low) / 2
        return width / abs(self.value) if math.isfinite(width) and self.value else math.inf

    def scaled(self, factor: float) -> Interval:
        """Return the interval in another unit, or per item: all of it times a positive factor."""
        return Interval(factor * self.value, factor * self.low, factor * self.high, self.count)

    def moved(self, by: float) -> Interval:
        """Return the interval with a constant added to all of it."""
        return Interval(self.value + by, self.low + by, self.high + by, self.count)


class Comparison(NamedTuple):
    """How long one method takes, as a multiple of another's time.

    Attributes
    ----------
    ratio, low, high : float
        Median over the blocks of time(a) / time(b), and its 95 % interval. Below 1, a is the faster one.
    verdict : {"faster", "slower", "equal", "ambiguous"}
        Of a against b.
    text : str
        The verdict in words, with the interval, the number of blocks and the noise floor.
    """

    ratio: float
    low: float
    high: float
    verdict: Verdict
    text: str


class Slope(NamedTuple):
    """A straight line through medians, with its fit error.

    Attributes
    ----------
    value, low, high : float
        Slope (unit of y per unit of x) and its 95 % interval.
    intercept : float
        Value of the line at x = 0, in the unit of y.
    r2 : float
        Share of the variance of the medians that the line explains.
    residual : float
        Root mean square distance of the medians from the line, in the unit of y.
    """

    value: float
    low: float
    high: float
    intercept: float
    r2: float
    residual: float


def median_interval(
    x: Sequence[float] | np.ndarray,
    confidence: float = 0.95,
    seed: int = 0,
    resamples: int = RESAMPLES,
    blocks: Sequence[int] | np.ndarray | None = None,
) -> Interval:
    """Return the median of `x` with its percentile bootstrap interval.

    Of several processes it is the mean of their medians (the geometric one of positive samples) with its interval by
    Student's t, which needs no resampling.

    Parameters
    ----------
    x : array_like, shape (blocks,)
        Finite samples, one per block, in the order of the blocks.
    confidence : float
        Coverage of the interval, between 0 and 1.
    seed : int
        Seed of the resampling.
    resamples : int
        Number of bootstrap samples.
    blocks : array_like of int, shape (blocks,), optional
        The rows' numbers of the blocks, which tell the processes; by default the index of a pandas Series.

    Raises
    ------
    InputError
        There are no samples, or some are not finite.
    """
    samples = _samples(x, "x")
    parts = by_process(samples, blocks_of(x) if blocks is None else blocks)
    if len(parts) > 1:
        return _over_processes(parts, confidence)
    value = float(np.median(samples))
    if samples.size < 2:
        return Interval(value, math.nan, math.nan, int(samples.size))
    lag = autocorrelation(samples)
    draws = (
        medians_of_runs(samples, run_length(samples.size, lag), seed, resamples)
        if lag
        else medians_at(samples, *seeded_ranks(int(samples.size), seed, resamples))
    )
    return Interval(value, *percentiles(draws, confidence), int(samples.size))


def caution(x: Sequence[float] | np.ndarray) -> str:
    """Say what :func:`median_interval` heeded of `x`, for a number's note; empty where blocks stand for themselves."""
    processes = process_count(x)
    if processes > 1:
        return f"mean of the medians of {processes} processes, interval over processes by Student's t"
    lag = autocorrelation(_samples(x, "x"))
    return (
        f"neighbouring blocks resemble each other (correlation {lag:.2f}), interval over runs of them"
        if lag
        else ""
    )


def ratio_interval(
    a: Sequence[float] | np.ndarray,
    b: Sequence[float] | np.ndarray,
    confidence: float = 0.95,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Interval:
    """Return the median of the per-block ratio a / b with its interval, as :func:`median_interval` has it.

    Parameters
    ----------
    a, b : array_like, shape (blocks,)
        Positive samples of two methods; the same position is the same block. The index of a pandas Series `a` tells
        the blocks' numbers.

    Raises
    ------
    InputError
        The lengths differ, or a sample is not finite or not positive.
    """
    top, bottom = _samples(a, "a"), _samples(b, "b")
    if top.size != bottom.size:
        raise InputError(
            f"Paired samples need the same blocks: a has {top.size} of them, b has {bottom.size}."
        )
    if (top <= 0).any() or (bottom <= 0).any():
        raise InputError("A ratio of times needs positive times; a sample is zero or negative.")
    return median_interval(top / bottom, confidence, seed, resamples, blocks_of(a))


def unpaired_ratio_interval(
    a: Sequence[float] | np.ndarray,
    b: Sequence[float] | np.ndarray,
    confidence: float = 0.95,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Interval:
    """Return median(a) / median(b) of samples that share no blocks, each resampled on its own.

    For how a time grows with the work; methods are compared within blocks, by :func:`ratio_interval`.
    """
    top, bottom = _samples(a, "a"), _samples(b, "b")
    if (bottom <= 0).any():
        raise InputError("A ratio needs positive samples b; a sample is zero or negative.")
    value, count = float(np.median(top) / np.median(bottom)), min(top.size, bottom.size)
    if count < 2:
        return Interval(value, math.nan, math.nan, count)
    rng = np.random.default_rng(seed)
    draws = bootstrap_medians(top, rng, resamples) / bootstrap_medians(bottom, rng, resamples)
    return Interval(value, *percentiles(draws, confidence), count)


def noise_floor(a: Sequence[float] | np.ndarray, again: Sequence[float] | np.ndarray) -> float:
    """Return the difference that this set-up reports between a method and itself.

    It is the end of the interval of a / again that lies farther from 1, as a fraction: 0.013 says that
    differences up to 1.3 % are seen where there are none. NaN with fewer than 20 blocks.
    """
    interval = ratio_interval(a, again)
    if interval.count < MIN_BLOCKS:
        return math.nan
    return math.expm1(max(abs(math.log(interval.low)), abs(math.log(interval.high))))


def compare(
    a: Sequence[float] | np.ndarray,
    b: Sequence[float] | np.ndarray,
    noise_floor: float = 0.0,
    equal_within: float = EQUAL_WITHIN,
) -> Comparison:
    """Judge the times `a` against the times `b` of the same blocks.

    ``equal``: the whole interval lies within ``equal_within`` of 1, and so does the noise floor. ``faster``
    and ``slower``: the whole interval lies beyond the noise floor. Everything else, and anything on fewer
    than 20 blocks or without a noise floor (NaN), is ``ambiguous``.
    """
    interval = ratio_interval(a, b)
    verdict = _verdict(interval, noise_floor, equal_within)
    text = _verdict_text(interval, verdict, noise_floor, equal_within, process_count(a))
    return Comparison(*interval[:3], verdict, text)


def slope(
    x: Sequence[float] | np.ndarray,
    y: Sequence[float] | np.ndarray,
    confidence: float = 0.95,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Slope:
    """Fit a line through the medians of y at each x; the slope over launches is the cost of one launch.

    The line is that of Theil and Sen: the median of the slopes between all pairs of medians, so that one x at
    which something else ran beside the measurement doesn't bend it (Sen, "Estimates of the regression
    coefficient based on Kendall's tau", 1968). The interval comes from resampling the x as well as the samples
    within each: it holds their spread and how well the medians lie on one line. With nine x that each lie off
    the line by an error of their own, 95 % intervals hold the slope in about 89 % of simulations.

    Parameters
    ----------
    x, y : array_like, shape (samples,)
        One entry per sample; an x is repeated as often as it was measured. At least two different x.

    Raises
    ------
    InputError
        The lengths differ, a sample is not finite, or there are fewer than two different x.
    """
    xs, ys = _samples(x, "x"), _samples(y, "y")
    levels = np.unique(xs)
    if xs.size != ys.size or levels.size < 2:
        raise InputError(
            f"A slope needs x and y of one length and two different x; found {xs.size} and {ys.size} "
            f"samples at {levels.size} different x."
        )
    groups = [ys[xs == level] for level in levels]
    medians = np.array([np.median(group) for group in groups])
    value, intercept = _line(levels, medians)
    rng = np.random.default_rng(seed)
    draws = np.stack([bootstrap_medians(group, rng, resamples) for group in groups], axis=-1)
    sampled = all(group.size > 1 for group in groups)
    slopes = _resampled_slopes(levels, draws, rng) if sampled else np.empty(0)
    low, high = percentiles(slopes, confidence) if sampled else (math.nan, math.nan)
    errors = medians - (value * levels + intercept)
    spread = float(((medians - medians.mean()) ** 2).sum())
    r2 = 1 - float((errors**2).sum()) / spread if spread else math.nan
    return Slope(float(value), low, high, float(intercept), r2, float(np.sqrt((errors**2).mean())))


def _samples(x: Sequence[float] | np.ndarray, name: str) -> np.ndarray:
    samples = np.asarray(x, dtype=np.float64).reshape(-1)
    if not samples.size or not np.isfinite(samples).all():
        missing = int(samples.size - np.isfinite(samples).sum())
        raise InputError(
            f"Samples {name} must be finite and at least one; {missing} of {samples.size} are not finite."
        )
    return samples


def _over_processes(parts: list[np.ndarray], confidence: float) -> Interval:
    """Return the mean of the processes' medians and its interval by Student's t; of logarithms where they have any."""
    medians = np.array([np.median(part) for part in parts])
    logarithmic = bool((medians > 0).all())
    middles = np.log(medians) if logarithmic else medians
    reach = t_quantile(confidence, middles.size - 1) * float(middles.std(ddof=1)) / math.sqrt(middles.size)
    ends = middles.mean() + np.array([0.0, -reach, reach])
    count = sum(part.size for part in parts)
    return Interval(*(float(end) for end in (np.exp(ends) if logarithmic else ends)), count)


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return slope and intercept of Theil and Sen for different x."""
    first, second = np.triu_indices(x.size, 1)
    value = float(np.median((y[second] - y[first]) / (x[second] - x[first])))
    return value, float(np.median(y - value * x))


def _resampled_slopes(x: np.ndarray, draws: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the slopes through x drawn with replacement, one per row of `draws`, shape (resamples, x).

    Pairs of the same x have no slope; a resample of a single x, which only happens with few x, is left out.
    """
    chosen = rng.integers(0, x.size, draws.shape)
    places, values = x[chosen], np.take_along_axis(draws, chosen, axis=1)
    first, second = np.triu_indices(x.size, 1)
    across, up = places[:, second] - places[:, first], values[:, second] - values[:, first]
    some = (across != 0).any(axis=1)
    steep = np.divide(up, across, out=np.full(up.shape, np.nan), where=across != 0)
    return np.nanmedian(steep[some], axis=1)


def _verdict(interval: Interval, noise: float, equal_within: float) -> Verdict:
    if interval.count < MIN_BLOCKS or math.isnan(noise):
        return "ambiguous"
    if noise <= equal_within and 1 / (1 + equal_within) <= interval.low and interval.high <= 1 + equal_within:
        return "equal"
    if interval.high < 1 / (1 + noise):
        return "faster"
    return "slower" if interval.low > 1 + noise else "ambiguous"


def _verdict_text(
    interval: Interval, verdict: Verdict, noise: float, equal_within: float, processes: int
) -> str:
    """Put the verdict in words; speed-ups are the inverse of the ratio of times."""
    of = f" of {processes} processes" if processes > 1 else ""
    facts = f"{interval.count} blocks{of}, noise floor {noise:.1%}"
    times = f"[{1 / interval.high:.3g}, {1 / interval.low:.3g}]"
    if verdict == "faster":
        return f"{1 / interval.value:.3g} times as fast, 95 % {times} ({facts})"
    if verdict == "slower":
        return f"{interval.value:.3g} times as slow, 95 % [{interval.low:.3g}, {interval.high:.3g}] ({facts})"
    if verdict == "equal":
        return f"equal within {equal_within:.0%}, ratio of times {interval.value:.3f} ({facts})"
    if interval.count < MIN_BLOCKS:
        return f"ambiguous: {interval.count} blocks are too few, {MIN_BLOCKS} are needed"
    if math.isnan(noise):
        return "ambiguous: there is no noise floor to judge by"
    interval_text = f"95 % [{interval.low:.3g}, {interval.high:.3g}]"
    return f"ambiguous: ratio of times {interval.value:.3g}, {interval_text} ({facts})"
