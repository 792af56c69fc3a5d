"""What the studies of the edge share: values that need no interval of blocks, resampled intervals, and aliases that say
why they are absent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run

if TYPE_CHECKING:
    import pandas as pd

RESAMPLES = 1000
Where = tuple[str, tuple[str, str, str, str], str]


def resampled(values: np.ndarray, statistic: Callable[..., np.ndarray]) -> tuple[float, float, float]:
    """Return a statistic of samples with its percentile bootstrap interval (95 %), the same for the same samples.

    Parameters
    ----------
    values : ndarray, shape (samples,) or (samples, columns)
        Rows are drawn whole, so that paired columns stay paired.
    statistic : callable
        Takes ``(..., samples)`` or ``(..., samples, columns)`` and the keyword ``axis``, that of the samples.
    """
    axis = -values.ndim
    value = float(statistic(values, axis=axis))
    if len(values) < 2:
        return value, math.nan, math.nan
    chosen = np.random.default_rng(0).integers(0, len(values), (RESAMPLES, len(values)))
    low, high = np.quantile(statistic(values[chosen], axis=axis), (0.025, 0.975))
    return value, min(value, float(low)), max(value, float(high))


def ratio_of_sums(values: np.ndarray, axis: int) -> np.ndarray:
    """Return the second column's sum over the first one's."""
    sums = values.sum(axis=axis)
    return sums[..., 1] / sums[..., 0]


def absent(where: Where, why: str, unit: str = "text") -> Number:
    """Return a number without a value that says why there is none."""
    text = why if why.startswith("unavailable: ") else f"unavailable: {why}"
    return make_number(*where, unit, math.nan, text=text, note=text)


def first_reason(rows: pd.DataFrame, fallback: str) -> str:
    """Return what the first unavailable row says."""
    said = [answer for answer in rows["answer"] if str(answer).startswith("unavailable: ")]
    return str(said[0]) if said else fallback


def single_values(run: Run, without: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, str, int], dict]]:
    """Yield (dataset, workload, n) and its deterministic values by (method, quantity); quantities that are indexed are
    left out."""
    rows = run.rows[(run.rows["layer"] == "deterministic") & run.rows["value"].notna()]
    rows = rows[~rows["quantity"].isin(without)]
    for key, chosen in rows.groupby(["dataset", "workload", "n"], sort=False):
        pairs = zip(chosen["method"], chosen["quantity"], strict=True)
        yield key, dict(zip(pairs, chosen["value"].astype(float), strict=True))
