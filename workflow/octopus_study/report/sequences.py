"""What figures and tables of the ragged sequences share."""

from __future__ import annotations

from octopus_study.report.labels import SEQUENCE_WORKLOADS
from octopus_study.report.numbers import Numbers

STUDY = "sequences"
NO_RUN = "No run of the study sequences is at hand: older results lack it."
NO_TIMES = "No run of the study sequences that is shown timed anything."
METHODS = (
    "octopus",
    "block-metadata",
    "lookup-vectorised",
    "lookup-published",
    "padded",
    "nested-jagged",
)


def prefixes(numbers: Numbers, scope: str) -> dict[str, str]:
    """Return the measured mixes, each with the start of its ids."""
    pattern = rf"({scope}\.{STUDY}\.([\w-]+)\.n\d+)\.octopus\.total\.host"
    found = {
        match[2]: match[1] for match, number in numbers.matching(pattern) if number.value == number.value
    }
    return {name: found[name] for name in SEQUENCE_WORKLOADS if name in found}


def measured(numbers: Numbers) -> list[str]:
    """Return the machines that measured some mix."""
    return [scope for scope in numbers.scopes(STUDY) if prefixes(numbers, scope)]
