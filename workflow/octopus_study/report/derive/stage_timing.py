"""What only the stage timing study knows: cost of a launch, parts of the saving, overhead of the metadata."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from octopus_study.measure.statistics import Interval, Slope, median_interval, slope, unpaired_ratio_interval
from octopus_study.report.derive.samples import Group, blocks, groups, origin
from octopus_study.report.derive.stage_timing_cross import OUTPUT_BYTES
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


class Saving(NamedTuple):
    """What a faster method saves; where it only launches less, its launches and whose launches they are.

    Attributes
    ----------
    name, slower, faster : str
    passes : int
        Launches per object of the slower method and in all of the faster one; 0 where more than launches differ.
    launchers : tuple of str
        Who makes those launches, on a GPU or on a CPU.
    """

    name: str
    slower: str
    faster: str
    passes: int = 0
    launchers: tuple[str, ...] = ()


SAVINGS = (
    Saving("launches", "n-launches", "published", 2, ("numba-dispatch", "kernel-call")),
    Saving("launches-fused", "n-launches-fused", "octopus", 1, ("cuda-core-launch", "kernel-call")),
    Saving("fusion", "published", "octopus"),
    Saving("total", "n-launches", "octopus"),
)
# Filling an output faster than this multiple of the measured write limit stays partly within a cache.
CACHE_MARGIN = 1.2
# What published claims say of growth with the number of boxes: (quantity, from, to).
_GROWTHS = (
    ("build_metadata", 500, 2000),
    ("upload_metadata", 100, 2000),
    ("speedup_over_n-launches", 100, 1000),
)
# Launches of one run end to end: (method, launches per object, launches besides, who makes them).
_RUN_LAUNCHES = (
    ("n-launches", 2, 0, "numba-dispatch"),
    ("n-launches-fused", 1, 0, "cuda-core-launch"),
    ("published", 0, 2, "numba-dispatch"),
    ("octopus", 0, 1, "cuda-core-launch"),
)


def stage_timing_numbers(run: Run) -> Iterator[Number]:
    """Yield the study's derived numbers."""
    slopes = dict(_slopes(run))
    for method, fit in slopes.items():
        yield from _slope_numbers(run, method, fit)
    for group, rows in groups(run, workload="visdrone", quantity="end_to_end", layer="host"):
        yield from _savings(run, group, blocks(rows), slopes)
    yield from _launch_shares(run, slopes)
    yield from _metadata_overhead(run)
    yield from _largest_buffer(run)
    yield from _write_rates(run)
    yield from _growths(run)


def _slopes(run: Run) -> Iterator[tuple[str, Slope]]:
    series = run.rows[(run.rows["quantity"] == "launch_series") & run.rows["value"].notna()]
    for method, rows in series.groupby("method", sort=False):
        if rows["n"].nunique() > 1:
            yield str(method), slope(rows["n"], rows["value"] * 1000)


def _slope_numbers(run: Run, method: str, fit: Slope) -> Iterator[Number]:
    prefix = f"{run.scope}.{run.study}.launch-overhead.{method}"
    rest = (origin(run, "n/a"), f"quantity=launch_series, method={method}, all n")
    yield make_number(
        f"{prefix}.slope",
        *rest,
        "us",
        fit.value,
        fit.low,
        fit.high,
        note="line of Theil and Sen through the medians",
    )
    yield make_number(f"{prefix}.intercept", *rest, "us", fit.intercept)
    yield make_number(
        f"{prefix}.residual", *rest, "us", fit.residual, note="root mean square distance from the line"
    )
    yield make_number(f"{prefix}.r2", *rest, "", fit.r2)


def _savings(run: Run, group: Group, table: pd.DataFrame, slopes: dict[str, Slope]) -> Iterator[Number]:
    """Yield what each step saves, paired per block, and how much of it slope x launches saved explains."""
    prefix = f"{run.scope}.{run.study}.{group.workload}.n{group.n}.saving"
    rest = (origin(run, group.dataset), group.selector())
    for saving in SAVINGS:
        if not {saving.slower, saving.faster} <= set(table.columns):
            continue
        saved = median_interval((table[saving.slower] - table[saving.faster]).to_numpy())
        note = f"{saving.slower} - {saving.faster}, median of per-block differences"
        yield make_number(f"{prefix}.{saving.name}", *rest, "ms", *saved[:3], note=note)
        if saving.name == "launches":
            each = [1000 * end / group.n for end in saved[:3]]
            yield make_number(f"{prefix}.per_object", *rest, "us", *each, note="saving by launches / n")
        launcher = next((name for name in saving.launchers if name in slopes), None)
        if launcher:
            launches = saving.passes * (group.n - 1)
            yield from _explained(
                f"{prefix}.{saving.name}", rest, launcher, launches, slopes[launcher], saved
            )


def _explained(
    prefix: str, rest: tuple, launcher: str, launches: int, fit: Slope, saved: Interval
) -> Iterator[Number]:
    """Yield slope x launches saved and its share of the saving, with the ends that both intervals allow."""
    expected = [end * launches / 1000 for end in fit[:3]]
    note = f"slope of {launcher} x launches saved"
    yield make_number(f"{prefix}.launcher", *rest, "text", math.nan, text=launcher)
    yield make_number(f"{prefix}.launches_saved", *rest, "count", launches)
    yield make_number(f"{prefix}.expected", *rest, "ms", *expected, note=note)
    if saved.low > 0:
        share = (expected[0] / saved.value, expected[1] / saved.high, expected[2] / saved.low)
        yield make_number(f"{prefix}.explained", *rest, "fraction", *share, note=f"{note} / saving")


def _launch_shares(run: Run, slopes: dict[str, Slope]) -> Iterator[Number]:
    """Yield the part of each run end to end that its launches take, and for the fused kernel launch / (launch
    + kernel): from one half on, launching takes longer than all else."""
    rows = run.rows[(run.rows["workload"] == "visdrone") & run.rows["value"].notna()]
    middle = rows.groupby(["dataset", "n", "quantity", "layer", "method"])["value"].median()
    for (dataset, n, quantity, layer, method), time in middle.items():
        known = next(
            (launch for launch in _RUN_LAUNCHES if launch[0] == method and launch[3] in slopes), None
        )
        if known is None:
            continue
        key = Group(dataset, "visdrone", n, quantity, layer)
        launching = slopes[known[3]].value * (known[1] * n + known[2]) / 1000
        if quantity == "end_to_end":
            share = launching / time
        elif quantity == "crop_resize_normalize" and layer != "host":
            share = launching / (launching + time)
        else:
            continue
        where = (f"{key.prefix(run, method)}.launch_share", origin(run, dataset), key.selector(method))
        yield make_number(*where, "fraction", share, note=f"slope of {known[3]} x launches / time")


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


def _write_rates(run: Run) -> Iterator[Number]:
    """Yield the rate at which the write bound fills its output, and whether a cache takes part of it."""
    limits = run.rows[(run.rows["quantity"] == "bandwidth") & (run.rows["method"] == "write")]
    limits = limits[limits["value"].notna()]
    if limits.empty:
        return
    limit = limits.loc[limits["n"] == limits["n"].max(), "value"].median()
    for group, rows in groups(run, quantity="crop_resize_normalize", method="write-bound"):
        times = rows["value"].dropna().to_numpy()
        if not times.size:
            continue
        rate = [_output_bytes(run) * group.n / time / 1e6 for time in median_interval(times)[:3]]
        prefix = group.prefix(run, "write-bound")
        rest = (origin(run, group.dataset), group.selector("write-bound"))
        yield make_number(
            f"{prefix}.write_rate", *rest, "GB/s", rate[0], rate[2], rate[1], note="output / time"
        )
        cached = "yes" if rate[0] > CACHE_MARGIN * limit else "no"
        note = f"yes: the write rate exceeds {CACHE_MARGIN} x the measured write limit"
        yield make_number(f"{prefix}.within_cache", *rest, "text", math.nan, text=cached, note=note)


def _output_bytes(run: Run) -> int:
    """Return the bytes of one crop as the run was configured; the published size where nothing is recorded."""
    values = run.provenance.get("config", {}).get("values", {})
    size = values.get("crop", {}).get("size")
    return 3 * 4 * size[0] * size[1] if size else OUTPUT_BYTES


def _growths(run: Run) -> Iterator[Number]:
    """Yield by which factor a value of the published kernels at one number of boxes exceeds that at another."""
    for quantity, few, many in _GROWTHS:
        known = dict(_samples_by_count(run, quantity))
        if few in known and many in known:
            grown = unpaired_ratio_interval(known[many][1], known[few][1])
            identifier = f"{run.scope}.{run.study}.visdrone.growth.{quantity}.n{few}.n{many}"
            rest = (
                origin(run, known[many][0].dataset),
                f"method=published, quantity={quantity}, n={many} and n={few}",
            )
            note = f"median at n={many} / median at n={few}"
            yield make_number(identifier, *rest, "ratio", *grown[:3], note=note)


def _samples_by_count(run: Run, quantity: str) -> Iterator[tuple[int, tuple[Group, np.ndarray]]]:
    """Yield the blocks' values of the published kernels at each number of boxes; a speed-up is a ratio per block."""
    ratio = quantity.startswith("speedup_over_")
    measured = "end_to_end" if ratio else quantity
    for group, rows in groups(run, workload="visdrone", quantity=measured, layer="host"):
        table = blocks(rows)
        wanted = ["published", *([quantity.removeprefix("speedup_over_")] if ratio else [])]
        if len(table) and set(wanted) <= set(table.columns):
            values = table[wanted[-1]] / table["published"] if ratio else table["published"]
            yield group.n, (group, values.to_numpy())
