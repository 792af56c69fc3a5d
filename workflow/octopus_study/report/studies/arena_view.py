"""What tables and figures of the arena share: its comparisons, who was entered in them, and why some have no time.

A comparison is named by the key of the time of Octopus; what it holds was measured in the same blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from octopus_study.report.frame import Key, Number
from octopus_study.report.labels import ARENA_METHODS, LADDER_WORKLOADS, human, place
from octopus_study.report.measured import SUBJECT
from octopus_study.report.samples import AGAIN
from octopus_study.report.text import reason
from octopus_study.report.view import View

STUDY = "arena"
NO_RUN = "No run of the study arena is at hand: older results lack it."
# The published size of the comparison; a run without it shows its largest.
PUBLISHED_COUNT = 1000
QUANTITIES = {"device": "crop_resize_normalize", "host": "end_to_end", "pipeline": "end_to_end"}
KINDS = "kinds"
KERNEL_WORKLOADS = (*LADDER_WORKLOADS, KINDS)  # the kernel with itself
MEMORY_LINES = ("memory_payload", "memory_allocator_peak", "memory_device_delta", "memory_fixed")
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


def without_time(view: View, keys: Iterable[Key]) -> str:
    """Say which methods have no time in any of some comparisons, and why: ``A, B: why; C: another``."""
    methods = entered(view, keys).items()
    return by_reason((name, ns[-1].note) for name, ns in methods if not any(n.known for n in ns))


def by_reason(notes: Iterable[tuple[str, str]]) -> str:
    """Return methods with the reasons in their notes, each reason once: ``A, B: why; C: another``."""
    reasons: dict[str, list[str]] = {}
    for method, note in notes:
        reasons.setdefault(reason(note), []).append(human(ARENA_METHODS, method))
    return "; ".join(f"{', '.join(names)}: {why}" for why, names in reasons.items())


def differs(numbers: Iterable[Number]) -> bool:
    """Say whether a time belongs to an answer that differs from the reference."""
    return any(number.note.startswith("different") for number in numbers)


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
    methods = memory_lines(view).items()
    return by_reason((name, lines[MEMORY_LINES[0]].note) for name, lines in methods if not has_memory(lines))


def has_memory(lines: dict[str, Number]) -> bool:
    """Say whether a method has any line of memory."""
    return any(number.known for number in lines.values())


def in_order(methods: dict[str, object]) -> dict:
    """Sort methods as the arena shows them; ones that nobody named come last."""
    return {name: methods[name] for name in sorted(methods, key=partial(place, ARENA_METHODS))}
