"""Choosing rows: what the derivations share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from octopus_study.report.runs import Run

if TYPE_CHECKING:
    import pandas as pd

AGAIN = "-again"


class Group(NamedTuple):
    """Rows of one workload, count, quantity and layer: what was measured together or may be compared."""

    dataset: str
    workload: str
    n: int
    quantity: str
    layer: str

    def prefix(self, run: Run, method: str) -> str:
        """Return the id of a method's median in this group."""
        return (
            f"{run.scope}.{run.study}.{self.workload}.n{self.n}.{slug(method)}.{self.quantity}.{self.layer}"
        )

    def selector(self, method: str = "") -> str:
        """Say how the rows were chosen."""
        chosen = f"workload={self.workload}, n={self.n}, quantity={self.quantity}, layer={self.layer}"
        return f"{chosen}, method={method}" if method else chosen


def slug(identifier: str) -> str:
    """Make a method's name fit for one part of an id."""
    return identifier.replace("/", "-").replace(".", "-")


def origin(run: Run, dataset: str) -> tuple[str, str, str, str]:
    """Return role, machine, data set and source of a run's numbers."""
    return run.role, run.machine, dataset, run.source


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


def blocks(rows: pd.DataFrame) -> pd.DataFrame:
    """Pivot a group and keep the blocks that every method has, so that columns are paired."""
    return pivot(rows).dropna()
