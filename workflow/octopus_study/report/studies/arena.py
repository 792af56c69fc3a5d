"""The arena: Octopus beside every peer on the same boxes, and its kernel step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from octopus_study.names import ARENA_METHODS, ARENA_WORKLOADS, BOUND, LAYERS, QUANTITIES, human
from octopus_study.report.fastest import LIKE, subject_of
from octopus_study.report.frame import Frame, Key, published
from octopus_study.report.measured import padded_float32
from octopus_study.report.studies import arena_kernel, arena_roads
from octopus_study.report.studies import arena_numbers as numbers
from octopus_study.report.studies import arena_view as arena
from octopus_study.report.studies.arena_figures import CHARTS
from octopus_study.report.studies.arena_view import PUBLISHED_COUNT, STUDY, Column, all_shown, shown
from octopus_study.report.study import StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Row, Spec
from octopus_study.report.tables.writers import MISSING, Table
from octopus_study.report.view import View, views

NOT_SHOWN = "No run of this study is shown."
_VERDICT_NOTE = f"faster unless said otherwise, {cells.LOOSE_NOTE}"
_IMAGE_NOTE = (
    "Image: reads across the edge of a box, and is compared with Octopus and a reference that do so too"
)


def _unavailable(why: str) -> list[Row]:
    return [f"Unavailable here. {why}"] if why else []


def _times(columns: Mapping[Column, str], what: str, absent: str, gpu: bool | None = None) -> Spec:
    """Return the table of every method: answer, times, and speed-ups of Octopus; `gpu` is for which machines."""

    def answer(view: View, case: Key) -> str:
        text = arena.answer_of(view, all_shown(view, columns), case.method)
        if case.method.startswith(BOUND):
            return MISSING
        image = ", image" if case.method in (*LIKE, *LIKE.values()) else ""
        if text == "same":
            return f"{text}{image}"
        return text and f"other{image} ({view.reasons.letter(text)})"

    def cases(view: View) -> list[Key]:
        on_device = shown(view, "visdrone", "device") is not None
        keys = all_shown(view, columns) if gpu in (None, on_device) else []
        return [view.key(method=method) for method in arena.measured(view, *keys)]

    def missing(view: View) -> list[Row]:
        return _unavailable(arena.without_time(view, all_shown(view, columns)))

    return Spec(
        study=STUDY,
        first="Method",
        label=lambda view, case: human(ARENA_METHODS, case.method),
        columns={
            "Answer": answer,
            **{title: partial(arena.time, column) for column, title in columns.items()},
            **{f"{title}, speed-up": partial(arena.speedup, column) for column, title in columns.items()},
        },
        cases=cases,
        title=partial(arena.title, columns),
        after=missing,
        caption=f"{what}. Medians in ms with intervals of 95 %, and speed-ups: time of the method / time of Octopus, "
        f"{_VERDICT_NOTE}. {_IMAGE_NOTE}.",
        absent=f"{what}. {absent}",
        text_columns=(0, 1),
        # A cell over all columns would stretch those that are as wide as their content.
        # No interval of a speed-up by events was wide so far.
        widths=(
            *("2.5fr", "1.05fr", *("2.1fr" for _ in columns)),
            *("1.4fr" if layer == "device" else "2.3fr" for _, layer in columns),
        ),
    )


def _on_layers(workload: str, absent: str, gpu: bool | None) -> Spec:
    what = (
        f"Arena, {human(ARENA_WORKLOADS, workload)}. Device: kernels alone, by events with a cold L2. "
        "Host: from boxes on the host to the synchronised result. Pipeline: also the upload of the frame and the "
        "download of the result"
    )
    return _times({(workload, layer): title for layer, title in LAYERS.items()}, what, absent, gpu)


def counts(frame: Frame) -> Table:
    """Return speed-ups of Octopus over every method, over the number of boxes."""
    machines = views(frame, STUDY)
    every = sorted({key.n for view in machines for key in arena.all_comparisons(view)})
    rows: list[Row] = []
    for view in machines:
        for column in (("visdrone", "device"), ("visdrone", "host"), ("uniform", "device")):
            rows += _count_rows(view, arena.comparisons(view, *column), every)
    caption = (
        f"Speed-up of Octopus over each method by number of boxes n: medians of per-block ratios, {_VERDICT_NOTE}. "
        f"{_IMAGE_NOTE}. {cells.DIFFERENT_NOTE}. {MISSING}: not measured.{machines[0].reasons.note if machines else ''}"
    )
    header = ["Method", *(f"n = {n}" for n in every)]
    return Table(caption if rows else f"Speed-ups. {NOT_SHOWN}", header, rows)


def _count_rows(view: View, keys: list[Key], every: list[int]) -> Iterator[Row]:
    lines: list[Row] = []
    for method, times in arena.measured(view, *keys).items():
        cases = [keys[0].but(n=n, method=subject_of(method)) for n in every]
        texts = [cells.versus_text(view.frame, case, method, view.reasons, loose=True) for case in cases]
        if not all(text.startswith(MISSING) for text in texts):
            mark = f" {cells.DIFFERENT}" if arena.differs(times) else ""
            lines.append([f"{human(ARENA_METHODS, method)}{mark}", *texts])
    if lines:
        where = f"{human(ARENA_WORKLOADS, keys[0].workload)}, {LAYERS[keys[0].layer].lower()}"
        yield f"{view.title}: {where}"
        yield from lines


_MEMORY_COLUMNS = (*arena.MEMORY_LINES[:3], "memory_beyond_payload", arena.MEMORY_LINES[3])


def _memory_cases(view: View) -> Iterator[Key | str]:
    """Yield the methods with a line of memory, and those without one; a quick run measured none."""
    methods = [(lines[arena.MEMORY_LINES[0]].key, lines) for lines in arena.memory_lines(view).values()]
    if methods:
        yield f"{view.title}: n = {methods[0][0].n}"
    yield from (key for key, lines in methods if arena.has_memory(lines))
    yield from _unavailable(arena.without_memory(view))


def _bytes(line: str, view: View, key: Key) -> str:
    return arena.entry(view, key.but(quantity=line), View.text)


MEMORY = Spec(
    study=STUDY,
    first="Method",
    label=lambda view, key: human(ARENA_METHODS, key.method),
    columns={
        human(QUANTITIES | {"memory_beyond_payload": "Beyond payload"}, line): partial(_bytes, line)
        for line in _MEMORY_COLUMNS
    },
    cases=_memory_cases,
    title=lambda view: "",
    caption="Memory of each method in a process of its own, VisDrone boxes. Payload: frame, boxes and result, from "
    "their shapes. Allocator peak: most that the method's own allocator held. Device delta: growth of used memory. "
    "Beyond payload: device delta less payload; on a CPU the frame exists before the growth is counted, and what works "
    "on the host beside a GPU has its payload there. Fixed: imports, modules and context.",
    absent=f"Memory. {NOT_SHOWN}",
    widths=("2fr", *("1fr" for _ in _MEMORY_COLUMNS)),
)
# Published values of padded float32 batches and their waste, at the published count.
_PUBLISHED = {
    "uniform": (published("arena", "uniform-256", "tensorrt", "padded_input"),),
    "visdrone": (
        published("arena", "visdrone", "tensorrt", "padded_input"),
        published("arena", "visdrone", "tensorrt", "padding_waste"),
    ),
}


def padding(frame: Frame) -> Table:
    """Return what padding the boxes to the largest wastes; runs with equal rows share them."""
    sections: dict[tuple[tuple[str, ...], ...], list[View]] = {}
    for view in views(frame, STUDY):
        sections.setdefault(tuple(_padding_rows(view)), []).append(view)
    rows: list[Row] = []
    for lines, machines in sections.items():
        datasets = dict.fromkeys(view.fact("dataset") for view in machines)
        rows += [f"{', '.join(view.name for view in machines)}: {', '.join(datasets)}", *map(list, lines)]
    caption = (
        "Bytes of the boxes as uint8 with three channels, as they are and padded to the largest; the share that "
        "padding wastes; the padded batch as float32; and what the published table prints of it."
    )
    header = ["Boxes", "n", "As they are", "Padded", "Waste", "Padded, float32", "Published"]
    return Table(caption if rows else f"Padding. {NOT_SHOWN}", header, rows)


def _padding_rows(view: View) -> Iterator[tuple[str, ...]]:
    wasted = view.select(method="padding", quantity="padding_waste", layer="deterministic")
    for key in sorted((number.key for number in wasted), key=lambda key: (key.workload, key.n)):
        columns = [
            key.but(quantity=quantity) for quantity in ("actual_bytes", "padded_bytes", "padding_waste")
        ]
        columns.append(key.but(quantity="padded_float32_bytes", layer=""))
        texts = [view.text(column, MISSING) for column in columns]
        known = _PUBLISHED.get(key.workload, ()) if key.n == PUBLISHED_COUNT else ()
        printed = ", ".join(view.frame.text(name) for name in known if name in view.frame) or MISSING
        yield human(ARENA_WORKLOADS, key.workload), str(key.n), *texts, printed


_CPU_COLUMNS = {
    ("visdrone", "host"): "VisDrone",
    ("visdrone-1thread", "host"): "1 thread each",
}
_ON_CPUS = (
    "Arena on CPUs, from the boxes to the result. Methods use all cores, OpenCV those that its rows name; in the last "
    "column each uses one thread"
)
# The boxes, and the kinds of byte results, that a CPU's arena compares; a workload joins both, and the threads.
_BOXES = {"visdrone": "VisDrone", "uniform": "256 \u00d7 256", "large": "Large"}
_BYTES = {"uint8": "uint8, NCHW", "uint8-nhwc": "uint8, NHWC", "antialias": "uint8, NHWC, antialiased"}
_THREADS = {"-1thread": "one thread each", "": "all threads"}


def _byte_columns(kind: str) -> list[Column]:
    return [(f"{boxes}-{kind}", "host") for boxes in _BOXES]


def _byte_cases(view: View) -> Iterator[Key | str]:
    """Yield each kind on one thread and on all as a heading, and every method that was entered in it."""
    for kind, name in _BYTES.items():
        for threads, used in _THREADS.items():
            keys = all_shown(view, _byte_columns(f"{kind}{threads}"))
            if keys:
                yield f"{name}, {used}, n = {keys[0].n}"
            yield from (view.key(f"{kind}{threads}", method=method) for method in arena.entered(view, keys))


def _byte_cell(boxes: str, say: Callable[[Column, View, Key], str], view: View, case: Key) -> str:
    return say((f"{boxes}-{case.workload}", "host"), view, case)


BYTES = Spec(
    study=STUDY,
    first="Method",
    label=lambda view, case: arena_kernel.marked(ARENA_METHODS, _byte_columns(case.workload), view, case),
    columns={
        f"{title}{what}": partial(_byte_cell, boxes, say)
        for boxes, title in _BOXES.items()
        for what, say in ((", ms", arena.time), (", speed-up", arena.speedup))
    },
    cases=_byte_cases,
    caption="Arena on CPUs: other kinds of results, not normalised, from the boxes to the result. Medians in ms with "
    f"intervals of 95 %, and speed-ups: time of the method / time of Octopus, {_VERDICT_NOTE}.",
    absent="Other kinds of results on CPUs. No run that is shown has these rows: they are measured on a CPU alone.",
    widths=("2fr", *(("1.6fr", "2fr") * len(_BOXES))),
)
_IN_SERIES = (
    "Batches in a row, VisDrone boxes, per batch: from boxes on the host to the result; a batch may begin before the "
    "last is done. The pipeline of DALI works two batches ahead"
)
REPORT = StudyReport(
    per_object=(numbers.KERNEL,),
    numbers=(
        padded_float32,
        numbers.metadata,
        numbers.further_speedups,
        numbers.bound_shares,
        numbers.best_peers,
        numbers.limits,
        numbers.answers,
    ),
    of_all=(numbers.memory, numbers.layer_shares, numbers.share_range),
    tables={
        "arena": _on_layers("visdrone", "No run on a GPU is shown.", gpu=True),
        "arena_uniform": _on_layers("uniform", NOT_SHOWN, gpu=None),
        "arena_cpu": _times(_CPU_COLUMNS, _ON_CPUS, "No run on a CPU is shown.", gpu=False),
        "arena_cpu_bytes": BYTES,
        "arena_series": _times({("visdrone", "pipelined"): "In a row"}, _IN_SERIES, NOT_SHOWN, gpu=True),
        "arena_counts": counts,
        "arena_memory": MEMORY,
        "arena_padding": padding,
        **arena_kernel.TABLES,
        **arena_roads.TABLES,
    },
    figures=CHARTS,
)
