"""What only the stage timing study knows: cost of a launch, parts of the saving, overhead of the metadata."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from octopus.measure.statistics import Slope, median_interval, slope
from octopus.report.derive.samples import Group, blocks, groups, origin
from octopus.report.numbers import Number, make_number
from octopus.report.runs import Run

if TYPE_CHECKING:
    import pandas as pd

# The saving from N launches to Octopus, in two steps: (name, slower method, faster method).
PARTS = (
    ("launches", "n-launches", "published"),
    ("fusion", "published", "octopus"),
    ("total", "n-launches", "octopus"),
)
# The published arm makes two passes per box; one launch makes two in all.
_PASSES = 2


def stage_timing_numbers(run: Run) -> Iterator[Number]:
    """Yield the study's derived numbers."""
    slopes = dict(_slopes(run))
    for method, fit in slopes.items():
        yield from _slope_numbers(run, method, fit)
    for group, rows in groups(run, workload="visdrone", quantity="end_to_end", layer="host"):
        table = blocks(rows)
        yield from _decomposition(run, group, table, slopes)
    yield from _metadata_overhead(run)
    yield from _largest_buffer(run)


def _slopes(run: Run) -> Iterator[tuple[str, Slope]]:
    series = run.rows[(run.rows["quantity"] == "launch_series") & run.rows["value"].notna()]
    for method, rows in series.groupby("method", sort=False):
        if rows["n"].nunique() > 1:
            yield str(method), slope(rows["n"], rows["value"] * 1000)


def _slope_numbers(run: Run, method: str, fit: Slope) -> Iterator[Number]:
    prefix = f"{run.scope}.{run.study}.launch-overhead.{method}"
    rest = (origin(run, "n/a"), f"quantity=launch_series, method={method}, all n")
    yield make_number(
        f"{prefix}.slope", *rest, "us", fit.value, fit.low, fit.high, note="line through the medians"
    )
    yield make_number(f"{prefix}.intercept", *rest, "us", fit.intercept)
    yield make_number(
        f"{prefix}.residual", *rest, "us", fit.residual, note="root mean square distance from the line"
    )
    yield make_number(f"{prefix}.r2", *rest, "", fit.r2)


def _decomposition(run: Run, group: Group, table: pd.DataFrame, slopes: dict[str, Slope]) -> Iterator[Number]:
    """Split the saving per block; the share that launches explain is slope x launches saved / saving."""
    prefix = f"{run.scope}.{run.study}.{group.workload}.n{group.n}.saving"
    rest = (origin(run, group.dataset), group.selector())
    saved = {}
    for part, slower, faster in PARTS:
        if {slower, faster} <= set(table.columns):
            saved[part] = median_interval((table[slower] - table[faster]).to_numpy())
            note = f"{slower} - {faster}, median of per-block differences"
            yield make_number(f"{prefix}.{part}", *rest, "ms", *saved[part][:3], note=note)
    launches = _PASSES * (group.n - 1)
    if "launches" in saved:
        each = [1000 * end / group.n for end in saved["launches"][:3]]
        yield make_number(f"{prefix}.per_object", *rest, "us", *each, note="saving by launches / n")
    for method, fit in slopes.items() if "total" in saved else ():
        yield from _explained(prefix, rest, method, fit.value * launches / 1000, saved, launches)


def _explained(
    prefix: str, rest: tuple, method: str, expected: float, saved: dict, launches: int
) -> Iterator[Number]:
    note = f"slope x {launches} launches"
    yield make_number(f"{prefix}.expected_by_{method}", *rest, "ms", expected, note=note)
    for part, interval in saved.items():
        if part != "fusion" and interval.value > 0:
            share = expected / interval.value
            yield make_number(
                f"{prefix}.{part}_explained_by_{method}", *rest, "fraction", share, note=f"{note} / saving"
            )


def _metadata_overhead(run: Run) -> Iterator[Number]:
    """Yield (build + upload) / end to end of the published kernels; the three are separate measurements."""
    rows = run.rows[
        (run.rows["method"] == "published") & (run.rows["layer"] == "host") & run.rows["value"].notna()
    ]
    middle = rows.groupby(["dataset", "workload", "n", "quantity"])["value"].median().unstack("quantity")
    wanted = ["build_metadata", "upload_metadata", "end_to_end"]
    if not set(wanted) <= set(middle.columns):
        return
    for (dataset, workload, n), row in middle[wanted].dropna().iterrows():
        identifier = f"{run.scope}.{run.study}.{workload}.n{n}.published.metadata_overhead"
        share = (row["build_metadata"] + row["upload_metadata"]) / row["end_to_end"]
        selector = f"workload={workload}, n={n}, method=published, layer=host, quantity in {wanted}"
        yield make_number(
            identifier, origin(run, dataset), selector, "fraction", share, note="ratio of medians"
        )


def _largest_buffer(run: Run) -> Iterator[Number]:
    """Yield the bandwidth limits at the largest buffer, where caches help least."""
    rows = run.rows[(run.rows["quantity"] == "bandwidth") & run.rows["value"].notna()]
    for method, chosen in rows.groupby("method", sort=False):
        n = int(chosen["n"].max())
        limit = median_interval(chosen.loc[chosen["n"] == n, "value"].to_numpy())
        identifier = f"{run.scope}.{run.study}.bandwidth.{method}"
        selector = f"quantity=bandwidth, method={method}, n={n} (largest buffer)"
        low, high = (end if math.isfinite(end) else math.nan for end in limit[1:3])
        yield make_number(identifier, origin(run, "n/a"), selector, "GB/s", limit.value, low, high)
