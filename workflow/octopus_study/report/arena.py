"""What figures and tables of the arena share: which methods, counts and layers a run has, and what to say of those
that it lacks."""

from __future__ import annotations

import re
from typing import NamedTuple

from octopus_study.report.derive.arena import by_reason
from octopus_study.report.derive.arena_kernel import KERNEL_WORKLOADS
from octopus_study.report.labels import ARENA_METHODS
from octopus_study.report.numbers import Number, Numbers

STUDY = "arena"
# The published size of the comparison; a run without it shows its largest.
PUBLISHED_COUNT = 1000
QUANTITIES = {"device": "crop_resize_normalize", "host": "end_to_end", "pipeline": "end_to_end"}
MEMORY_LINES = ("memory_payload", "memory_allocator_peak", "memory_device_delta", "memory_fixed")
MEMORY_WORKLOAD = "visdrone"
BOUNDS = ("write-bound", "write-bound-fp16")


class Field(NamedTuple):
    """One comparison of the arena: everything in it was measured in the same blocks."""

    scope: str
    workload: str
    n: int
    layer: str

    def key(self, method: str) -> str:
        """Return the id of a method's time."""
        count = f"{self.scope}.{STUDY}.{self.workload}.n{self.n}"
        return f"{count}.{method}.{QUANTITIES[self.layer]}.{self.layer}"


def fields(numbers: Numbers, scope: str) -> list[Field]:
    """Return the comparisons in which a machine timed Octopus, by workload, layer and count; those of the kernel with
    itself are none."""
    return [field for field in _timed(numbers, scope) if field.workload not in KERNEL_WORKLOADS]


def kernel_field(numbers: Numbers, scope: str, workload: str) -> Field | None:
    """Return a comparison of the kernel with itself, the one of the most boxes; None where there is none."""
    found = [field for field in _timed(numbers, scope) if field.workload == workload]
    return found[-1] if found else None


def _timed(numbers: Numbers, scope: str) -> list[Field]:
    pattern = rf"{scope}\.{STUDY}\.([\w-]+)\.n(\d+)\.octopus\.(?:crop_resize_normalize|end_to_end)\.(\w+)"
    found = [
        Field(scope, match[1], int(match[2]), match[3])
        for match, number in numbers.matching(pattern)
        if number.value == number.value and match[3] in QUANTITIES
    ]
    order = list(QUANTITIES)
    return sorted(found, key=lambda field: (field.workload, order.index(field.layer), field.n))


def counts(numbers: Numbers, scope: str, workload: str, layer: str) -> list[int]:
    """Return the counts of a workload on a layer, ascending."""
    found = fields(numbers, scope)
    return [field.n for field in found if (field.workload, field.layer) == (workload, layer)]


def shown_field(numbers: Numbers, scope: str, workload: str, layer: str) -> Field | None:
    """Return the comparison at the published count, else at the largest; None where there is none."""
    measured = counts(numbers, scope, workload, layer)
    if not measured:
        return None
    n = PUBLISHED_COUNT if PUBLISHED_COUNT in measured else measured[-1]
    return Field(scope, workload, n, layer)


def entered(numbers: Numbers, field: Field) -> dict[str, Number]:
    """Return every method that was entered in a comparison, with its time or the note why it has none."""
    pattern = re.escape(field.key("METHOD")).replace("METHOD", r"([\w+-]+)")
    found = {match[1]: number for match, number in numbers.matching(pattern)}
    return in_order({name: number for name, number in found.items() if not name.endswith("-again")})


def measured(numbers: Numbers, field: Field) -> dict[str, Number]:
    """Return the methods of a comparison that have a time."""
    return {name: number for name, number in entered(numbers, field).items() if number.value == number.value}


def without_time(numbers: Numbers, found: list[Field]) -> str:
    """Say which methods have no time in any of some comparisons, and why: ``A, B: why; C: another``."""
    timed = {name for field in found for name in measured(numbers, field)}
    reasons = {
        name: number.note
        for field in found
        for name, number in entered(numbers, field).items()
        if name not in timed
    }
    return by_reason(list(in_order(reasons).items()))


def differs(number: Number) -> bool:
    """Say whether a time belongs to an answer that differs from the reference."""
    return number.note.startswith("different")


def answer_of(numbers: Numbers, found: list[Field], method: str) -> str:
    """Return a method's answer in some comparisons: ``same``, ``different: why``, ``unavailable: why``, or nothing
    where it wasn't entered. A time in one of them is enough to be available."""
    known = [numbers[key] for field in found if (key := field.key(method)) in numbers]
    timed = [number for number in known if number.value == number.value]
    if timed:
        return next((number.note for number in timed if differs(number)), "same")
    return known[0].note if known else ""


def memory_lines(numbers: Numbers, scope: str) -> dict[str, dict[str, Number]]:
    """Return the lines of memory of each method, with what the growth leaves beside the payload."""
    pattern = rf"{scope}\.{STUDY}\.[\w-]+\.n\d+\.([\w+-]+)\.(memory_\w+)\.memory"
    found: dict[str, dict[str, Number]] = {}
    for match, number in numbers.matching(pattern):
        if number.id.split(".")[2] == MEMORY_WORKLOAD:
            found.setdefault(match[1], {})[match[2]] = number
    return in_order({method: lines for method, lines in found.items() if "memory_payload" in lines})


def in_order(methods: dict[str, object]) -> dict:
    """Sort methods as the arena shows them; ones that nobody named come last."""
    order = list(ARENA_METHODS)
    place = {name: index for index, name in enumerate(order)}
    return dict(sorted(methods.items(), key=lambda item: (place.get(item[0], len(order)), item[0])))
