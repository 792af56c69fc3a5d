"""Choosing rows, and resampling them: what the derivations share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from octopus_study.measure.dependence import blocks_of, by_process
from octopus_study.measure.statistics import Interval, caution, over_processes, processes_said
from octopus_study.report.frame import Key, Source
from octopus_study.report.runs import Run

if TYPE_CHECKING:
    import pandas as pd

AGAIN = "-again"
RESAMPLES = 1000
RESAMPLED = "the interval resamples"  # what the note of a number says whose interval another seed would move


class Group(NamedTuple):
    """Rows of one workload, count, quantity and layer: what was measured together or may be compared."""

    dataset: str
    workload: str
    n: int
    quantity: str
    layer: str

    def key(self, run: Run, method: str) -> Key:
        """Return the key of a method's median in this group."""
        return run.key(self.workload, int(self.n), method, quantity=self.quantity, layer=self.layer)

    def rows_of(self, run: Run, method: str = "") -> Source:
        """Return what numbers from the rows of a method, or of all methods, rest on."""
        chosen = f"workload={self.workload}, n={self.n}, quantity={self.quantity}, layer={self.layer}"
        return run.from_rows(self.dataset, f"{chosen}, method={method}" if method else chosen)


def groups(run: Run, **equal: object) -> Iterator[tuple[Group, pd.DataFrame]]:
    """Yield the groups of a run whose columns have the given values."""
    rows = run.rows
    for column, value in equal.items():
        rows = rows[rows[column] == value]
    for key, chosen in rows.groupby(list(Group._fields), sort=False):
        yield Group(*key), chosen


def pivot(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a group as a table: one row per block, one column per method; methods without a number are left
    out."""
    measured = rows[rows["value"].notna()]
    return measured.pivot(index="block", columns="method", values="value")


def paired(table: pd.DataFrame, *methods: str) -> pd.DataFrame:
    """Return the blocks that all of some methods have; none where one of them was not measured."""
    names = list(methods)
    if not set(names) <= set(table.columns):
        return table[:0].reindex(columns=names)
    chosen = table[names]
    return chosen.dropna() if np.isnan(chosen.to_numpy()).any() else chosen


def blocks(rows: pd.DataFrame) -> pd.DataFrame:
    """Pivot a group and keep the blocks that every method has, so that columns are paired."""
    return pivot(rows).dropna()


def by_block(rows: pd.DataFrame) -> pd.Series:
    """Return the measured values of rows in the order of their blocks, indexed by them, as intervals need it."""
    return rows.set_index("block")["value"].dropna().sort_index()


def drawn(samples: pd.Series | pd.DataFrame) -> str:
    """Say, for a note, what the interval of :func:`resampled` rests on."""
    return processes_said(samples) or f"{RESAMPLED} them"


def heeded(note: str, samples: pd.Series) -> str:
    """Add to a note what the median's interval of samples, indexed by block, heeds."""
    return "; ".join(filter(None, (note, caution(samples))))


def resampled(samples: pd.Series | pd.DataFrame, statistic: Callable[..., np.ndarray]) -> Interval:
    """Return a statistic of samples with its percentile bootstrap interval (95 %), the same for the same samples; of
    several processes the mean of theirs, with its interval by Student's t.

    Parameters
    ----------
    samples : Series or DataFrame, shape (samples,) or (samples, columns)
        Indexed by block. Rows are drawn whole, so that paired columns stay paired.
    statistic : callable
        Takes ``(..., samples)`` or ``(..., samples, columns)`` and the keyword ``axis``, that of the samples.
    """
    values, axis = samples.to_numpy(), -samples.ndim
    parts = by_process(values, blocks_of(samples))
    if len(parts) > 1:
        return over_processes(np.array([float(statistic(part, axis=axis)) for part in parts]), len(values))
    value = float(statistic(values, axis=axis))
    if len(values) < 2:
        return Interval(value, math.nan, math.nan, len(values))
    chosen = np.random.default_rng(0).integers(0, len(values), (RESAMPLES, len(values)))
    low, high = np.quantile(statistic(values[chosen], axis=axis), (0.025, 0.975))
    return Interval(value, min(value, float(low)), max(value, float(high)), len(values))


def ratio_of_sums(values: np.ndarray, axis: int) -> np.ndarray:
    """Return the second column's sum over the first one's; NaN or infinite where that is zero."""
    sums = values.sum(axis=axis)
    with np.errstate(divide="ignore", invalid="ignore"):
        return sums[..., 1] / sums[..., 0]
