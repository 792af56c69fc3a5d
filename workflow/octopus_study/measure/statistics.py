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
    medians_at,
    medians_of_runs,
    percentiles,
    run_length,
    seeded_ranks,
)
from octopus_study.measure.dependence import (
    autocorrelation,
    blocks_of,
    by_process,
    persistence,
    process_count,
)
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
    samples = finite_samples(x, "x")
    parts = by_process(samples, blocks_of(x) if blocks is None else blocks)
    if len(parts) > 1:
        return over_processes(np.array([np.median(part) for part in parts]), samples.size, confidence)
    value = float(np.median(samples))
    if samples.size < 2:
        return Interval(value, math.nan, math.nan, int(samples.size))
    return Interval(value, *percentiles(_draws(samples, seed, resamples), confidence), int(samples.size))


def _draws(samples: np.ndarray, seed: int, resamples: int) -> np.ndarray:
    """Return the medians, shape (resamples,), of resampled blocks, or of runs of them where neighbours are alike."""
    lag = persistence(samples)
    if lag:
        return medians_of_runs(samples, run_length(samples.size, lag), seed, resamples)
    return medians_at(samples, *seeded_ranks(int(samples.size), seed, resamples))


def caution(x: Sequence[float] | np.ndarray) -> str:
    """Say what :func:`median_interval` heeded of `x`, for a number's note; empty where blocks stand for themselves."""
    processes = process_count(x)
    if processes > 1:
        return f"mean of the medians of {processes} processes, interval over processes by Student's t"
    lag = autocorrelation(finite_samples(x, "x"))
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
    top, bottom = finite_samples(a, "a"), finite_samples(b, "b")
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
    """Return median(a) / median(b) of samples that share no blocks, each resampled on its own; or, where the same
    number of processes measured both, the mean of their ratios.

    For how a time grows with the work; methods are compared within blocks, by :func:`ratio_interval`.
    """
    top, bottom = finite_samples(a, "a"), finite_samples(b, "b")
    if (bottom <= 0).any():
        raise InputError("A ratio needs positive samples b; a sample is zero or negative.")
    parts = [by_process(samples, blocks_of(given)) for samples, given in ((top, a), (bottom, b))]
    if len(parts[0]) == len(parts[1]) > 1:
        medians = [np.array([np.median(part) for part in of_one]) for of_one in parts]
        return over_processes(medians[0] / medians[1], min(top.size, bottom.size), confidence)
    value, count = float(np.median(top) / np.median(bottom)), min(top.size, bottom.size)
    if count < 2:
        return Interval(value, math.nan, math.nan, count)
    draws = _draws(top, seed, resamples) / _draws(bottom, seed + 1, resamples)
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


def finite_samples(x: Sequence[float] | np.ndarray, name: str) -> np.ndarray:
    samples = np.asarray(x, dtype=np.float64).reshape(-1)
    if not samples.size or not np.isfinite(samples).all():
        missing = int(samples.size - np.isfinite(samples).sum())
        raise InputError(
            f"Samples {name} must be finite and at least one; {missing} of {samples.size} are not finite."
        )
    return samples


def over_processes(medians: np.ndarray, count: int, confidence: float = 0.95) -> Interval:
    """Return the mean of the processes' medians and its interval by Student's t; of logarithms where they have any.

    `count` is the number of blocks behind them.
    """
    logarithmic = bool((medians > 0).all())
    middles = np.log(medians) if logarithmic else medians
    reach = t_quantile(confidence, middles.size - 1) * float(middles.std(ddof=1)) / math.sqrt(middles.size)
    ends = middles.mean() + np.array([0.0, -reach, reach])
    return Interval(*(float(end) for end in (np.exp(ends) if logarithmic else ends)), count)


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
