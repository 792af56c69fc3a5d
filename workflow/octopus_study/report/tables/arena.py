"""Tables of the arena: times with answers, speed-ups by number of boxes, memory, and what padding wastes."""

from __future__ import annotations

from collections.abc import Iterator

from octopus_study.report import arena
from octopus_study.report.arena import Field
from octopus_study.report.captions import scope_name, scope_title
from octopus_study.report.derive.arena import by_reason
from octopus_study.report.labels import ARENA_METHODS, ARENA_WORKLOADS, LAYERS, QUANTITIES, human
from octopus_study.report.numbers import Number, Numbers
from octopus_study.report.tables import oldcells as cells
from octopus_study.report.tables.oldwriters import MISSING, Table
from octopus_study.report.text import interval_text, significant, with_unit

STUDY = arena.STUDY
NO_RUN = "No run of this study is shown."
_CPU_COLUMNS = {
    ("visdrone", "host"): "VisDrone",
    ("visdrone-1thread", "host"): "1 thread",
    ("visdrone-2threads", "host"): "2 threads",
}
_MEMORY_COLUMNS = (
    "memory_payload",
    "memory_allocator_peak",
    "memory_device_delta",
    "memory_beyond_payload",
    "memory_fixed",
)
_PADDING = ("actual_bytes", "padded_bytes", "padding_waste")
# Published values of padded float32 batches and their waste, at the published count.
_PUBLISHED = {
    "uniform": ("published.arena.uniform-256.tensorrt.padded_input",),
    "visdrone": (
        "published.arena.visdrone.tensorrt.padded_input",
        "published.arena.visdrone.tensorrt.padding_waste",
    ),
}
# (workload, layer) whose speed-ups are followed over the number of boxes.
_COUNTED = (("visdrone", "device"), ("visdrone", "host"), ("uniform", "device"))
_VERDICT_NOTE = "faster unless said otherwise"


def times(numbers: Numbers) -> Table:
    """Every method on the VisDrone boxes on GPUs: answer, times on each layer, speed-ups of Octopus."""
    return _gpu_times(numbers, "arena", "visdrone")


def times_uniform(numbers: Numbers) -> Table:
    """The same for boxes of one size; a CPU has the host alone."""
    return _gpu_times(numbers, "arena_uniform", "uniform")


def _gpu_times(numbers: Numbers, name: str, workload: str) -> Table:
    scopes = [
        scope
        for scope in numbers.scopes(STUDY)
        if workload == "uniform" or arena.counts(numbers, scope, workload, "device")
    ]
    columns = {(workload, layer): title for layer, title in LAYERS.items()}
    what = (
        f"Arena, {human(ARENA_WORKLOADS, workload)}. Device: kernels alone, by events with a cold L2. "
        "Host: from boxes on the host to the synchronised result. Pipeline: also the upload of the frame and the "
        "download of the result"
    )
    absent = NO_RUN if workload == "uniform" else "No run on a GPU is shown."
    return _times(numbers, name, scopes, columns, what, absent)


def times_cpu(numbers: Numbers) -> Table:
    """Every method on CPUs, from the boxes to the result."""
    scopes = [
        scope for scope in numbers.scopes(STUDY) if not arena.counts(numbers, scope, "visdrone", "device")
    ]
    what = "Arena on CPUs, from the boxes to the result, with all cores where no number of threads is given"
    return _times(numbers, "arena_cpu", scopes, _CPU_COLUMNS, what, "No run on a CPU is shown.")


def _times(
    numbers: Numbers,
    name: str,
    scopes: list[str],
    columns: dict[tuple[str, str], str],
    what: str,
    absent: str,
) -> Table:
    reasons = cells.Reasons()
    rows = [row for scope in scopes for row in _section(numbers, scope, list(columns), reasons)]
    caption = (
        f"{what}. Medians in ms with intervals of 95 %, and speed-ups: time of the method / time of Octopus, "
        f"{_VERDICT_NOTE}.{reasons.note}"
    )
    header = ["Method", "Answer", *columns.values(), *(f"{title}, speed-up" for title in columns.values())]
    # A cell over all columns would stretch those that are as wide as their content.
    widths = ("2.7fr", "1.1fr", *("2.1fr" for _ in columns), *("1.2fr" for _ in columns))
    text = caption if rows else f"{what}. {absent}"
    return Table(name, text, header, rows, text_columns=(0, 1), widths=widths)


def _section(
    numbers: Numbers, scope: str, columns: list[tuple[str, str]], reasons: cells.Reasons
) -> Iterator[list[str] | str]:
    found = [arena.shown_field(numbers, scope, *column) for column in columns]
    shown = [field for field in found if field]
    if not shown:
        return
    yield f"{scope_title(numbers, scope, STUDY)}: n = {shown[0].n}; {floors(numbers, found)}"
    methods = arena.in_order({name: None for field in shown for name in arena.entered(numbers, field)})
    for method in methods:
        answer = arena.answer_of(numbers, shown, method)
        if answer and not answer.startswith("unavailable"):
            yield [
                human(ARENA_METHODS, method),
                _answer(answer, method, reasons),
                *(time_cell(numbers, field, method, reasons) for field in found),
                *(speedup_cell(numbers, field, method) for field in found),
            ]
    if missing := arena.without_time(numbers, shown):
        yield f"Unavailable here. {missing}"


def floors(numbers: Numbers, found: list[Field | None]) -> str:
    """Return the noise floor of each column, by which its verdicts are judged."""
    texts = []
    for field in found:
        floor = numbers.get(f"{field.key('octopus')}.noise_floor") if field else None
        texts.append(with_unit(significant(100 * floor.value, 2), "percent") if floor else MISSING)
    return f"noise floor {', '.join(texts)}"


def _answer(answer: str, method: str, reasons: cells.Reasons) -> str:
    if method in arena.BOUNDS:
        return MISSING
    return "same" if answer == "same" else f"other ({reasons.letter(answer)})"


def time_cell(numbers: Numbers, field: Field | None, method: str, reasons: cells.Reasons) -> str:
    """Return milliseconds with their interval; a letter where only this layer has none."""
    if field is None or field.key(method) not in numbers:
        return MISSING
    number = numbers[field.key(method)]
    if number.value != number.value:
        return f"{MISSING} ({reasons.letter(number.note)})"
    ends = interval_text(number.value, number.low, number.high, "")
    return f"{significant(number.value)} [{ends}]" if ends else significant(number.value)


def speedup_cell(numbers: Numbers, field: Field | None, method: str, subject: str = "octopus") -> str:
    """Return the speed-up of Octopus, or of another subject; the verdict where it isn't ``faster``."""
    key = f"{field.key(subject)}.speedup_over_{method}" if field else ""
    number = numbers.get(key)
    if number is None:
        return MISSING
    verdict = numbers.text(key.replace(".speedup_over_", ".verdict_over_"))
    return number.text if verdict == "faster" else f"{number.text}, {verdict}"


def by_count(numbers: Numbers) -> Table:
    """Speed-ups of Octopus over every method, over the number of boxes."""
    shown = sorted({field.n for scope in numbers.scopes(STUDY) for field in arena.fields(numbers, scope)})
    rows: list[list[str] | str] = []
    for scope in numbers.scopes(STUDY):
        for workload, layer in _COUNTED:
            rows += _count_rows(numbers, [Field(scope, workload, n, layer) for n in shown])
    caption = (
        f"Speed-up of Octopus over each method by number of boxes n: medians of per-block ratios, {_VERDICT_NOTE}. "
        f"{cells.DIFFERENT_NOTE}. {MISSING}: not measured."
    )
    header = ["Method", *(f"n = {n}" for n in shown)]
    return Table("arena_counts", caption if rows else f"Speed-ups. {NO_RUN}", header, rows)


def _count_rows(numbers: Numbers, found: list[Field]) -> Iterator[list[str] | str]:
    first = found[0]
    where = f"{human(ARENA_WORKLOADS, first.workload)}, {LAYERS[first.layer].lower()}"
    lines = []
    methods = arena.in_order({name: None for field in found for name in arena.measured(numbers, field)})
    for method in methods:
        texts = [speedup_cell(numbers, field, method) for field in found]
        if any(text != MISSING for text in texts):
            known = [numbers[key] for field in found if (key := field.key(method)) in numbers]
            mark = f" {cells.DIFFERENT}" if any(arena.differs(number) for number in known) else ""
            lines.append([f"{human(ARENA_METHODS, method)}{mark}", *texts])
    if lines:
        yield f"{scope_title(numbers, first.scope, STUDY)}: {where}"
        yield from lines


def memory(numbers: Numbers) -> Table:
    """Four lines of memory per method, and what the growth leaves beside the payload."""
    reasons = cells.Reasons()
    rows: list[list[str] | str] = []
    for scope in numbers.scopes(STUDY):
        rows += _memory_section(numbers, scope, reasons)
    caption = (
        "Memory of each method in a process of its own, VisDrone boxes. Payload: frame, boxes and result, from their "
        "shapes. Allocator peak: most that the method's own allocator held. Device delta: growth of used memory. "
        "Beyond payload: device delta less payload; on a CPU the frame exists before the growth is counted. Fixed: "
        f"imports, modules and context.{reasons.note}"
    )
    names = QUANTITIES | {"memory_beyond_payload": "Beyond payload"}
    header = ["Method", *(human(names, line) for line in _MEMORY_COLUMNS)]
    widths = ("2fr", *("1fr" for _ in _MEMORY_COLUMNS))
    return Table("arena_memory", caption if rows else f"Memory. {NO_RUN}", header, rows, widths=widths)


def _memory_section(numbers: Numbers, scope: str, reasons: cells.Reasons) -> Iterator[list[str] | str]:
    found = arena.memory_lines(numbers, scope)
    if not found:
        return
    n = next(iter(found.values()))["memory_payload"].id.split(".")[3].removeprefix("n")
    yield f"{scope_title(numbers, scope, STUDY)}: n = {n}"
    missing = []
    for method, lines in found.items():
        if all(number.value != number.value for number in lines.values()):
            missing.append((method, lines["memory_payload"].note))
        else:
            texts = [_memory_cell(lines.get(line), reasons) for line in _MEMORY_COLUMNS]
            yield [human(ARENA_METHODS, method), *texts]
    if missing:
        yield f"Unavailable here. {by_reason(missing)}"


def _memory_cell(number: Number | None, reasons: cells.Reasons) -> str:
    if number is None:
        return MISSING
    return number.text if number.value == number.value else f"{MISSING} ({reasons.letter(number.note)})"


def padding(numbers: Numbers) -> Table:
    """What padding the boxes to the largest wastes; runs with equal rows share them."""
    sections: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for scope in numbers.scopes(STUDY):
        sections.setdefault(tuple(_padding_rows(numbers, scope)), []).append(scope)
    rows: list[list[str] | str] = []
    for lines, scopes in sections.items():
        datasets = dict.fromkeys(numbers.text(f"{scope}.{STUDY}.dataset") for scope in scopes)
        rows.append(f"{', '.join(scope_name(numbers, scope) for scope in scopes)}: {', '.join(datasets)}")
        rows += [list(line) for line in lines]
    caption = (
        "Bytes of the boxes as uint8 with three channels, as they are and padded to the largest; the share that "
        "padding wastes; the padded batch as float32; and what the published table prints of it."
    )
    header = ["Boxes", "n", "As they are", "Padded", "Waste", "Padded, float32", "Published"]
    return Table("arena_padding", caption if rows else f"Padding. {NO_RUN}", header, rows)


def _padding_rows(numbers: Numbers, scope: str) -> Iterator[tuple[str, ...]]:
    pattern = rf"{scope}\.{STUDY}\.([\w-]+)\.n(\d+)\.padding\.padding_waste\.deterministic"
    found = sorted((match[1], int(match[2])) for match, _ in numbers.matching(pattern))
    for workload, n in found:
        prefix = f"{scope}.{STUDY}.{workload}.n{n}.padding"
        texts = [numbers.text(f"{prefix}.{quantity}.deterministic", MISSING) for quantity in _PADDING]
        known = _PUBLISHED.get(workload, ()) if n == arena.PUBLISHED_COUNT else ()
        published = ", ".join(numbers.text(key) for key in known if key in numbers) or MISSING
        name = human(ARENA_WORKLOADS, workload)
        yield name, str(n), *texts, numbers.text(f"{prefix}.padded_float32_bytes", MISSING), published
