"""What methods cost on one batch, once and per use, with resampled stages: setup, upload and kernel. Where several
processes measured, each gives a number of its own, and the interval is over them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from octopus_study.measure.dependence import PROCESS_BLOCKS, blocks_of, by_process, process_count
from octopus_study.measure.statistics import Interval
from octopus_study.report.runs import Run, once
from octopus_study.report.samples import RESAMPLES, Group, blocks, groups, paired
from octopus_study.report.selector import either, where
from octopus_study.report.student import mean_interval

if TYPE_CHECKING:
    import pandas as pd

PUBLISHED_TABLE, SAME_TABLE = "lookup-published", "lookup-vectorised"


class Draws(NamedTuple):
    """A value as measured, then of resampled blocks or, where several processes measured, of each of them,
    (1 + draws,); blocks, processes and rows that it rests on."""

    values: np.ndarray
    blocks: int
    processes: int = 1
    selector: str = ""

    @property
    def interval(self) -> Interval:
        """The value with its interval (95 %); an infinite end says that it has none."""
        value, draws = float(self.values[0]), self.values[1:]
        if self.blocks < 2 or not draws.size:
            return Interval(value, math.nan, math.nan, self.blocks, self.processes)
        if self.processes == 1:
            low, high = np.quantile(draws, (0.025, 0.975), method="inverted_cdf")
        elif np.isinf(draws).any():
            value, low, high = math.inf, draws.min(), math.inf
        else:
            value, low, high = np.exp(mean_interval(np.log(draws))[:3])
        rests = (self.blocks, self.processes, self.processes == 1)
        return Interval(float(value), float(low), float(high), *rests)


class Costs(NamedTuple):
    """What the methods cost on one workload: milliseconds before the first kernel (`once`) and of each kernel, by
    method, (1 + draws,); those of the kernels by block; the fewest blocks of any stage."""

    group: Group
    once: dict[str, np.ndarray]
    each: dict[str, np.ndarray]
    kernels: pd.DataFrame
    blocks: int

    def ratio(self, table: str, method: str, uses: float) -> Draws:
        """Return time with a table / time with a method after so many uses."""
        times = [self.once[name] + uses * self.each[name] for name in (table, method)]
        return self._draws(times[0] / times[1], table, method)

    def crossover(self, table: str, method: str) -> Draws:
        """Return the uses from which on a table is cheaper than a method, infinite for never."""
        saved = draw(self.kernels[method] - self.kernels[table])
        return self._draws(crossover(saved, self.once[table] - self.once[method]), table, method)

    def _draws(self, values: np.ndarray, *methods: str) -> Draws:
        workload, n = self.group.workload, self.group.n
        mix, uploaded = _light(workload), [PUBLISHED_TABLE] if SAME_TABLE in methods else []
        rests = either(
            [
                where(workload=mix, n=n, quantity="setup", layer="host", method=methods),
                where(
                    workload=mix,
                    n=n,
                    quantity="upload",
                    layer="host",
                    method=dict.fromkeys((*methods, *uploaded)),
                ),
                where(workload=workload, n=n, quantity="kernel", layer="host", method=methods),
            ]
        )
        return Draws(values, self.blocks, process_count(self.kernels), rests)


def crossover(saved: np.ndarray, dearer: np.ndarray) -> np.ndarray:
    """Return the uses from which on a lookup table is the cheaper one, by the milliseconds that each use saves and
    that it takes longer to set up; infinite for never, also where it is cheaper for a while."""
    uses = np.floor(np.divide(dearer, saved, out=np.full(np.shape(saved), math.inf), where=saved > 0)) + 1
    return np.where((saved == 0) & (dearer < 0), 1.0, np.maximum(uses, 1.0))


def draw(table: pd.DataFrame | pd.Series) -> np.ndarray:
    """Return medians over the blocks, (1 + draws, ...): as measured, then of blocks drawn with replacement, whole, so
    that methods stay paired; or of each process where several measured."""
    values = table.to_numpy()
    parts = by_process(values, blocks_of(table))
    if len(parts) > 1:
        drawn = np.stack([np.median(part, axis=0) for part in parts])
    else:
        chosen = np.random.default_rng(0).integers(0, len(values), (RESAMPLES, len(values)))
        drawn = np.median(values[chosen], axis=1)
    return np.concatenate([np.median(values, axis=0)[None], drawn])


def gain(table: pd.DataFrame, method: str, other: str, selector: str) -> Draws | None:
    """Return time of the other / time of the method over the blocks that both have; None where they are too few."""
    both = paired(table, method, other)
    return (
        Draws(draw(both[other] / both[method]), len(both), process_count(both), selector)
        if len(both) > 1
        else None
    )


def together(*tables: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the blocks of those processes that measured all of some tables."""
    common = set.intersection(*({*(table.index // PROCESS_BLOCKS)} for table in tables))
    return [table[(table.index // PROCESS_BLOCKS).isin(common)] for table in tables]


@once
def costs_of(run: Run) -> Iterator[Costs]:
    """Yield what each method costs on the workloads whose kernels the host timed. Setup and upload are those of the mix
    with its light kernel; a table's upload takes as long, whether one call filled it or a loop."""
    stages = {
        (group.workload, group.quantity): blocks(rows)
        for group, rows in groups(run, layer="host", unit="ms")
        if group.quantity in ("setup", "upload", "kernel")
    }
    for group, _ in groups(run, quantity="kernel", layer="host"):
        mix = _light(group.workload)
        found = [stages.get((mix, "setup")), stages[group.workload, "kernel"], stages.get((mix, "upload"))]
        shown = together(*(stage for stage in found if stage is not None))
        if found[0] is not None and min(map(len, shown)):
            once, each, *uploads = (dict(zip(map(str, stage), draw(stage).T, strict=True)) for stage in shown)
            for upload in uploads:
                if PUBLISHED_TABLE in upload:
                    upload.setdefault(SAME_TABLE, upload[PUBLISHED_TABLE])
                once = {name: times + upload.get(name, 0.0) for name, times in once.items()}
            both = [name for name in each if name in once]
            once, each = ({name: one[name] for name in both} for one in (once, each))
            yield Costs(group, once, each, shown[1], min(map(len, shown)))


def _light(workload: str) -> str:
    return workload.replace("-heavy", "-light")
