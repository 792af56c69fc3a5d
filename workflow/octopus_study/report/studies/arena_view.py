"""What tables and figures of the arena share: its comparisons, who was entered in them, why some have no time, and
cells of tables.

A comparison is named by the key of the time of Octopus; what it holds was measured in the same blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from octopus_study.names import (
    AGAIN,
    ARENA_METHODS,
    BOUND,
    CROP_METHODS,
    LADDER_WORKLOADS,
    SUBJECT,
    human,
    place,
)
from octopus_study.report.fastest import subject_of
from octopus_study.report.frame import Key, Number
from octopus_study.report.missing import by_reason
from octopus_study.report.tables import cells
from octopus_study.report.tables.writers import MISSING
from octopus_study.report.text import bracketed, reason
from octopus_study.report.view import View

STUDY = "arena"
# The published size of the comparison; a run without it shows its largest.
PUBLISHED_COUNT = 1000
QUANTITIES = {
    "device": "crop_resize_normalize", "host": "end_to_end", "pipelined": "end_to_end", "pipeline": "end_to_end",
}  # fmt: skip
KINDS = "kinds"
KERNEL_WORKLOADS = (*LADDER_WORKLOADS, KINDS)  # the kernel with itself
MEMORY_LINES = ("memory_payload", "memory_allocator_peak", "memory_device_delta", "memory_fixed")
# Types of results other than float32, as names of methods carry them.
_TYPES = ("fp16", "uint8")
_LIBRARIES = {row.name: row.library for row in CROP_METHODS if row.library}
Column = tuple[str, str]  # workload and layer


def comparisons(view: View, workload: str, layer: str) -> list[Key]:
    """Return the comparisons of a workload on a layer in which Octopus was timed, by count."""
    keys = view.cases(SUBJECT, QUANTITIES[layer], (layer,), order=[workload])
    return sorted(keys, key=lambda key: key.n)


def all_comparisons(view: View) -> list[Key]:
    """Return all comparisons; those of the kernel with itself are none."""
    keys = (key for layer, name in QUANTITIES.items() for key in view.cases(SUBJECT, name, (layer,)))
    return [key for key in keys if key.workload not in KERNEL_WORKLOADS]


def shown(view: View, workload: str, layer: str) -> Key | None:
    """Return the comparison at the published count, else at the largest; None where there is none."""
    keys = comparisons(view, workload, layer)
    return next((key for key in keys if key.n == PUBLISHED_COUNT), keys[-1] if keys else None)


def all_shown(view: View, columns: Iterable[Column]) -> list[Key]:
    """Return the comparisons that there are of some workloads on layers."""
    return [key for column in columns if (key := shown(view, *column))]


def entered(view: View, keys: Iterable[Key]) -> dict[str, list[Number]]:
    """Return every method that was entered in some comparisons, with its times or the notes why it has none."""
    methods: dict[str, list[Number]] = {}
    for key in keys:
        for number in view.select(workload=key.workload, n=key.n, quantity=key.quantity, layer=key.layer):
            if not number.method.endswith(AGAIN):
                methods.setdefault(number.method, []).append(number)
    return in_order(methods)


def measured(view: View, *keys: Key) -> dict[str, list[Number]]:
    """Return the methods that have a time in some comparisons, with those times."""
    times = {name: [n for n in numbers if n.known] for name, numbers in entered(view, keys).items()}
    return {name: numbers for name, numbers in times.items() if numbers}


def name_of(method: str) -> str:
    """Return the name of a method in the arena."""
    return human(ARENA_METHODS, method)


def library_of(method: str) -> str:
    """Return the library of which a method is a form; the method's name where it is of none."""
    return _LIBRARIES.get(method) or name_of(method)


def fastest_forms(view: View, keys: Iterable[Key]) -> dict[str, list[Number]]:
    """Return the methods that have a time in some comparisons, each library in one form: of those with the same answer,
    if there are any, the fastest with most boxes."""
    times, ranks = measured(view, *keys), {}
    for method, numbers in times.items():
        most = max(numbers, key=lambda number: number.n)
        rank = differs(numbers), -most.n, most.value, method
        ranks[library_of(method)] = min(rank, ranks.get(library_of(method), rank))
    best = {rank[-1] for rank in ranks.values()}
    return {method: numbers for method, numbers in times.items() if method in best}


def without_time(view: View, keys: Iterable[Key], forms: bool = True) -> str:
    """Say which methods have no time in any of some comparisons, and why the last has none; an earlier one may only
    point to it. Without `forms` those are left out whose library has a time in another form."""
    methods = entered(view, keys)
    timed = {method for method, numbers in methods.items() if any(n.known for n in numbers)}
    libraries = set() if forms else set(map(library_of, timed))
    silent = {name: ns[-1].note for name, ns in methods.items() if name not in timed}
    return _silent({name: note for name, note in silent.items() if library_of(name) not in libraries}, timed)


def _silent(notes: Mapping[str, str], others: Iterable[str]) -> str:
    """Say why methods have nothing: ``A, B: why; C: another``. Forms of a library are named together, where they have
    nothing for one reason and it has no form among `others`."""
    reasons: dict[str, set[str]] = {}
    for method, note in notes.items():
        reasons.setdefault(library_of(method), set()).add(reason(note))
    whole = {library for library, found in reasons.items() if len(found) == 1} - set(map(library_of, others))
    return by_reason(
        (library if (library := library_of(method)) in whole else name_of(method), note)
        for method, note in notes.items()
    )


def differs(numbers: Iterable[Number]) -> bool:
    """Say whether a time belongs to an answer that differs from the reference."""
    return any(number.differs for number in numbers)


def answer_of(view: View, keys: Iterable[Key], method: str) -> str:
    """Return a method's answer in some comparisons: ``same``, ``different: why``, ``unavailable: why``, or nothing
    where it wasn't entered. A time in one of them is enough to be available."""
    numbers = [number for key in keys if (number := view.frame.find(key.but(method=method)))]
    timed = [number for number in numbers if number.known]
    if timed:
        return next((number.note for number in timed if differs([number])), "same")
    return numbers[0].note if numbers else ""


def memory_lines(view: View) -> dict[str, dict[str, Number]]:
    """Return the lines of memory of each method, with what the growth leaves beside the payload."""
    methods: dict[str, dict[str, Number]] = {}
    for number in view.select(workload="visdrone", layer="memory"):
        methods.setdefault(number.method, {})[number.quantity] = number
    return in_order({method: lines for method, lines in methods.items() if MEMORY_LINES[0] in lines})


def without_memory(view: View) -> str:
    """Say which methods have no line of memory at all, and why."""
    methods = memory_lines(view)
    known = set(filter(lambda method: has_memory(methods[method]), methods))
    return _silent(
        {name: methods[name][MEMORY_LINES[0]].note for name in methods if name not in known}, known
    )


def has_memory(lines: dict[str, Number]) -> bool:
    """Say whether a method has any line of memory."""
    return any(number.known for number in lines.values())


def bound_of(method: str) -> str:
    """Return the write bound that a method is compared with: the one of its own output."""
    kind = next((name for name in _TYPES if name in method.split("-")), "")
    return f"{BOUND}-{kind}" if kind else BOUND


def in_order(methods: dict[str, object]) -> dict:
    """Sort methods as the arena shows them; ones that nobody named come last."""
    return {name: methods[name] for name in sorted(methods, key=partial(place, ARENA_METHODS))}


def entry(view: View, key: Key | None, say: Callable[[View, Key], str]) -> str:
    """Say something of a number; a letter where it has no value, and a dash where there is none."""
    number = view.frame.find(key) if key else None
    if number is None:
        return MISSING
    return say(view, key) if number.known else f"{MISSING} ({view.reasons.letter(number.note)})"


def _milliseconds(view: View, key: Key) -> str:
    number = view.frame[key]
    return bracketed(number.value, number.low, number.high)


def at(view: View, column: Column, method: str) -> Key | None:
    """Return the key of a method's time in the comparison that is shown of a workload on a layer."""
    key = shown(view, *column)
    return key.but(method=method) if key else None


def time(column: Column, view: View, case: Key) -> str:
    """Say a method's milliseconds with their interval."""
    return entry(view, at(view, column, case.method), _milliseconds)


def speedup(column: Column, view: View, case: Key) -> str:
    """Say the speed-up of Octopus over a method."""
    key = at(view, column, SUBJECT)
    subject = subject_of(case.method)
    return (
        cells.speedup_text(view.frame, key.but(method=subject), case.method, loose=True) if key else MISSING
    )


def share(column: Column, view: View, case: Key) -> str:
    """Say which share of the bound of its type a method reaches."""
    key = at(view, column, case.method)
    return view.text(key.derive("share", bound_of(case.method)), MISSING) if key else MISSING


def title(columns: Mapping[Column, str], view: View) -> str:
    """Name the run, its count, and the noise floor of each column, by which its verdicts are judged."""
    keys = [shown(view, *column) for column in columns]
    floors = (cells.floor_text(view.frame, key) if key else MISSING for key in keys)
    return f"{view.title}: n = {next(key.n for key in keys if key)}; noise floor {', '.join(floors)}"
