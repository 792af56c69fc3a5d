"""Straight lines through medians: what one more item costs."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from octopus.errors import InputError
from octopus_study.measure.dependence import by_process
from octopus_study.measure.statistics import CONFIDENCE, finite_samples, over_processes

RESAMPLES = 2000


class Slope(NamedTuple):
    """A straight line through medians, with its fit error."""

    value: float  # slope, unit of y per unit of x; `low` and `high` are its 95 % interval
    low: float
    high: float
    intercept: float  # value of the line at x = 0, in the unit of y
    r2: float  # share of the variance of the medians that the line explains


def slope(
    x: Sequence[float] | np.ndarray,
    y: Sequence[float] | np.ndarray,
    seed: int = 0,
    resamples: int = RESAMPLES,
    blocks: Sequence[int] | np.ndarray | None = None,
) -> Slope:
    """Fit a line through the medians of y at each x; the slope over launches is the cost of one launch.

    The line is that of Theil and Sen: the median of the slopes between all pairs of medians, so that one x at which
    something else ran beside the measurement doesn't bend it (Sen, "Estimates of the regression coefficient based on
    Kendall's tau", 1968). The interval comes from resampling the x as well as the samples within each: it holds their
    spread and how well the medians lie on one line. With nine x that each lie off the line by an error of their own,
    95 % intervals hold the slope in about 89 % of simulations.

    `x` and `y` have one entry per sample, an x repeated as often as it was measured. Where `blocks`, the rows' numbers,
    are of several processes, the slope is the mean of theirs, with its interval by Student's t; one that has a single x
    is left out, and if but one has more, there is no interval.
    """
    xs, ys = finite_samples(x, "x"), finite_samples(y, "y")
    levels = np.unique(xs)
    if xs.size != ys.size or levels.size < 2:
        raise InputError(
            f"A slope needs x and y of one length and two different x; found {xs.size} and {ys.size} "
            f"samples at {levels.size} different x."
        )
    processes = [] if blocks is None else by_process(np.arange(xs.size), blocks)
    groups = _groups(xs, ys)
    medians = _medians(groups)
    value, intercept = _line(levels, medians)
    low = high = math.nan
    if len(processes) > 1:
        lines = [_groups(xs[chosen], ys[chosen]) for chosen in processes]
        of_each = np.array([_line(np.array([*line]), _medians(line))[0] for line in lines if len(line) > 1])
        if of_each.size > 1:
            value, low, high = over_processes(of_each, xs.size)[:3]
    elif all(group.size > 1 for group in groups.values()):
        rng = np.random.default_rng(seed)
        draws = np.stack([_bootstrap_medians(group, rng, resamples) for group in groups.values()], axis=-1)
        tail = (1 - CONFIDENCE) / 2
        low, high = np.quantile(_resampled_slopes(levels, draws, rng), (tail, 1 - tail)).tolist()
    errors = medians - (value * levels + intercept)
    spread = float(((medians - medians.mean()) ** 2).sum())
    r2 = 1 - float((errors**2).sum()) / spread if spread else math.nan
    return Slope(float(value), low, high, float(intercept), r2)


def _groups(x: np.ndarray, y: np.ndarray) -> dict[float, np.ndarray]:
    """Return the samples of each different x, in ascending order."""
    return {float(level): y[x == level] for level in np.unique(x)}


def _medians(groups: dict[float, np.ndarray]) -> np.ndarray:
    return np.array([np.median(group) for group in groups.values()])


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return slope and intercept of Theil and Sen for different x."""
    first, second = np.triu_indices(x.size, 1)
    value = float(np.median((y[second] - y[first]) / (x[second] - x[first])))
    return value, float(np.median(y - value * x))


def _resampled_slopes(x: np.ndarray, draws: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the slopes through x drawn with replacement, one per row of `draws`, shape (resamples, x). Pairs of the
    same x have no slope; a resample of a single x, which only happens with few x, is left out. Without any other the
    slope is not known."""
    chosen = rng.integers(0, x.size, draws.shape)
    places, values = x[chosen], np.take_along_axis(draws, chosen, axis=1)
    first, second = np.triu_indices(x.size, 1)
    across, up = places[:, second] - places[:, first], values[:, second] - values[:, first]
    some = (across != 0).any(axis=1)
    steep = np.divide(up, across, out=np.full(up.shape, np.nan), where=across != 0)
    return np.nanmedian(steep[some], axis=1) if some.any() else np.array([math.nan])


def _bootstrap_medians(samples: np.ndarray, rng: np.random.Generator, resamples: int) -> np.ndarray:
    """Return the medians, shape (resamples,), of samples drawn with replacement. Ranks are drawn and partitioned
    instead of values: small integers, several times faster than floats."""
    size = int(samples.size)
    kind = np.uint16 if size <= 1 << 16 else np.uint32
    ranks = rng.integers(0, size, (resamples, size), dtype=kind)
    below, above = (size - 1) // 2, size // 2
    ranks.partition((below, above), axis=1)
    ordered = np.sort(samples)
    return (ordered[ranks[:, below]] + ordered[ranks[:, above]]) / 2
