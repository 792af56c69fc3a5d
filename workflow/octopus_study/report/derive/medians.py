"""The median of every group of rows, with its interval, and of windows the mean; single values as they are; unavailable
rows as such."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from octopus_study.measure.statistics import median_interval
from octopus_study.power.decomposition import t_quantile
from octopus_study.report.derive.samples import Group, groups, origin
from octopus_study.report.derive.satellite_picture import INDEXED
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

# Rows whose block is an index and not a repetition: a median over them would mean nothing.
_INDEXED = ("width_quantile", "height_quantile", "discarded_blocks", "window_start", *INDEXED)
_INDEXED_LAYERS = ("trace",)
_PER_OBJECT = ("end_to_end", "build_metadata", "crop_resize_normalize")
# Studies with a few long windows, each a mean over many frames: too few for a bootstrap.
_WINDOWS = ("power",)
# Studies in which a row's time is that of one frame, and n counts the frames.
_BY_FRAME = ("detector",)


def medians(run: Run) -> Iterator[Number]:
    """Yield the median of every method in every group, its value per object where that is of use, and the blocks
    that the run discarded."""
    for group, rows in groups(run):
        if group.quantity in _INDEXED or group.layer in _INDEXED_LAYERS:
            continue
        for method, chosen in rows.groupby("method", sort=False):
            yield from _median(run, group, str(method), chosen)
    yield from _discarded(run)


def _median(run: Run, group: Group, method: str, rows: pd.DataFrame) -> Iterator[Number]:
    first = rows.iloc[0]
    where = (group.prefix(run, method), origin(run, group.dataset), group.selector(method))
    note = "" if first["answer"] in ("same", "n/a") else str(first["answer"])
    values = rows["value"].dropna().to_numpy()
    if not values.size:
        yield make_number(*where, first["unit"], float("nan"), text=note, note=note)
        return
    middle = (_mean_interval if run.study in _WINDOWS else median_interval)(values)
    yield make_number(*where, first["unit"], *middle[:3], note=note)
    by_object = group.quantity in _PER_OBJECT and run.study not in _BY_FRAME
    if first["unit"] == "ms" and group.n > 0 and by_object:
        per_object = [1000 * end / group.n for end in middle[:3]]
        yield make_number(f"{where[0]}.per_object", *where[1:], "us", *per_object, note="median / n")


def _mean_interval(values: np.ndarray) -> tuple[float, float, float]:
    """Return the mean and its 95 % interval by Student's t; NaN for a single window."""
    mean = float(values.mean())
    if values.size < 2:
        return mean, math.nan, math.nan
    reach = t_quantile(0.95, values.size - 1) * float(values.std(ddof=1)) / math.sqrt(values.size)
    return mean, mean - reach, mean + reach


def _discarded(run: Run) -> Iterator[Number]:
    """Yield how many blocks a whole run discarded, or why that can't be known."""
    rows = run.rows[run.rows["quantity"] == "discarded_blocks"]
    if rows.empty:
        return
    known = rows[rows["value"].notna()]
    where = (
        f"{run.scope}.{run.study}.discarded_blocks",
        origin(run, "n/a"),
        "quantity=discarded_blocks, all groups",
    )
    if known.empty:
        why = str(rows["answer"].iloc[0])
        yield make_number(*where, "count", float("nan"), text=why, note=why)
        return
    note = "sum over groups" if len(known) == len(rows) else f"sum over {len(known)} of {len(rows)} groups"
    yield make_number(*where, "count", float(known["value"].sum()), note=note)
