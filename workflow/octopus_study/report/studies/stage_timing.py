"""Stage timing: where the time of a box goes, what launches cost, and how far the kernels are from the write bound."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from octopus_study.names import BOUND, METHODS, QUANTITIES, SAVING_STEPS, SHORT_METHODS, SUBJECT, human
from octopus_study.report.frame import PUBLISHED, Frame, Key
from octopus_study.report.studies import stage_timing_numbers as numbers
from octopus_study.report.studies.stage_timing_figures import CHARTS, STUDY, N, counts, stage_key
from octopus_study.report.studies.stage_timing_published import CHART
from octopus_study.report.study import StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Row, Spec
from octopus_study.report.tables.writers import MISSING, Table
from octopus_study.report.view import View, views
from octopus_study.units import TIMES

JETSON = "Jetson Orin Nano, as published"
WITHIN_CACHE = "\u00a7"
# The stages in the order of the way of a box, and who is shown in each.
_STAGES = {
    "build_metadata": ("published", "octopus"),
    "upload_metadata": ("published", "octopus"),
    "crop_resize": ("published",),
    "normalize": ("published",),
    "crop_resize_normalize": ("published", "octopus"),
    "end_to_end": ("n-launches", "n-launches-fused", "published", "octopus"),
}
_FORMS = ("opencv", "opencv-inplace", "opencv-table", "opencv-frame")
_ONE_THREAD = (*_FORMS, "octopus")
# (workload, method, other) in the order of the table.
_SPEEDUPS = (
    ("visdrone", "octopus", "published"),
    ("visdrone", "octopus", "n-launches"),
    ("visdrone", "octopus", "n-launches-fused"),
    ("visdrone", "published", "n-launches"),
    *(("visdrone-1thread", "octopus", form) for form in _FORMS),
)
_MEMORY = ("memory_payload", "memory_allocator_peak", "memory_device_delta", "memory_fixed")


def stages(frame: Frame) -> Table:
    """Return every stage at 1000 boxes: the published Jetson values beside each machine."""
    machines = views(frame, STUDY)
    sources = [View(frame, PUBLISHED, STUDY), *machines]
    rows: list[Row] = []
    for quantity, methods in _STAGES.items():
        for method in methods:
            keys = [stage_key(view, N, method, quantity) for view in sources]
            rows += _stage(sources, human(QUANTITIES, quantity), keys)
    for method in _ONE_THREAD:
        keys = [
            view.key("visdrone-1thread", N, method, quantity="end_to_end", layer="host") for view in sources
        ]
        rows += _stage(sources, "End to end, one thread", keys)
    caption = (
        f"Stages at n = {N}, published beside measured: medians over blocks; {cells.WIDE_NOTE}. Kernels are "
        "timed by device events with a cold L2 cache on GPUs, everything else by the host clock. "
        f"{cells.DIFFERENT_NOTE}; the published kernels round to uint8 between their two passes. "
        f"{cells.LAUNCH_BOUND_NOTE}.{machines[0].reasons.note if machines else ''}"
    )
    header = ["Stage", "Method", JETSON, *(view.title for view in machines)]
    return Table(caption, header, rows, (0, 1), ("auto", "auto", *("1fr" for _ in sources)))


def _stage(sources: list[View], name: str, keys: list[Key]) -> list[Row]:
    """Return one row of times, none when no cell has anything to say; a method that can't run says so."""
    shown = [cells.time_text(view.frame, key, view.reasons) for view, key in zip(sources, keys, strict=True)]
    if all(cell == MISSING for cell in shown):
        return []
    known = [number for key in keys if (number := sources[0].frame.find(key))]
    mark = f" {cells.DIFFERENT}" if any(number.differs for number in known) else ""
    return [[name, f"{human(SHORT_METHODS, keys[0].method)}{mark}", *shown]]


def speedups(frame: Frame) -> Table:
    """Return ratios end to end at every count, machine by machine, each with its verdict and noise floor."""
    machines = views(frame, STUDY)
    shown = sorted({n for view in machines for n in counts(view)})
    rows: list[Row] = [JETSON, *_speedups(View(frame, PUBLISHED, STUDY), shown)]
    for view in machines:
        rows += [view.title, *_speedups(view, shown)]
    caption = (
        "Speed-ups end to end at every number of boxes n: medians of per-block ratios. "
        f"{cells.RATIO_NOTE}; {cells.DIFFERENT}: one of the two answers differs from the reference."
    )
    return Table(caption, ["Speed-up", *(f"n = {n}" for n in shown)], rows)


def _speedups(view: View, shown: list[int]) -> Iterator[Row]:
    measured = view.machine != PUBLISHED
    for workload, method, other in _SPEEDUPS:
        key = view.key(workload, None, method, quantity="end_to_end", layer="host")
        key = key if measured else view.key(method=method)
        texts = [cells.ratio_text(view.frame, key.but(n=n), other) for n in shown]
        if any(text != MISSING for text in texts):
            first = "1 thread:" if workload == "visdrone-1thread" else human(SHORT_METHODS, method)
            differs = (measured and "published" in (method, other)) or other == "n-launches"
            mark = f" {cells.DIFFERENT}" if differs else ""
            yield [f"{first} over {human(SHORT_METHODS, other)}{mark}", *texts]


def limits(frame: Frame) -> Table:
    """Return measured bandwidth, and the time of the kernel as a multiple of the time to write its output."""
    machines = views(frame, STUDY)
    shown = sorted({n for view in machines for n in counts(view, "crop_resize_normalize")})
    rows: list[Row] = []
    for view in machines:
        keys = [view.key("bandwidth", method=kind) for kind in ("write", "read", "copy")]
        bandwidth = [cells.number_text(frame, key) for key in keys]
        rows.append([view.title, *bandwidth, *(_bound(view, n) for n in shown)])
    caption = (
        "Measured bandwidth limits, and kernel time / bound time of Octopus: a multiple of the time that filling "
        f"the output takes (1{TIMES} is the write bound), in brackets the share of the bound that it reaches. "
        f"{WITHIN_CACHE}: within the cache, the output is filled at more than {numbers.CACHE_MARGIN:g} times the "
        "measured write limit, so this is no multiple of a memory bound."
    )
    return Table(caption, ["Machine", "Write", "Read", "Copy", *(f"n = {n}" for n in shown)], rows)


def _bound(view: View, n: int) -> str:
    key = stage_key(view, n, SUBJECT, "crop_resize_normalize")
    text = cells.bound_text(view.frame, key)
    return f"{text} {WITHIN_CACHE}" if text != MISSING and within_cache(view.frame, key) else text


def within_cache(frame: Frame, key: Key) -> bool:
    """Say whether the write bound that a kernel is compared with fills its output partly within a cache."""
    return frame.text(key.but(method=BOUND).derive("within_cache")) == "yes"


def _grown(method: str, view: View, key: Key) -> str:
    columns = {"workload": "visdrone", "quantity": key.quantity, "layer": "memory"}
    text = next((number.text for number in view.select(method=method, **columns)), MISSING)
    return view.reasons.cell(text) if text.startswith("unavailable") else text


MEMORY = Spec(
    study=STUDY,
    first="Line",
    label=lambda view, key: human(QUANTITIES, key.quantity),
    cases=lambda view: [view.key(quantity=line) for line in _MEMORY],
    columns={
        human(SHORT_METHODS, method): partial(_grown, method)
        for method in (SUBJECT, "published", "n-launches")
    },
    caption="Memory, four lines that mean different things: bytes computed from shapes; peak of the allocator; growth "
    "of used memory in a fresh process; imports, modules and context. On a CPU the frame exists before the "
    "growth is counted, so it is smaller than the payload by the frame.",
)


def _launched(view: View) -> list[Key]:
    """Return the savings that save launches alone."""
    keys = [view.key("visdrone", N, "saving", quantity=name) for name in numbers.SAVINGS]
    return [key for key in keys if _launcher(view, key)]


def _launcher(view: View, key: Key) -> str:
    return view.text(key.derive("launcher"))


def _slope(view: View, key: Key) -> str:
    slope = view.key("launch-overhead", method=_launcher(view, key), quantity="slope")
    return cells.with_interval(view.frame[slope])


def _share(view: View, key: Key) -> str:
    share = view.get(key.derive("explained"))
    return cells.with_interval(share) if share else MISSING


LAUNCH_OVERHEAD = Spec(
    study=STUDY,
    first="From … to",
    label=lambda view, key: human(SAVING_STEPS, key.quantity),
    cases=_launched,
    columns={
        "Launch": lambda view, key: human(METHODS, _launcher(view, key)),
        "Slope": _slope,
        "Saved": cells.text(derived="launches_saved"),
        "Expected": cells.text(derived="expected"),
        "Measured": cells.text(),
        "Share": _share,
    },
    caption=f"What launches explain at n = {N}. Slope: cost of one launch, from series of 1 to 256 empty kernels with "
    "the argument lists of the real ones, by the line of Theil and Sen. "
    "Expected: slope times launches saved. Share: expected / measured "
    "saving, with the ends that both intervals allow.",
    text_columns=(0, 1),
)
REPORT = StudyReport(
    numbers=(
        numbers.launch_costs,
        numbers.savings,
        numbers.opencv,
        numbers.bandwidths,
        numbers.result_bytes,
        numbers.write_caches,
        numbers.growths,
    ),
    of_published=(numbers.bounds,),
    of_all=(numbers.explained, numbers.launch_shares, numbers.metadata_overhead, numbers.cached_bounds),
    per_object=("build_metadata",),
    tables={
        "stage_timing": stages,
        "speedups": speedups,
        "limits": limits,
        "memory": MEMORY,
        "launch_overhead": LAUNCH_OVERHEAD,
    },
    figures=CHARTS | {"published_comparison": CHART},
)
