"""Tables of the arena about the kernel alone: its steps, its kinds of results, and what a call costs the host."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import pairwise

from octopus_study.names import (
    AGAIN,
    BOUND,
    LADDER_CHANGES,
    LADDER_STEPS,
    LADDER_WORKLOADS,
    METHODS,
    RESULT_KINDS,
    SUBJECT,
    human,
)
from octopus_study.report.frame import Frame, Key
from octopus_study.report.studies import arena_view as arena
from octopus_study.report.studies.arena_numbers import ALONE, CALL, MEMORY_LIMITED_FROM, SUBMIT
from octopus_study.report.studies.arena_view import KINDS, STUDY, Column, all_shown
from octopus_study.report.tables import cells
from octopus_study.report.tables.cells import Cell
from octopus_study.report.tables.spec import Spec
from octopus_study.report.tables.writers import MISSING
from octopus_study.report.text import significant
from octopus_study.report.view import View
from octopus_study.units import with_unit

NO_ROWS = "No run that is shown has these rows: they need a GPU."
_EVENTS = "boxes on the device, by events with a cold L2; medians in ms with intervals of 95 %"


def marked(names: Mapping[str, str], columns: list[Column], view: View, case: Key) -> str:
    """Return the name of a case's method, with the letter of the reason where its answer is another one."""
    answer = arena.answer_of(view, all_shown(view, columns), case.method)
    mark = f" ({view.reasons.letter(answer)})" if answer.startswith("different") else ""
    return f"{names[case.method]}{mark}"


_LADDER = {(workload, "device"): name for workload, name in LADDER_WORKLOADS.items()}
_BEFORE = {step: before for before, step in pairwise(LADDER_STEPS)}


def _gain(column: Column, view: View, case: Key) -> str:
    key = arena.at(view, column, case.method)
    before = _BEFORE.get(case.method)
    return cells.speedup_text(view.frame, key, before) if key and before else MISSING


def _ladder_columns(frame: Frame) -> list[tuple[str, Cell]]:
    changes = LADDER_CHANGES | {BOUND: "filling the result"}
    columns: list[tuple[str, Cell]] = [("What changes", lambda view, case: changes[case.method])]
    for column, name in _LADDER.items():
        makers = {f"{name}, ms": arena.time, "Share": arena.share, "Gain": _gain}
        columns += [(head, partial(make, column)) for head, make in makers.items()]
    return columns


LADDER = Spec(
    study=STUDY,
    first="Step",
    label=partial(marked, LADDER_STEPS | {BOUND: "Write bound"}, list(_LADDER)),
    columns=_ladder_columns,
    cases=lambda view: (
        [view.key(method=step) for step in (*LADDER_STEPS, BOUND)] if all_shown(view, _LADDER) else []
    ),
    title=partial(arena.title, _LADDER),
    caption=f"The kernel step by step, {_EVENTS}. Each step keeps what the one before has. Share: of the write bound. "
    "Gain: time of the step before / time of the step, median of per-block ratios, faster unless said otherwise.",
    absent=f"The kernel step by step. {NO_ROWS}",
    text_columns=(0, 1),
    widths=("1.5fr", "3.6fr", *(("2.1fr", "0.8fr", "1.3fr") * len(LADDER_WORKLOADS))),
)
_KIND = (KINDS, "device")
_LEAST = with_unit(significant(100 * MEMORY_LIMITED_FROM, 2), "percent")


def _kind_cases(view: View) -> list[Key]:
    keys = [key for method in RESULT_KINDS if (key := arena.at(view, _KIND, method))]
    return [key for key in keys if key in view.frame]


RESULTS = Spec(
    study=STUDY,
    first="Result",
    label=partial(marked, RESULT_KINDS, [_KIND]),
    columns={
        "ms": partial(arena.time, _KIND),
        "Share of its bound": partial(arena.share, _KIND),
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

    return arena.entry(view, key.but(method=method, quantity=quantity), say)


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


def _times_its_own(view: View, key: Key) -> str:
    own = key.but(method=SUBJECT)
    return MISSING if key == own else cells.versus(key.method)(view, own)


DOORS = Spec(
    study=STUDY,
    first="Arrays",
    label=lambda view, key: human(METHODS, key.method),
    columns={"n": lambda view, key: str(key.n), "One call": cells.time(), "Times its own": _times_its_own},
    cases=lambda view: [
        number.key
        for number in view.select(quantity=CALL, layer="host")
        if not number.key.derived and not number.key.method.endswith(AGAIN)
    ],
    caption="What the library costs that the arrays are of: host time of one call of crop_resize, memory of its result "
    "included, with frame and boxes on the GPU, without waiting; medians. Times its own: time / time with arrays "
    "of Octopus.",
    absent=f"What a call costs by the library of its arrays. {NO_ROWS}",
    widths=("2fr", "0.6fr", "2fr", "1fr"),
)
TABLES = {"arena_ladder": LADDER, "arena_kinds": RESULTS, "arena_submit": SUBMITTED, "arena_doors": DOORS}
