"""What only the stage timing study knows: cost of a launch, parts of the saving, overhead of the metadata."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from octopus_study.measure.statistics import Slope, median_interval, slope, unpaired_ratio_interval
from octopus_study.report.frame import HERE, PUBLISHED, Frame, Key, Number, make_number, make_text, published
from octopus_study.report.measured import BOUND
from octopus_study.report.published import derived
from octopus_study.report.runs import Run
from octopus_study.report.samples import Group, blocks, groups, pivot

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

OUTPUT_BYTES = 3 * 224 * 224 * 4
# Filling an output faster than this multiple of the measured write limit stays partly within a cache.
CACHE_MARGIN = 1.2


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
# What published claims say of growth with the number of boxes: (quantity, from, to).
_GROWTHS = (
    ("build_metadata", 500, 2000),
    ("upload_metadata", 100, 2000),
    ("speedup_over_n-launches", 100, 1000),
)
# Launches of one run end to end: method -> (launches per object, launches besides, who makes them).
_RUN_LAUNCHES = {
    "n-launches": (2, 0, "numba-dispatch"),
    "n-launches-fused": (1, 0, "cuda-core-launch"),
    "published": (0, 2, "numba-dispatch"),
    "octopus": (0, 1, "cuda-core-launch"),
}


def slopes(run: Run) -> dict[str, Slope]:
    """Return the line through the times of each series of launches, in microseconds."""
    series = run.rows[(run.rows["quantity"] == "launch_series") & run.rows["value"].notna()]
    return {
        str(method): slope(rows["n"], rows["value"] * 1000)
        for method, rows in series.groupby("method", sort=False)
        if rows["n"].nunique() > 1
    }


def launch_costs(run: Run) -> Iterator[Number]:
    """Yield slope and intercept of each series of launches."""
    for method, fit in slopes(run).items():
        key = run.key("launch-overhead", method=method)
        source = run.from_rows("n/a", f"quantity=launch_series, method={method}, all n")
        note = "line of Theil and Sen through the medians"
        yield make_number(key.but(quantity="slope"), source, "us", fit.value, fit.low, fit.high, note=note)
        yield make_number(key.but(quantity="intercept"), source, "us", fit.intercept)


def savings(run: Run) -> Iterator[Number]:
    """Yield what each step saves, paired per block, and how much of it slope x launches saved explains."""
    fits = slopes(run)
    for group, rows in groups(run, workload="visdrone", quantity="end_to_end", layer="host"):
        table = blocks(rows)
        for saving in SAVINGS:
            if {saving.slower, saving.faster} <= set(table.columns):
                yield from _saving(run, group, table[saving.slower] - table[saving.faster], saving, fits)


def _saving(
    run: Run, group: Group, saved: pd.Series, saving: Saving, fits: dict[str, Slope]
) -> Iterator[Number]:
    key = run.key(group.workload, group.n, "saving", quantity=saving.name)
    source, middle = group.rows_of(run), median_interval(saved.to_numpy())[:3]
    note = f"{saving.slower} - {saving.faster}, median of per-block differences"
    yield make_number(key, source, "ms", *middle, note=note)
    if saving.name == "launches":
        each = [1000 * end / group.n for end in middle]
        yield make_number(key.but(quantity="per_object"), source, "us", *each, note="saving by launches / n")
    launcher = next((name for name in saving.launchers if name in fits), None)
    if launcher is None:
        return
    launches = saving.passes * (group.n - 1)
    expected = [end * launches / 1000 for end in fits[launcher][:3]]
    note = f"slope of {launcher} x launches saved"
    yield make_text(key.derive("launcher"), source, launcher)
    yield make_number(key.derive("launches_saved"), source, "count", launches)
    yield make_number(key.derive("expected"), source, "ms", *expected, note=note)
    value, low, high = middle
    if low > 0:
        # The ends that both intervals allow.
        share = (expected[0] / value, expected[1] / high, expected[2] / low)
        yield make_number(key.derive("explained"), source, "fraction", *share, note=f"{note} / saving")


def launch_shares(run: Run) -> Iterator[Number]:
    """Yield the part of each run end to end that its launches take, and for the fused kernel launch / (launch
    + kernel): from one half on, launching takes longer than all else."""
    fits = slopes(run)
    for group, rows in groups(run, workload="visdrone", unit="ms"):
        whole = group.quantity == "end_to_end"
        if not whole and (group.quantity, group.layer) != ("crop_resize_normalize", "device"):
            continue
        for method, time in pivot(rows).median().items():
            each, besides, launcher = _RUN_LAUNCHES.get(method, (0, 0, ""))
            if launcher in fits:
                launching = fits[launcher].value * (each * group.n + besides) / 1000
                share = launching / (time if whole else launching + time)
                where = (group.key(run, method).derive("launch_share"), group.rows_of(run, method))
                yield make_number(*where, "fraction", share, note=f"slope of {launcher} x launches / time")


def metadata_overhead(run: Run) -> Iterator[Number]:
    """Yield (build + upload) / end to end of the published kernels; the three are separate measurements."""
    rows = run.rows[(run.rows["method"] == "published") & (run.rows["layer"] == "host")]
    rows, wanted = rows[rows["value"].notna()], ["build_metadata", "upload_metadata", "end_to_end"]
    middle = rows.groupby(["dataset", "workload", "n", "quantity"])["value"].median().unstack("quantity")
    if not set(wanted) <= set(middle.columns):
        return
    for (dataset, workload, n), (build, upload, whole) in middle[wanted].dropna().iterrows():
        selector = f"workload={workload}, n={n}, method=published, layer=host, quantity in {wanted}"
        key = run.key(workload, n, "published", quantity="metadata_overhead")
        where = (key, run.from_rows(dataset, selector), "fraction")
        yield make_number(*where, (build + upload) / whole, note="ratio of medians")


def bandwidths(run: Run) -> Iterator[Number]:
    """Yield the bandwidth limits at the largest buffer, where caches help least."""
    for method, (n, values) in _limits(run).items():
        limit = median_interval(values)
        source = run.from_rows("n/a", f"quantity=bandwidth, method={method}, n={n} (largest buffer)")
        ends = (end if math.isfinite(end) else math.nan for end in limit[1:3])
        yield make_number(run.key("bandwidth", method=method), source, "GB/s", limit.value, *ends)


def _limits(run: Run) -> dict[str, tuple[int, np.ndarray]]:
    """Return the size of the largest buffer and the rates measured with it, by kind of access."""
    rows = run.rows[(run.rows["quantity"] == "bandwidth") & run.rows["value"].notna()]
    largest = rows[rows["n"] == rows.groupby("method")["n"].transform("max")]
    chosen = largest.groupby("method", sort=False)
    return {str(method): (int(part["n"].iloc[0]), part["value"].to_numpy()) for method, part in chosen}


def write_rates(run: Run) -> Iterator[Number]:
    """Yield the rate at which the write bound fills its output, and whether a cache takes part of it."""
    limits = _limits(run)
    if "write" not in limits:
        return
    limit = median_interval(limits["write"][1]).value
    for group, rows in groups(run, quantity="crop_resize_normalize", method=BOUND):
        times = rows["value"].dropna().to_numpy()
        if times.size:
            rates = [_output_bytes(run) * group.n / time / 1e6 for time in median_interval(times)[:3]]
            key, source = group.key(run, BOUND), group.rows_of(run, BOUND)
            value, high, low = rates
            yield make_number(
                key.derive("write_rate"), source, "GB/s", value, low, high, note="output / time"
            )
            note = f"yes: the write rate exceeds {CACHE_MARGIN} x the measured write limit"
            cached = "yes" if value > CACHE_MARGIN * limit else "no"
            yield make_text(key.derive("within_cache"), source, cached, note)


def _output_bytes(run: Run) -> int:
    """Return the bytes of one crop as the run was configured; the published size where nothing is recorded."""
    values = run.provenance.get("config", {}).get("values", {})
    size = values.get("crop", {}).get("size")
    return 3 * 4 * size[0] * size[1] if size else OUTPUT_BYTES


def growths(run: Run) -> Iterator[Number]:
    """Yield by which factor a value of the published kernels at one number of boxes exceeds that at another."""
    for quantity, few, many in _GROWTHS:
        samples = dict(_samples_by_count(run, quantity))
        if few in samples and many in samples:
            (dataset, values), (_, base) = samples[many], samples[few]
            key = run.key("visdrone", method="growth", quantity=quantity, layer=f"n{few}", derived=f"n{many}")
            selector = f"method=published, quantity={quantity}, n={many} and n={few}"
            note = f"median at n={many} / median at n={few}"
            grown = unpaired_ratio_interval(values, base)[:3]
            yield make_number(key, run.from_rows(dataset, selector), "ratio", *grown, note=note)


def _samples_by_count(run: Run, quantity: str) -> Iterator[tuple[int, tuple[str, np.ndarray]]]:
    """Yield the blocks' values of the published kernels at each number of boxes; a speed-up is a ratio per block."""
    _, ratio, other = quantity.partition("speedup_over_")
    for group, rows in groups(
        run, workload="visdrone", quantity="end_to_end" if ratio else quantity, layer="host"
    ):
        table = blocks(rows)
        if len(table) and {"published", other or "published"} <= set(table.columns):
            values = table[other] / table["published"] if ratio else table["published"]
            yield group.n, (group.dataset, values.to_numpy())


def bounds(frame: Frame) -> Iterator[Number]:
    """Yield the published kernels as a multiple of the write-only bound: the output (float32, three channels) over the
    memory bandwidth stated for the Jetson."""
    bandwidth = frame.find(published("machines", "jetson-orin-nano", "memory_bandwidth"))
    if bandwidth is None:
        return
    for crop in frame.select(PUBLISHED, "stage_timing", method="published", quantity="crop_resize"):
        time = crop.value + frame[crop.key.but(quantity="normalize")].value
        bound = crop.n * OUTPUT_BYTES / (bandwidth.value * 1e6)
        where = {"n": crop.n, "note": f"{OUTPUT_BYTES} bytes per crop at {bandwidth.text}"}
        machine = "jetson-orin-nano"
        yield derived(crop, machine, "ratio", time / bound, quantity="times_write_bound", **where)
        yield derived(crop, machine, "fraction", bound / time, quantity="share_of_write_bound", **where)


def cached_bounds(frame: Frame) -> Iterator[Number]:
    """Yield a sentence that names where the write bound stays within a cache; absent without the stage timings."""
    machines = frame.machines("stage_timing")
    if not machines:
        return
    where = {"workload": "visdrone", "method": BOUND, "quantity": "crop_resize_normalize"}
    cached = (
        f"{frame.fact(machine, 'name')} at n = {number.n}"
        for machine in machines
        for number in frame.select(machine, "stage_timing", derived="within_cache", **where)
        if number.text == "yes"
    )
    places = " and ".join(dict.fromkeys(cached))
    text = f"Partly within the cache, so no memory bound: write bound on {places}." if places else ""
    first = min(machines, key=lambda name: (name != HERE, name))
    source = frame[Key(first, "stage_timing", quantity="measured_on")].source
    yield make_text(Key("shown", "stage_timing", quantity="within_cache"), source, text)
