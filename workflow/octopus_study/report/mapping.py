"""What figures and tables of the mapping strategies share: which comparisons a run has, and what to say without one."""

from __future__ import annotations

from octopus_study.report.captions import kernel_layer
from octopus_study.report.labels import DISTRIBUTIONS, OPERATIONS
from octopus_study.report.numbers import Number, Numbers

STUDY = "mapping"
NO_RUN = "No run of the study mapping is at hand: older results lack it."
NO_TIMES = "No run of the study mapping that is shown timed a kernel."
SUBJECT = "octopus"
# What Octopus is compared with, from the table to the tuned blocks.
RIVALS = (
    "lookup-scalar",
    "lookup",
    "thread-search-scalar",
    "thread-search",
    "block-metadata",
    "block-metadata-tuned",
)
MAPS = ("lookup", "lookup-device", "thread-search", "block-metadata", "block-metadata-tuned", SUBJECT)


def key(
    numbers: Numbers, scope: str, distribution: str, operation: str, n: int, method: str = SUBJECT
) -> str:
    """Return the id of a method's kernel time."""
    return f"{scope}.{STUDY}.{distribution}-{operation}.n{n}.{method}.kernel.{kernel_layer(numbers, scope)}"


def counts(numbers: Numbers, scope: str, distribution: str, operation: str = "multiply") -> list[int]:
    """Return the numbers of items at which Octopus was timed, ascending."""
    layer = kernel_layer(numbers, scope)
    pattern = rf"{scope}\.{STUDY}\.{distribution}-{operation}\.n(\d+)\.{SUBJECT}\.kernel\.{layer}"
    found = numbers.matching(pattern)
    return sorted({int(match[1]) for match, number in found if number.value == number.value})


def distributions(numbers: Numbers, scope: str) -> list[str]:
    """Return the distributions that a machine timed."""
    return [name for name in DISTRIBUTIONS if counts(numbers, scope, name)]


def operations(numbers: Numbers, scope: str) -> list[str]:
    """Return the operations that a machine timed on some distribution."""
    return [
        name
        for name in OPERATIONS
        if any(counts(numbers, scope, distribution, name) for distribution in DISTRIBUTIONS)
    ]


def ratio(numbers: Numbers, scope: str, where: tuple[str, str, int], pair: tuple[str, str]) -> Number | None:
    """Return time of the other / time of the method in the comparison (distribution, operation, items)."""
    return numbers.get(f"{key(numbers, scope, *where, pair[0])}.speedup_over_{pair[1]}")


def map_counts(numbers: Numbers, scope: str, distribution: str) -> list[int]:
    """Return the numbers of items whose maps a machine built, ascending."""
    pattern = rf"{scope}\.{STUDY}\.{distribution}\.n(\d+)\.batch\.elements\.deterministic"
    found = numbers.matching(pattern)
    return sorted(int(match[1]) for match, number in found if number.value == number.value)


def map_key(scope: str, distribution: str, n: int, method: str, quantity: str, layer: str = "host") -> str:
    """Return the id of what building, uploading or holding a map takes."""
    return f"{scope}.{STUDY}.{distribution}.n{n}.{method}.{quantity}.{layer}"
