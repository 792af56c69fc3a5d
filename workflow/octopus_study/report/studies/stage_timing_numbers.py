"""What only the stage timing study knows: cost of a launch, parts of the saving, overhead of the metadata."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from octopus_study.measure.line import slope
from octopus_study.measure.statistics import caution, median_interval, processes_said, unpaired_ratio_interval
from octopus_study.names import BOUND
from octopus_study.report.fastest import best_opencv
from octopus_study.report.frame import (
    HERE,
    PUBLISHED,
    Frame,
    Key,
    Number,
    joined,
    make_number,
    make_text,
    published,
)
from octopus_study.report.measured import heeding, inherited
from octopus_study.report.published import derived
from octopus_study.report.runs import Run
from octopus_study.report.samples import RESAMPLED, alone, blocks, by_block, groups, noted, pivot
from octopus_study.report.selector import either, where
from octopus_study.report.view import View, every_view

if TYPE_CHECKING:
    import pandas as pd

STUDY = "stage_timing"
OUTPUT_BYTES = 3 * 224 * 224 * 4
# Filling an output faster than this multiple of the measured write limit stays partly within a cache.
CACHE_MARGIN = 1.2


# What is saved -> the slower and the faster method.
SAVINGS = {
    "launches": ("n-launches", "published"),
    "launches-fused": ("n-launches-fused", "octopus"),
    "fusion": ("published", "octopus"),
}
# Where nothing but the number of launches differs, slope x launches saved tells how much of the saving they are.
_BY_LAUNCHES = ("launches", "launches-fused")
# Launches of one run end to end: method -> (launches per object, launches besides, who makes them on a GPU).
_LAUNCHES = {
    "n-launches": (2, 0, "numba-dispatch"),
    "n-launches-fused": (1, 0, "cuda-core-launch"),
    "published": (0, 2, "numba-dispatch"),
    "octopus": (0, 1, "cuda-core-launch"),
}
# What published claims say of growth with the number of boxes: (quantity, from, to).
_GROWTHS = (
    ("build_metadata", 500, 2000),
    ("crop_resize", 500, 2000),
    ("upload_metadata", 100, 2000),
    ("speedup_over_n-launches", 100, 1000),
)
_ON_CPU = "kernel-call"
_KERNEL = ("crop_resize_normalize", "device")


def launch_costs(run: Run) -> Iterator[Number]:
    """Yield slope and intercept of the line through the times of each series of launches."""
    series = run.rows[(run.rows["quantity"] == "launch_series") & run.rows["value"].notna()]
    for method, rows in series.groupby("method", sort=False):
        if rows["n"].nunique() > 1:
            fit = slope(rows["n"], rows["value"] * 1000, blocks=rows["block"])
            key = run.key("launch-overhead", method=str(method))
            source = run.from_rows("n/a", f"quantity=launch_series, method={method}")
            heeds = processes_said(by_block(rows)) or f"{RESAMPLED} both"
            note = f"line of Theil and Sen through the medians; {heeds}"
            count = int(rows.groupby("n").size().min())
            yield make_number(key.but(quantity="slope"), source, "us", *fit[:3], count, note=note)
            yield make_number(key.but(quantity="intercept"), source, "us", fit.intercept)


def opencv(run: Run) -> Iterator[Number]:
    """Yield the fastest form of OpenCV on one thread, and the speed-up over it."""
    for group, rows in groups(run, workload="visdrone-1thread", quantity="end_to_end", layer="host"):
        yield from best_opencv(run, group, pivot(rows))


def savings(run: Run) -> Iterator[Number]:
    """Yield what each step saves, paired per block."""
    for group, rows in groups(run, workload="visdrone", quantity="end_to_end", layer="host"):
        table, source = blocks(rows), group.rows_of(run)
        for name, (slower, faster) in SAVINGS.items():
            if len(table) and {slower, faster} <= set(table.columns):
                key = run.key(group.workload, group.n, "saving", quantity=name)
                gained = table[slower] - table[faster]
                saved = median_interval(gained)
                note = heeding(f"{slower} - {faster}, median of per-block differences", group, gained)
                yield make_number(key, source, "ms", *saved, note=note)
                if name == "launches":
                    each, key = saved.scaled(1000 / group.n), key.but(quantity="per_object")
                    yield make_number(key, source, "us", *each, note="saving by launches / n")


def explained(frame: Frame) -> Iterator[Number]:
    """Yield slope x launches saved and its share of the saving, with the ends that both intervals allow."""
    for view in every_view(frame, STUDY):
        for name in _BY_LAUNCHES:
            slower, faster = SAVINGS[name]
            launch = _slope(view, _LAUNCHES[slower][2]) or _slope(view, _ON_CPU)
            for saved in view.select(method="saving", quantity=name) if launch else ():
                yield from _explained(saved, launch, _launches(slower, saved.n) - _launches(faster, saved.n))


def _explained(saved: Number, launch: Number, launches: int) -> Iterator[Number]:
    key, source = saved.key, joined(saved, launch)
    middle, low, high = expected = [end * launches / 1000 for end in (launch.value, launch.low, launch.high)]
    note = f"slope of {launch.method} x launches saved"
    yield make_text(key.derive("launcher"), source, launch.method)
    yield make_number(key.derive("launches_saved"), source, "count", launches)
    yield make_number(key.derive("expected"), source, "ms", middle, low, high, launch.blocks, note=note)
    if saved.low > 0:
        share = (expected[0] / saved.value, expected[1] / saved.high, expected[2] / saved.low)
        yield make_number(
            key.derive("explained"),
            source,
            "fraction",
            *share,
            saved.blocks,
            note=inherited(f"{note} / saving", saved),
        )


def _launches(method: str, n: int) -> int:
    """Return the launches of one run of n objects."""
    each, besides, _ = _LAUNCHES[method]
    return each * n + besides


def _slope(view: View, launcher: str) -> Number | None:
    return view.get(view.key("launch-overhead", method=launcher, quantity="slope"))


def launch_shares(frame: Frame) -> Iterator[Number]:
    """Yield the part of each run end to end that its launches take, and for the fused kernel launch / (launch
    + kernel): from one half on, launching takes longer than all else."""
    for view in every_view(frame, STUDY):
        for method, (*_, launcher) in _LAUNCHES.items():
            launch = _slope(view, launcher)
            for time in view.select(workload="visdrone", method=method) if launch else ():
                whole = time.quantity == "end_to_end"
                if time.known and (whole or (time.quantity, time.layer) == _KERNEL):
                    launching = launch.value * _launches(method, time.n) / 1000
                    share = launching / (time.value if whole else launching + time.value)
                    note = f"slope of {launcher} x launches / time"
                    key, source = time.key.derive("launch_share"), joined(time, launch)
                    yield make_number(key, source, "fraction", share, note=note)


def metadata_overhead(frame: Frame) -> Iterator[Number]:
    """Yield (build + upload) / end to end of the published kernels, with the ends that all three intervals allow: they
    are separate measurements."""
    quantities = ["build_metadata", "upload_metadata", "end_to_end"]
    for view in every_view(frame, STUDY):
        for whole in view.select(method="published", quantity="end_to_end", layer="host"):
            parts = [part for name in quantities if (part := view.get(whole.key.but(quantity=name)))]
            if len(parts) == len(quantities):
                build, upload, time = parts
                share = (build.value + upload.value) / time.value
                ends = ((build.low + upload.low) / time.high, (build.high + upload.high) / time.low)
                count = min((part.blocks for part in parts if part.blocks), default=None)
                source = joined(*parts)
                key = whole.key.but(quantity="metadata_overhead", layer="")
                yield make_number(key, source, "fraction", share, *ends, count, note="ratio of medians")


def bandwidths(run: Run) -> Iterator[Number]:
    """Yield the bandwidth limits at the largest buffer, where caches help least."""
    for method, (n, values) in _limits(run).items():
        source = run.from_rows("n/a", f"quantity=bandwidth, method={method}, n={n}")
        key, limit = run.key("bandwidth", method=method), median_interval(values)
        yield make_number(key, source, "GB/s", *limit, note=caution(values))


def _limits(run: Run) -> dict[str, tuple[int, pd.Series]]:
    """Return the size of the largest buffer and the rates measured with it, by kind of access."""
    rows = run.rows[(run.rows["quantity"] == "bandwidth") & run.rows["value"].notna()]
    largest = rows[rows["n"] == rows.groupby("method")["n"].transform("max")]
    chosen = largest.groupby("method", sort=False)
    return {str(method): (int(part["n"].iloc[0]), by_block(part)) for method, part in chosen}


def result_bytes(run: Run) -> Iterator[Number]:
    """Yield the bytes of the batch that the kernels fill: what the time to fill it is predicted from."""
    for group, _ in groups(run, quantity="crop_resize_normalize", method=BOUND, layer="device"):
        key = run.key(group.workload, int(group.n), quantity="result_bytes")
        note = "bytes of one crop x boxes"
        value = float(_output_bytes(run) * group.n)
        yield make_number(key, group.rows_of(run, BOUND), "bytes", value, note=note)


def write_caches(run: Run) -> Iterator[Number]:
    """Yield whether a cache takes part of the output that the write bound fills."""
    limits = _limits(run)
    if "write" not in limits:
        return
    limit = median_interval(limits["write"][1]).value
    limited = where(quantity="bandwidth", method="write", n=limits["write"][0])
    for group, rows in groups(run, quantity="crop_resize_normalize", method=BOUND):
        times = by_block(rows)
        if times.size:
            rate = _output_bytes(run) * group.n / median_interval(times).value / 1e6
            key, source = group.key(run, BOUND).derive("within_cache"), group.rows_of(run, BOUND)
            source = source._replace(selector=either([source.selector, limited]))
            note = f"yes: the write rate exceeds {CACHE_MARGIN} x the measured write limit"
            yield make_text(key, source, "yes" if rate > CACHE_MARGIN * limit else "no", note)


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
            timed = "end_to_end" if "speedup" in quantity else quantity
            selector = where(workload="visdrone", n=(few, many), quantity=timed, layer=_layer(quantity))
            said = processes_said(values) or (alone(values) if _layer(quantity) == "host" else "")
            note = noted(f"median at n={many} / median at n={few}", said)
            grown = unpaired_ratio_interval(values, base)
            yield make_number(key, run.from_rows(dataset, selector), "ratio", *grown, note=note)


def _layer(quantity: str) -> str:
    return "device" if quantity == "crop_resize" else "host"


def _samples_by_count(run: Run, quantity: str) -> Iterator[tuple[int, tuple[str, pd.Series]]]:
    """Yield the blocks' values of the published kernels at each number of boxes; a speed-up is a ratio per block."""
    _, ratio, other = quantity.partition("speedup_over_")
    for group, rows in groups(
        run, workload="visdrone", quantity="end_to_end" if ratio else quantity, layer=_layer(quantity)
    ):
        table = blocks(rows)
        if len(table) and {"published", other or "published"} <= set(table.columns):
            values = table[other] / table["published"] if ratio else table["published"]
            yield group.n, (group.dataset, values)


def bounds(frame: Frame) -> Iterator[Number]:
    """Yield the published kernels as a multiple of the write-only bound: the output (float32, three channels) over the
    memory bandwidth stated for the Jetson."""
    bandwidth = frame.find(published("machines", "jetson-orin-nano", "memory_bandwidth"))
    if bandwidth is None:
        return
    for crop in frame.select(PUBLISHED, STUDY, method="published", quantity="crop_resize"):
        normalize = frame[crop.key.but(quantity="normalize")]
        time = crop.value + normalize.value
        bound = crop.n * OUTPUT_BYTES / (bandwidth.value * 1e6)
        where = {"n": crop.n, "note": f"{OUTPUT_BYTES} bytes per crop at {bandwidth.text}"}
        machine = "jetson-orin-nano"
        yield derived(
            (crop, normalize), machine, "ratio", time / bound, quantity="times_write_bound", **where
        )
        yield derived(
            (crop, normalize), machine, "fraction", bound / time, quantity="share_of_write_bound", **where
        )


def cached_bounds(frame: Frame) -> Iterator[Number]:
    """Yield a sentence that names where the write bound stays within a cache; absent without the stage timings."""
    machines = frame.shown(STUDY)
    if not machines:
        return
    where = {"workload": "visdrone", "method": BOUND, "quantity": "crop_resize_normalize"}
    cached = (
        f"{frame.fact(machine, 'name')} at n = {number.n}"
        for machine in machines
        for number in frame.select(machine, STUDY, derived="within_cache", **where)
        if number.text == "yes"
    )
    places = " and ".join(dict.fromkeys(cached))
    text = f"Partly within the cache, so no memory bound: write bound on {places}." if places else ""
    first = min(machines, key=lambda name: (name != HERE, name))
    source = frame[Key(first, STUDY, quantity="measured_on")].source
    yield make_text(Key("shown", STUDY, quantity="within_cache"), source, text)
