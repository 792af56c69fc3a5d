"""Drawing with replacement: the medians of resampled blocks, and of resampled runs of neighbouring blocks."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from octopus.errors import InputError


def bootstrap_medians(samples: np.ndarray, rng: np.random.Generator, resamples: int) -> np.ndarray:
    """Return the medians, shape (resamples,), of samples drawn with replacement."""
    return medians_at(samples, *_median_ranks(int(samples.size), rng, resamples))


@lru_cache(maxsize=512)
def seeded_ranks(size: int, seed: int, resamples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranks that a fresh generator draws: a report has thousands of intervals, but few sizes of samples."""
    return _median_ranks(size, np.random.default_rng(seed), resamples)


def _median_ranks(size: int, rng: np.random.Generator, resamples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return between which two ranks, shape (resamples,) each, the medians of drawn samples lie.

    Ranks are drawn and partitioned instead of values: small integers, several times faster than floats, and the same
    whatever the values are.
    """
    kind = np.uint16 if size <= 1 << 16 else np.uint32
    return _middle_ranks(rng.integers(0, size, (resamples, size), dtype=kind))


def _middle_ranks(ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the two middle ones, shape (resamples,) each, of drawn ranks, shape (resamples, size), which it sorts."""
    size = ranks.shape[1]
    below, above = (size - 1) // 2, size // 2
    ranks.partition((below, above), axis=1)
    return ranks[:, below].copy(), ranks[:, above].copy()


def medians_at(samples: np.ndarray, below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Return the medians of which `below` and `above` are the two middle ranks."""
    ordered = np.sort(samples)
    return (ordered[below] + ordered[above]) / 2


def percentiles(draws: np.ndarray, confidence: float) -> tuple[float, float]:
    """Return the ends of the interval that holds the middle share `confidence` of the draws."""
    if not 0 < confidence < 1:
        raise InputError(f"The confidence must lie between 0 and 1, found {confidence}.")
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, (tail, 1 - tail))
    return float(low), float(high)


def medians_of_runs(samples: np.ndarray, length: int, seed: int, resamples: int) -> np.ndarray:
    """Return the medians, shape (resamples,), of runs of neighbours drawn with replacement."""
    positions = _drawn_runs(int(samples.size), length, seed, resamples)
    order = np.argsort(samples, kind="stable")
    ranks = np.empty_like(order, dtype=positions.dtype)
    ranks[order] = np.arange(samples.size)
    return medians_at(samples, *_middle_ranks(ranks[positions]))


def run_length(size: int, lag: float) -> int:
    """Return how many neighbours are drawn together: the best number for a first-order autoregression (Carlstein,
    "The use of subseries values for estimating the variance", 1986), a third of the samples at most."""
    best = (2 * lag / (1 - lag**2)) ** (2 / 3) * size ** (1 / 3)
    return max(2, min(math.ceil(best), size // 3))


@lru_cache(maxsize=32)
def _drawn_runs(size: int, length: int, seed: int, resamples: int) -> np.ndarray:
    """Return positions, shape (resamples, size), of runs of `length` neighbours; behind the last comes the first."""
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, size, (resamples, -(-size // length)))
    positions = (starts[:, :, None] + np.arange(length)) % size
    return positions.reshape(resamples, -1)[:, :size].astype(np.uint16 if size <= 1 << 16 else np.uint32)
