"""Stage timing: where the time of a box goes, and what launches cost."""

from collections.abc import Callable, Iterator

from octopus_study.measure.dependence import process_count
from octopus_study.measure.line import slope
from octopus_study.measure.statistics import median_interval, unpaired_ratio_interval
from octopus_study.names import METHODS, QUANTITIES, SAVING_STEPS, SHORT_METHODS, human
from octopus_study.report import captions
from octopus_study.report.frame import PUBLISHED, Frame, Number, joined, make_number, published
from octopus_study.report.published import derived
from octopus_study.report.runs import Run
from octopus_study.report.samples import blocks, by_block, groups
from octopus_study.report.selector import where
from octopus_study.report.studies.stage_timing_figures import CHARTS, JETSON, STUDY, N, stage_key
from octopus_study.report.study import StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.cells import Cell
from octopus_study.report.tables.spec import Spec
from octopus_study.report.tables.writers import Table
from octopus_study.report.view import View, every_view, views

OUTPUT_BYTES = 3 * 224 * 224 * 4
# What is saved -> the slower and the faster method, which differ in their launches alone; launches per box of the
# slower one, of as many as one; and who makes them on a GPU.
_SAVINGS = {
    "launches": ("n-launches", "published", 2, "numba-dispatch"),
    "launches-fused": ("n-launches-fused", "octopus", 1, "cuda-core-launch"),
}
_ON_CPU = "kernel-call"
# What published claims say of growth with the number of boxes: (quantity, from, to).
_GROWTHS = (
    ("build_metadata", 500, 2000),
    ("crop_resize", 500, 2000),
    ("upload_metadata", 100, 2000),
    ("end_to_end over n-launches", 100, 1000),
)


def launch_costs(run: Run) -> Iterator[Number]:
    """Yield slope and intercept of the line through the times of each series of launches."""
    series = run.rows[(run.rows["quantity"] == "launch_series") & run.rows["value"].notna()]
    for method, rows in series.groupby("method", sort=False):
        if rows["n"].nunique() > 1:
            fit = slope(rows["n"], rows["value"] * 1000, blocks=rows["block"])
            key = run.key("launch-overhead", method=str(method))
            source = run.from_rows("n/a", f"quantity=launch_series, method={method}")
            note = "line of Theil and Sen through the medians"
            count, processes = int(rows.groupby("n").size().min()), process_count(by_block(rows))
            rests = (count, processes, processes == 1)
            yield make_number(key.but(quantity="slope"), source, "us", *fit[:3], *rests, note=note)
            yield make_number(key.but(quantity="intercept"), source, "us", fit.intercept)


def savings(run: Run) -> Iterator[Number]:
    """Yield what each step saves, paired per block."""
    for group, rows in groups(run, workload="visdrone", quantity="end_to_end", layer="host"):
        table, source = blocks(rows), group.rows_of(run)
        for name, (slower, faster, *_) in _SAVINGS.items():
            if len(table) and {slower, faster} <= set(table.columns):
                key = run.key(group.workload, group.n, "saving", quantity=name)
                gained = table[slower] - table[faster]
                saved = median_interval(gained)
                note = f"{slower} - {faster}, median of per-block differences"
                yield make_number(key, source, "ms", *saved, note=note)
                if name == "launches":
                    each, key = saved.scaled(1000 / group.n), key.but(quantity="per_object")
                    yield make_number(key, source, "us", *each, note="saving by launches / n")


def explained(frame: Frame) -> Iterator[Number]:
    """Yield slope x launches saved and its share of the saving, with the ends that both intervals allow."""
    for view in every_view(frame, STUDY):
        for saved in (one for name in _SAVINGS for one in view.select(method="saving", quantity=name)):
            if launch := _launch(view, saved.quantity):
                launches = _SAVINGS[saved.quantity][2] * (saved.n - 1)
                middle, low, high = (end * launches / 1000 for end in (launch.value, launch.low, launch.high))
                source, note = joined(saved, launch), f"slope of {launch.method} x launches saved"
                expected = (middle, low, high, launch.blocks)
                yield make_number(saved.key.derive("expected"), source, "ms", *expected, note=note)
                if saved.low > 0:
                    share = (middle / saved.value, low / saved.high, high / saved.low)
                    rests, note = (saved.blocks, saved.processes), f"{note} / saving"
                    yield make_number(saved.key.derive("explained"), source, "fraction", *share, *rests, note=note)


def _launch(view: View, saving: str) -> Number | None:
    """Return the slope of the launches that a saving saves: of their launcher, or of a CPU's calls."""
    launchers = (_SAVINGS[saving][-1], _ON_CPU)
    slopes = (view.get(view.key("launch-overhead", method=one, quantity="slope")) for one in launchers)
    return next(filter(None, slopes), None)


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
                yield make_number(key, joined(*parts), "fraction", share, *ends, count, note="ratio of medians")


def bandwidths(run: Run) -> Iterator[Number]:
    """Yield the bandwidth limits at the largest buffer, where caches help least."""
    rows = run.rows[(run.rows["quantity"] == "bandwidth") & run.rows["value"].notna()]
    largest = rows[rows["n"] == rows.groupby("method")["n"].transform("max")]
    for method, part in largest.groupby("method", sort=False):
        values = by_block(part)
        source = run.from_rows("n/a", f"quantity=bandwidth, method={method}, n={int(part['n'].iloc[0])}")
        key, limit = run.key("bandwidth", method=str(method)), median_interval(values)
        yield make_number(key, source, "GB/s", *limit)


def growths(run: Run) -> Iterator[Number]:
    """Yield by which factor a value of the published kernels at one number of boxes exceeds that at another; a speed-up
    is a ratio per block."""
    for quantity, few, many in _GROWTHS:
        timed, _, other = quantity.partition(" over ")
        layer = "device" if timed == "crop_resize" else "host"
        samples = {}
        for group, rows in groups(run, workload="visdrone", quantity=timed, layer=layer):
            table = blocks(rows)
            if len(table) and {"published", other or "published"} <= set(table.columns):
                samples[group.n] = table[other] / table["published"] if other else table["published"]
        if few in samples and many in samples:
            name = f"speedup_over_{other}" if other else timed
            key = run.key("visdrone", method="growth", quantity=name, layer=f"n{few}", derived=f"n{many}")
            chosen = where(workload="visdrone", n=(few, many), quantity=timed, layer=layer)
            note = f"median at n={many} / median at n={few}"
            grown = unpaired_ratio_interval(samples[many], samples[few])
            yield make_number(key, run.from_rows(group.dataset, chosen), "ratio", *grown, note=note)


def bounds(frame: Frame) -> Iterator[Number]:
    """Yield the published kernels as a multiple of the write-only bound: the output (float32, three channels) over the
    memory bandwidth stated for the Jetson."""
    bandwidth = frame.find(published("machines", "jetson-orin-nano", "memory_bandwidth"))
    for crop in frame.select(PUBLISHED, STUDY, method="published", quantity="crop_resize") if bandwidth else ():
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
            times = [cells.time_text(frame, key, view.reasons) for view, key in zip(sources, keys, strict=True)]
            rows.append([human(QUANTITIES, quantity), name, *times])
    caption = captions.TABLES["stage_timing"].format(
        n=N, wide=cells.WIDE_NOTE, different=cells.DIFFERENT_NOTE, reasons=machines[0].reasons.note if machines else ""
    )
    header = ["Stage", "Method", f"{JETSON}, as published", *(view.title for view in machines)]
    return Table(caption, header, rows, (0, 1), ("auto", "auto", *("1fr" for _ in sources)))


def _of_launch(say: Callable[[Number], str]) -> Cell:
    return lambda view, key: say(_launch(view, key.quantity))


LAUNCH_OVERHEAD = Spec(
    study=STUDY,
    first="From … to",
    label=lambda view, key: human(SAVING_STEPS, key.quantity),
    cases=lambda view: [
        key
        for key in (view.key("visdrone", N, "saving", quantity=name) for name in _SAVINGS)
        if view.get(key.derive("expected"))
    ],
    columns={
        "Launch": _of_launch(lambda launch: human(METHODS, launch.method)),
        "Slope": _of_launch(cells.with_interval),
        "Saved": lambda view, key: str(_SAVINGS[key.quantity][2] * (N - 1)),
        "Expected": cells.text(derived="expected"),
        "Measured": cells.text(),
        "Share": cells.interval(derived="explained"),
    },
    caption=captions.TABLES["launch_overhead"].format(n=N),
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
