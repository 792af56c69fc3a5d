"""Choosing rows: what the derivations share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from octopus_study.report.frame import Key, Source
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


def blocks(rows: pd.DataFrame) -> pd.DataFrame:
    """Pivot a group and keep the blocks that every method has, so that columns are paired."""
    return pivot(rows).dropna()
