"""The arena: Octopus beside every peer on the same boxes, and its kernel step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise

from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import Frame, Key, published
from octopus_study.report.labels import (
    ARENA_METHODS,
    ARENA_WORKLOADS,
    LADDER_CHANGES,
    LADDER_STEPS,
    LADDER_WORKLOADS,
    LAYERS,
    QUANTITIES,
    RESULT_KINDS,
    human,
)
from octopus_study.report.measured import BOUND, SUBJECT, padded_float32
from octopus_study.report.studies import arena_figures as figures
from octopus_study.report.studies import arena_numbers as numbers
from octopus_study.report.studies import arena_view as arena
from octopus_study.report.studies.arena_numbers import ALONE, SUBMIT, bound_of
from octopus_study.report.studies.arena_view import (
    KINDS,
    NO_RUN,
    PUBLISHED_COUNT,
    STUDY,
    Column,
    all_shown,
    shown,
)
from octopus_study.report.study import StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.cells import Cell
from octopus_study.report.tables.spec import Row, Spec
from octopus_study.report.tables.writers import MISSING, Table
from octopus_study.report.text import interval_text, significant, with_unit
from octopus_study.report.view import View, views

NOT_SHOWN = "No run of this study is shown."
NO_ROWS = "No run that is shown has these rows: they need a GPU."
_VERDICT_NOTE = "faster unless said otherwise"
_EVENTS = "boxes on the device, by events with a cold L2; medians in ms with intervals of 95 %"


def _entry(view: View, key: Key | None, say: Callable[[View, Key], str]) -> str:
    """Say something of a number; a letter where it has no value, and a dash where there is none."""
    number = view.frame.find(key) if key else None
    if number is None:
        return MISSING
    return say(view, key) if number.known else f"{MISSING} ({view.reasons.letter(number.note)})"


def _milliseconds(view: View, key: Key) -> str:
    number = view.frame[key]
    ends = interval_text(number.value, number.low, number.high, "")
    return f"{significant(number.value)} [{ends}]" if ends else significant(number.value)


def _at(view: View, column: Column, method: str) -> Key | None:
    """Return the key of a method's time in the comparison that is shown of a workload on a layer."""
    key = shown(view, *column)
    return key.but(method=method) if key else None


def _time(column: Column, view: View, case: Key) -> str:
    return _entry(view, _at(view, column, case.method), _milliseconds)


def _speedup(column: Column, view: View, case: Key) -> str:
    key = _at(view, column, SUBJECT)
    return cells.speedup_text(view.frame, key, case.method) if key else MISSING


def _share(column: Column, view: View, case: Key) -> str:
    key = _at(view, column, case.method)
    return view.text(key.derive("share", bound_of(case.method)), MISSING) if key else MISSING


def _title(columns: Mapping[Column, str], view: View) -> str:
    """Name the run, its count, and the noise floor of each column, by which its verdicts are judged."""
    keys = [shown(view, *column) for column in columns]
    floors = (cells.floor_text(view.frame, key) if key else MISSING for key in keys)
    return f"{view.title}: n = {next(key.n for key in keys if key)}; noise floor {', '.join(floors)}"


def _times(columns: Mapping[Column, str], what: str, absent: str, gpu: bool | None = None) -> Spec:
    """Return the table of every method: answer, times, and speed-ups of Octopus; `gpu` is for which machines."""

    def answer(view: View, case: Key) -> str:
        text = arena.answer_of(view, all_shown(view, columns), case.method)
        other = text if text in ("same", "") else f"other ({view.reasons.letter(text)})"
        return MISSING if case.method.startswith(BOUND) else other

    def cases(view: View) -> list[Key]:
        on_device = shown(view, "visdrone", "device") is not None
        keys = all_shown(view, columns) if gpu in (None, on_device) else []
        return [view.key(method=method) for method in arena.measured(view, *keys)]

    def missing(view: View) -> list[Row]:
        text = arena.without_time(view, all_shown(view, columns))
        return [f"Unavailable here. {text}"] if text else []

    return Spec(
        study=STUDY,
        first="Method",
        label=lambda view, case: human(ARENA_METHODS, case.method),
        columns={
            "Answer": answer,
            **{title: partial(_time, column) for column, title in columns.items()},
            **{f"{title}, speed-up": partial(_speedup, column) for column, title in columns.items()},
        },
        cases=cases,
        title=partial(_title, columns),
        after=missing,
        caption=f"{what}. Medians in ms with intervals of 95 %, and speed-ups: time of the method / time of Octopus, "
        f"{_VERDICT_NOTE}.",
        absent=f"{what}. {absent}",
        text_columns=(0, 1),
        # A cell over all columns would stretch those that are as wide as their content.
        widths=("2.7fr", "1.1fr", *("2.1fr" for _ in columns), *("1.2fr" for _ in columns)),
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
        f"{cells.DIFFERENT_NOTE}. {MISSING}: not measured."
    )
    header = ["Method", *(f"n = {n}" for n in every)]
    return Table(caption if rows else f"Speed-ups. {NOT_SHOWN}", header, rows)


def _count_rows(view: View, keys: list[Key], every: list[int]) -> Iterator[Row]:
    lines: list[Row] = []
    for method, times in arena.measured(view, *keys).items():
        texts = [cells.speedup_text(view.frame, keys[0].but(n=n), method) for n in every]
        if any(text != MISSING for text in texts):
            mark = f" {cells.DIFFERENT}" if arena.differs(times) else ""
            lines.append([f"{human(ARENA_METHODS, method)}{mark}", *texts])
    if lines:
        where = f"{human(ARENA_WORKLOADS, keys[0].workload)}, {LAYERS[keys[0].layer].lower()}"
        yield f"{view.title}: {where}"
        yield from lines


_MEMORY_COLUMNS = (*arena.MEMORY_LINES[:3], "memory_beyond_payload", arena.MEMORY_LINES[3])


def _memory_cases(view: View) -> list[Key]:
    methods = arena.memory_lines(view).values()
    return [lines[arena.MEMORY_LINES[0]].key for lines in methods if arena.has_memory(lines)]


def _memory_after(view: View) -> list[Row]:
    missing = arena.without_memory(view)
    return [f"Unavailable here. {missing}"] if missing else []


def _bytes(line: str, view: View, key: Key) -> str:
    return _entry(view, key.but(quantity=line), View.text)


MEMORY = Spec(
    study=STUDY,
    first="Method",
    label=lambda view, key: human(ARENA_METHODS, key.method),
    columns={
        human(QUANTITIES | {"memory_beyond_payload": "Beyond payload"}, line): partial(_bytes, line)
        for line in _MEMORY_COLUMNS
    },
    cases=_memory_cases,
    title=lambda view: f"{view.title}: n = {_memory_cases(view)[0].n}",
    after=_memory_after,
    caption="Memory of each method in a process of its own, VisDrone boxes. Payload: frame, boxes and result, from "
    "their shapes. Allocator peak: most that the method's own allocator held. Device delta: growth of used memory. "
    "Beyond payload: device delta less payload; on a CPU the frame exists before the growth is counted. Fixed: "
    "imports, modules and context.",
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


def _marked(names: Mapping[str, str], columns: list[Column], view: View, case: Key) -> str:
    """Return the name of a kernel, with the letter of the reason where its answer is another one."""
    answer = arena.answer_of(view, all_shown(view, columns), case.method)
    mark = f" ({view.reasons.letter(answer)})" if answer.startswith("different") else ""
    return f"{names[case.method]}{mark}"


_LADDER = {(workload, "device"): name for workload, name in LADDER_WORKLOADS.items()}
_BEFORE = {step: before for before, step in pairwise(LADDER_STEPS)}


def _gain(column: Column, view: View, case: Key) -> str:
    key = _at(view, column, case.method)
    before = _BEFORE.get(case.method)
    return cells.speedup_text(view.frame, key, before) if key and before else MISSING


def _ladder_columns(frame: Frame) -> list[tuple[str, Cell]]:
    changes = LADDER_CHANGES | {BOUND: "filling the result"}
    columns: list[tuple[str, Cell]] = [("What changes", lambda view, case: changes[case.method])]
    for column, name in _LADDER.items():
        makers = {f"{name}, ms": _time, "Share": _share, "Gain": _gain}
        columns += [(head, partial(make, column)) for head, make in makers.items()]
    return columns


LADDER = Spec(
    study=STUDY,
    first="Step",
    label=partial(_marked, LADDER_STEPS | {BOUND: "Write bound"}, list(_LADDER)),
    columns=_ladder_columns,
    cases=lambda view: (
        [view.key(method=step) for step in (*LADDER_STEPS, BOUND)] if all_shown(view, _LADDER) else []
    ),
    title=partial(_title, _LADDER),
    caption=f"The kernel step by step, {_EVENTS}. Each step keeps what the one before has. Share: of the write bound. "
    "Gain: time of the step before / time of the step, median of per-block ratios, faster unless said otherwise.",
    absent=f"The kernel step by step. {NO_ROWS}",
    text_columns=(0, 1),
    widths=("1.5fr", "3.6fr", *(("2.1fr", "0.8fr", "1.3fr") * len(LADDER_WORKLOADS))),
)
_KIND = (KINDS, "device")
_LEAST = with_unit(significant(100 * numbers.MEMORY_LIMITED_FROM, 2), "percent")


def _kind_cases(view: View) -> list[Key]:
    keys = [key for method in RESULT_KINDS if (key := _at(view, _KIND, method))]
    return [key for key in keys if key in view.frame]


RESULTS = Spec(
    study=STUDY,
    first="Result",
    label=partial(_marked, RESULT_KINDS, [_KIND]),
    columns={
        "ms": partial(_time, _KIND),
        "Share of its bound": partial(_share, _KIND),
        "Limited by": cells.fact(derived="limited_by"),
    },
    cases=_kind_cases,
    title=lambda view: f"{view.title}: n = {_kind_cases(view)[0].n}",
    caption=f"Octopus by kind of result, VisDrone boxes, {_EVENTS}. Share: of the time that filling a result of the "
    f"same type takes; from {_LEAST} on memory limits the kernel, below that issuing instructions does. uint8 results "
    "are not normalised.",
    absent=f"Octopus by kind of result. {NO_ROWS}",
    text_columns=(0, 3),
)


def _submitted(method: str, quantity: str, view: View, key: Key) -> str:
    def say(view: View, key: Key) -> str:
        number = view.frame[key]
        return cells.with_interval(number) if number.interval else number.text

    return _entry(view, key.but(method=method, quantity=quantity), say)


SUBMITTED = Spec(
    study=STUDY,
    first="Boxes",
    label=lambda view, key: str(key.n),
    columns={
        "One run, arrays": partial(_submitted, SUBJECT, SUBMIT),
        "One run, torch tensors": partial(_submitted, f"{SUBJECT}-torch", SUBMIT),
        "Plan, end to end": partial(_submitted, SUBJECT, ALONE),
        "crop_resize, end to end": partial(_submitted, f"{SUBJECT}-one-call", ALONE),
    },
    cases=lambda view: sorted(
        number.key
        for number in view.select(workload="visdrone", method=SUBJECT, quantity=SUBMIT, layer="host")
    ),
    caption="What a call costs, VisDrone boxes. One run: host time of one run of a plan with frame and boxes on the "
    "GPU, without waiting for the GPU, in arrays of Octopus or in torch tensors. End to end: from boxes on the host to "
    "the synchronised result, of a plan with its result in place, or of crop_resize itself with the memory of "
    "its result; no other contender is alive. Medians with intervals of 95 %.",
    absent=f"What a call costs. {NO_ROWS}",
)
_CPU_COLUMNS = {
    ("visdrone", "host"): "VisDrone",
    ("visdrone-1thread", "host"): "1 thread",
    ("visdrone-2threads", "host"): "2 threads",
}
_ON_CPUS = "Arena on CPUs, from the boxes to the result, with all cores where no number of threads is given"
REPORT = StudyReport(
    numbers=(
        padded_float32,
        numbers.metadata,
        numbers.further_speedups,
        numbers.bound_shares,
        numbers.best_peers,
        numbers.limits,
        numbers.memory,
        numbers.layer_shares,
        numbers.answers,
    ),
    tables={
        "arena": _on_layers("visdrone", "No run on a GPU is shown.", gpu=True),
        "arena_uniform": _on_layers("uniform", NOT_SHOWN, gpu=None),
        "arena_cpu": _times(_CPU_COLUMNS, _ON_CPUS, "No run on a CPU is shown.", gpu=False),
        "arena_counts": counts,
        "arena_memory": MEMORY,
        "arena_padding": padding,
        "arena_ladder": LADDER,
        "arena_kinds": RESULTS,
        "arena_submit": SUBMITTED,
    },
    figures={
        "arena_device": Chart(figures.device, absent=NO_RUN),
        "arena_end_to_end": Chart(figures.end_to_end, absent=NO_RUN),
        "arena_memory": Chart(figures.memory, absent=NO_RUN),
        "arena_scaling": Chart(figures.scaling, absent=NO_RUN),
        "arena_bound_share": Chart(figures.bound_share, absent=NO_RUN),
    },
)
