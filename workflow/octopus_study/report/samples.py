"""Choosing rows, and resampling them: what the derivations share."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus_study.measure.dependence import blocks_of, by_process
from octopus_study.measure.statistics import Interval, over_processes
from octopus_study.report.frame import Key, Source
from octopus_study.report.runs import DataFrame, Run, Samples, cached

RESAMPLES = 1000
ENOUGH_FOR_P99 = 100  # of fewer samples the 99th percentile is the greatest
p99 = partial(np.quantile, q=0.99)


class Group(NamedTuple):
    """Rows of one workload, count, quantity, layer and input: what was measured together or may be compared."""

    dataset: str
    workload: str
    n: int
    quantity: str
    layer: str
    input: str = ""

    def key(self, run: Run, method: str) -> Key:
        """Return the key of a method's median in this group."""
        return run.key(self.workload, int(self.n), method, quantity=self.quantity, layer=self.layer, input=self.input)

    def rows_of(self, run: Run, method: str = "") -> Source:
        """Return what numbers from the rows of a method, or of all methods, rest on."""
        chosen = f"workload={self.workload}, n={self.n}, quantity={self.quantity}, layer={self.layer}"
        chosen += f", input={self.input}" if self.input else ""
        return run.from_rows(self.dataset, f"{chosen}, method={method}" if method else chosen)


def groups(run: Run, **equal: object) -> Iterator[tuple[Group, DataFrame]]:
    """Yield the groups of a run whose columns have the given values."""
    of_group = {name: value for name, value in equal.items() if name in Group._fields}
    of_rows = {name: value for name, value in equal.items() if name not in of_group}
    for group, rows in _grouped(run):
        chosen = rows
        if all(getattr(group, name) == value for name, value in of_group.items()):
            for name, value in of_rows.items():
                same = chosen[name].to_numpy() == value
                chosen = chosen if same.all() else chosen[same]
            if len(chosen):
                yield group, chosen


@cached
def _grouped(run: Run) -> Iterator[tuple[Group, DataFrame]]:
    for key, rows in run.rows.groupby(list(Group._fields), sort=False):
        yield Group(*key), rows


def pivot(rows: DataFrame) -> DataFrame:
    """Return a group as a table: one row per block, one column per method; methods without a number are left
    out. By hand, which takes a tenth of the time of pandas' own: a report makes thousands of them."""
    import pandas as pd

    values = rows["value"].to_numpy()
    known = ~np.isnan(values)
    numbers, row = np.unique(rows["block"].to_numpy()[known], return_inverse=True)
    column, names = pd.factorize(rows["method"].to_numpy()[known], sort=True)
    table = np.full((len(numbers), len(names)), np.nan)
    table[row, column] = values[known]
    names = pd.Index(names, name="method", dtype=object)
    # Not copied: sums along the blocks depend in the last digit on how a table lies in memory.
    return pd.DataFrame(table, pd.Index(numbers, name="block"), names, copy=False)


def paired(table: DataFrame, *methods: str) -> DataFrame:
    """Return the blocks that all of some methods have; none where one of them was not measured."""
    import pandas as pd

    numbers, columns = aligned(table, *methods)
    names = pd.Index(np.array(methods, object), name=table.columns.name, dtype=object)
    return pd.DataFrame(columns.T, pd.Index(numbers, name=table.index.name), names)


def aligned(table: DataFrame, *methods: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the same as :func:`paired` without pandas, for the thousands of comparisons: the numbers of the blocks,
    and a row of samples per method."""
    numbers = table.index.to_numpy()
    if not set(methods) <= set(table.columns):
        return numbers[:0], np.empty((len(methods), 0))
    columns = table.to_numpy().T[[table.columns.get_loc(name) for name in methods]]
    known = ~np.isnan(columns).any(axis=0)
    return numbers[known], columns[:, known]


def blocks(rows: DataFrame) -> DataFrame:
    """Pivot a group and keep the blocks that every method has, so that columns are paired."""
    return pivot(rows).dropna()


def by_block(rows: DataFrame) -> Samples:
    """Return the measured values of rows in the order of their blocks, indexed by them, as intervals need it."""
    return rows.set_index("block")["value"].dropna().sort_index()


def resampled(samples: Samples, statistic: Callable[..., np.ndarray]) -> Interval:
    """Return a statistic of samples with its percentile bootstrap interval (95 %), the same for the same samples; of
    several processes the mean of theirs, with its interval by Student's t. Samples are indexed by block; the statistic
    takes an `axis`."""
    values = samples.to_numpy()
    parts = by_process(values, blocks_of(samples))
    if len(parts) > 1:
        return over_processes(np.array([float(statistic(part)) for part in parts]), len(values))
    value = float(statistic(values))
    if len(values) < 2:
        return Interval(value, math.nan, math.nan, len(values))
    chosen = np.random.default_rng(0).integers(0, len(values), (RESAMPLES, len(values)))
    low, high = np.quantile(statistic(values[chosen], axis=-1), (0.025, 0.975))
    return Interval(value, min(value, float(low)), max(value, float(high)), len(values), resampled=True)
