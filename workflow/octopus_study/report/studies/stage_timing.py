"""Stage timing: where the time of a box goes, and what launches cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from octopus_study.measure.line import slope
from octopus_study.measure.statistics import caution, median_interval, processes_said, unpaired_ratio_interval
from octopus_study.names import METHODS, QUANTITIES, SAVING_STEPS, SHORT_METHODS, human
from octopus_study.report.frame import (
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
from octopus_study.report.samples import RESAMPLED, alone, blocks, by_block, groups, noted
from octopus_study.report.selector import where
from octopus_study.report.studies.stage_timing_figures import CHARTS, JETSON, STUDY, N, stage_key
from octopus_study.report.study import StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Spec
from octopus_study.report.tables.writers import Table
from octopus_study.report.view import View, every_view, views

if TYPE_CHECKING:
    import pandas as pd

OUTPUT_BYTES = 3 * 224 * 224 * 4
# What is saved -> the slower and the faster method.
SAVINGS = {
    "launches": ("n-launches", "published"),
    "launches-fused": ("n-launches-fused", "octopus"),
    "fusion": ("published", "octopus"),
}
# Where nothing but the number of launches differs: launches per box of the slower method and launches of the faster
# one, and who makes them on a GPU. Slope x launches saved tells how much of the saving they are.
_LAUNCHES = {"launches": (2, "numba-dispatch"), "launches-fused": (1, "cuda-core-launch")}
_ON_CPU = "kernel-call"
# What published claims say of growth with the number of boxes: (quantity, from, to).
_GROWTHS = (
    ("build_metadata", 500, 2000),
    ("crop_resize", 500, 2000),
    ("upload_metadata", 100, 2000),
    ("speedup_over_n-launches", 100, 1000),
)


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
        for name, (each, launcher) in _LAUNCHES.items():
            launch = _slope(view, launcher) or _slope(view, _ON_CPU)
            for saved in view.select(method="saving", quantity=name) if launch else ():
                yield from _explained(saved, launch, each * (saved.n - 1))


def _explained(saved: Number, launch: Number, launches: int) -> Iterator[Number]:
    key, source = saved.key, joined(saved, launch)
    middle, low, high = (end * launches / 1000 for end in (launch.value, launch.low, launch.high))
    note = f"slope of {launch.method} x launches saved"
    yield make_text(key.derive("launcher"), source, launch.method)
    yield make_number(key.derive("launches_saved"), source, "count", launches)
    yield make_number(key.derive("expected"), source, "ms", middle, low, high, launch.blocks, note=note)
    if saved.low > 0:
        share = (middle / saved.value, low / saved.high, high / saved.low, saved.blocks)
        note = inherited(f"{note} / saving", saved)
        yield make_number(key.derive("explained"), source, "fraction", *share, note=note)


def _slope(view: View, launcher: str) -> Number | None:
    return view.get(view.key("launch-overhead", method=launcher, quantity="slope"))


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
                key = whole.key.but(quantity="metadata_overhead", layer="")
                yield make_number(
                    key, joined(*parts), "fraction", share, *ends, count, note="ratio of medians"
                )


def bandwidths(run: Run) -> Iterator[Number]:
    """Yield the bandwidth limits at the largest buffer, where caches help least."""
    rows = run.rows[(run.rows["quantity"] == "bandwidth") & run.rows["value"].notna()]
    largest = rows[rows["n"] == rows.groupby("method")["n"].transform("max")]
    for method, part in largest.groupby("method", sort=False):
        values = by_block(part)
        source = run.from_rows("n/a", f"quantity=bandwidth, method={method}, n={int(part['n'].iloc[0])}")
        key, limit = run.key("bandwidth", method=str(method)), median_interval(values)
        yield make_number(key, source, "GB/s", *limit, note=caution(values))


def growths(run: Run) -> Iterator[Number]:
    """Yield by which factor a value of the published kernels at one number of boxes exceeds that at another."""
    for quantity, few, many in _GROWTHS:
        layer = "device" if quantity == "crop_resize" else "host"
        samples = dict(_samples_by_count(run, quantity, layer))
        if few in samples and many in samples:
            (dataset, values), (_, base) = samples[many], samples[few]
            key = run.key("visdrone", method="growth", quantity=quantity, layer=f"n{few}", derived=f"n{many}")
            timed = "end_to_end" if "speedup" in quantity else quantity
            source = run.from_rows(
                dataset, where(workload="visdrone", n=(few, many), quantity=timed, layer=layer)
            )
            said = processes_said(values) or (alone(values) if layer == "host" else "")
            note = noted(f"median at n={many} / median at n={few}", said)
            yield make_number(key, source, "ratio", *unpaired_ratio_interval(values, base), note=note)


def _samples_by_count(run: Run, quantity: str, layer: str) -> Iterator[tuple[int, tuple[str, pd.Series]]]:
    """Yield the blocks' values of the published kernels at each number of boxes; a speed-up is a ratio per block."""
    _, ratio, other = quantity.partition("speedup_over_")
    timed = "end_to_end" if ratio else quantity
    for group, rows in groups(run, workload="visdrone", quantity=timed, layer=layer):
        table = blocks(rows)
        if len(table) and {"published", other or "published"} <= set(table.columns):
            values = table[other] / table["published"] if ratio else table["published"]
            yield group.n, (group.dataset, values)


def bounds(frame: Frame) -> Iterator[Number]:
    """Yield the published kernels as a multiple of the write-only bound: the output (float32, three channels) over the
    memory bandwidth stated for the Jetson."""
    bandwidth = frame.find(published("machines", "jetson-orin-nano", "memory_bandwidth"))
    for crop in (
        frame.select(PUBLISHED, STUDY, method="published", quantity="crop_resize") if bandwidth else ()
    ):
        passes = (crop, frame[crop.key.but(quantity="normalize")])
        times = sum(part.value for part in passes) / (crop.n * OUTPUT_BYTES / (bandwidth.value * 1e6))
        note = f"{OUTPUT_BYTES} bytes per crop at {bandwidth.text}"
        about = {"n": crop.n, "quantity": "times_write_bound", "note": note}
        yield derived(passes, "jetson-orin-nano", "ratio", times, **about)


# The stages in the order of the way of a box, and who is shown in each.
_STAGES = {
    "build_metadata": ("published", "octopus"),
    "upload_metadata": ("published", "octopus"),
    "crop_resize": ("published",),
    "normalize": ("published",),
    "crop_resize_normalize": ("published", "octopus"),
    "end_to_end": ("n-launches", "n-launches-fused", "published", "octopus"),
}


def stages(frame: Frame) -> Table:
    """Return every stage at 1000 boxes: the published Jetson values beside each machine."""
    machines = views(frame, STUDY)
    sources, rows = [View(frame, PUBLISHED, STUDY), *machines], []
    for quantity, methods in _STAGES.items():
        for method in methods:
            keys = [stage_key(view, N, method, quantity) for view in sources]
            differs = any(number.differs for key in keys if (number := frame.find(key)))
            name = f"{human(SHORT_METHODS, method)}{f' {cells.DIFFERENT}' if differs else ''}"
            times = [
                cells.time_text(frame, key, view.reasons) for view, key in zip(sources, keys, strict=True)
            ]
            rows.append([human(QUANTITIES, quantity), name, *times])
    caption = (
        f"Stages at n = {N}, published beside measured: medians over blocks; {cells.WIDE_NOTE}. Kernels are "
        "timed by device events with a cold L2 cache on GPUs, everything else by the host clock. "
        f"{cells.DIFFERENT_NOTE}; the published kernels round to uint8 between their two passes."
        f"{machines[0].reasons.note if machines else ''}"
    )
    header = ["Stage", "Method", f"{JETSON}, as published", *(view.title for view in machines)]
    return Table(caption, header, rows, (0, 1), ("auto", "auto", *("1fr" for _ in sources)))


def _launcher(view: View, key: Key) -> str:
    return view.text(key.derive("launcher"))


def _slope_text(view: View, key: Key) -> str:
    slope = view.key("launch-overhead", method=_launcher(view, key), quantity="slope")
    return cells.with_interval(view.frame[slope])


LAUNCH_OVERHEAD = Spec(
    study=STUDY,
    first="From … to",
    label=lambda view, key: human(SAVING_STEPS, key.quantity),
    cases=lambda view: [
        key for name in SAVINGS if _launcher(view, key := view.key("visdrone", N, "saving", quantity=name))
    ],
    columns={
        "Launch": lambda view, key: human(METHODS, _launcher(view, key)),
        "Slope": _slope_text,
        "Saved": cells.text(derived="launches_saved"),
        "Expected": cells.text(derived="expected"),
        "Measured": cells.text(),
        "Share": cells.interval(derived="explained"),
    },
    caption=f"What launches explain at n = {N}. Slope: cost of one launch, from series of 1 to 256 empty kernels with "
    "the argument lists of the real ones, by the line of Theil and Sen. "
    "Expected: slope times launches saved. Share: expected / measured "
    "saving, with the ends that both intervals allow.",
    text_columns=(0, 1),
)
REPORT = StudyReport(
    numbers=(launch_costs, savings, bandwidths, growths),
    of_published=(bounds,),
    of_all=(explained, metadata_overhead),
    per_object=("build_metadata",),
    tables={"stage_timing": stages, "launch_overhead": LAUNCH_OVERHEAD},
    figures=CHARTS,
)
