"""Tables of the arena about the kernel alone: its steps, its kinds of results, and what a call costs the host."""

from __future__ import annotations

from collections.abc import Iterator

from octopus_study.report import arena
from octopus_study.report.arena import Field
from octopus_study.report.captions import scope_title
from octopus_study.report.derive.arena_kernel import ALONE, KINDS, MEMORY_LIMITED_FROM, SUBMIT, bound_of
from octopus_study.report.labels import LADDER_CHANGES, LADDER_STEPS, LADDER_WORKLOADS, RESULT_KINDS
from octopus_study.report.numbers import Numbers
from octopus_study.report.tables import oldcells as cells
from octopus_study.report.tables.arena import STUDY, floors, speedup_cell, time_cell
from octopus_study.report.tables.oldwriters import MISSING, Table
from octopus_study.report.text import significant, with_unit

NO_ROWS = "No run that is shown has these rows: they need a GPU."
_EVENTS = "boxes on the device, by events with a cold L2; medians in ms with intervals of 95 %"
# Title -> method, quantity and layer of a column beside the number of boxes.
_SUBMIT_COLUMNS = {
    "One run, arrays": ("octopus", SUBMIT),
    "One run, torch tensors": ("octopus-torch", SUBMIT),
    "Plan, end to end": ("octopus", ALONE),
    "crop_resize, end to end": ("octopus-one-call", ALONE),
}


def ladder(numbers: Numbers) -> Table:
    """The kernel from plain to fast: time, share of the write bound, and speed-up over the step before."""
    reasons = cells.Reasons()
    rows = [row for scope in numbers.scopes(STUDY) for row in _ladder_section(numbers, scope, reasons)]
    caption = (
        f"The kernel step by step, {_EVENTS}. Each step keeps what the one before has. Share: of the write bound. "
        "Gain: time of the step before / time of the step, median of per-block ratios, faster unless said otherwise."
        f"{reasons.note}"
    )
    header = ["Step", "What changes"]
    for name in LADDER_WORKLOADS.values():
        header += [f"{name}, ms", "Share", "Gain"]
    widths = ("1.5fr", "3.6fr", *(("2.1fr", "0.8fr", "1.3fr") * len(LADDER_WORKLOADS)))
    text = caption if rows else f"The kernel step by step. {NO_ROWS}"
    return Table("arena_ladder", text, header, rows, text_columns=(0, 1), widths=widths)


def _ladder_section(numbers: Numbers, scope: str, reasons: cells.Reasons) -> Iterator[list[str] | str]:
    found = [arena.kernel_field(numbers, scope, workload) for workload in LADDER_WORKLOADS]
    shown = [field for field in found if field]
    if not shown:
        return
    yield f"{scope_title(numbers, scope, STUDY)}: n = {shown[0].n}; {floors(numbers, found)}"
    before = ""
    for step, name in LADDER_STEPS.items():
        answer = arena.answer_of(numbers, shown, step)
        mark = f" ({reasons.letter(answer)})" if answer.startswith("different") else ""
        row = [f"{name}{mark}", LADDER_CHANGES[step]]
        for field in found:
            row += [
                time_cell(numbers, field, step, reasons),
                _share(numbers, field, step),
                speedup_cell(numbers, field, before, step) if before else MISSING,
            ]
        yield row
        before = step
    last = ["Write bound", "filling the result"]
    for field in found:
        last += [time_cell(numbers, field, "write-bound", reasons), MISSING, MISSING]
    yield last


def _share(numbers: Numbers, field: Field | None, method: str) -> str:
    return numbers.text(f"{field.key(method)}.share_of_{bound_of(method)}", MISSING) if field else MISSING


def kinds(numbers: Numbers) -> Table:
    """Each kind of result: time, share of the bound of its own type, and what limits it."""
    reasons = cells.Reasons()
    rows = [row for scope in numbers.scopes(STUDY) for row in _kinds_section(numbers, scope, reasons)]
    least = with_unit(significant(100 * MEMORY_LIMITED_FROM, 2), "percent")
    caption = (
        f"Octopus by kind of result, VisDrone boxes, {_EVENTS}. Share: of the time that filling a result of the same "
        f"type takes; from {least} on memory limits the kernel, below that issuing instructions does. uint8 results "
        f"are not normalised.{reasons.note}"
    )
    header = ["Result", "ms", "Share of its bound", "Limited by"]
    text = caption if rows else f"Octopus by kind of result. {NO_ROWS}"
    return Table("arena_kinds", text, header, rows, text_columns=(0, 3))


def _kinds_section(numbers: Numbers, scope: str, reasons: cells.Reasons) -> Iterator[list[str] | str]:
    field = arena.kernel_field(numbers, scope, KINDS)
    if field is None:
        return
    yield f"{scope_title(numbers, scope, STUDY)}: n = {field.n}"
    for method, name in RESULT_KINDS.items():
        if field.key(method) not in numbers:
            continue
        answer = arena.answer_of(numbers, [field], method)
        mark = f" ({reasons.letter(answer)})" if answer.startswith("different") else ""
        limit = numbers.text(f"{field.key(method)}.limited_by", MISSING)
        time = time_cell(numbers, field, method, reasons)
        yield [f"{name}{mark}", time, _share(numbers, field, method), limit]


def submit(numbers: Numbers) -> Table:
    """Host time of one run of a plan, beside the whole way from boxes on the host."""
    reasons = cells.Reasons()
    rows = [row for scope in numbers.scopes(STUDY) for row in _submit_section(numbers, scope, reasons)]
    caption = (
        "What a call costs, VisDrone boxes. One run: host time of one run of a plan with frame and boxes on the GPU, "
        "without waiting for the GPU, in arrays of Octopus or in torch tensors. End to end: from boxes on the host to "
        "the synchronised result, of a plan with its result in place, or of crop_resize itself with the memory of "
        f"its result; no other contender is alive. Medians with intervals of 95 %.{reasons.note}"
    )
    header = ["Boxes", *_SUBMIT_COLUMNS]
    return Table("arena_submit", caption if rows else f"What a call costs. {NO_ROWS}", header, rows)


def _submit_section(numbers: Numbers, scope: str, reasons: cells.Reasons) -> Iterator[list[str] | str]:
    counts = [int(match[1]) for match, _ in numbers.matching(_submit_pattern(scope))]
    if counts:
        yield scope_title(numbers, scope, STUDY)
    for n in sorted(counts):
        prefix = f"{scope}.{STUDY}.visdrone.n{n}"
        keys = [f"{prefix}.{method}.{quantity}.host" for method, quantity in _SUBMIT_COLUMNS.values()]
        yield [str(n), *(_host_cell(numbers, key, reasons) for key in keys)]


def _submit_pattern(scope: str) -> str:
    return rf"{scope}\.{STUDY}\.visdrone\.n(\d+)\.octopus\.{SUBMIT}\.host"


def _host_cell(numbers: Numbers, key: str, reasons: cells.Reasons) -> str:
    if key not in numbers:
        return MISSING
    number = numbers[key]
    if number.value != number.value:
        return f"{MISSING} ({reasons.letter(number.note)})"
    return cells.with_interval(number) if number.interval else number.text
