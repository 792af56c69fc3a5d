"""What figures and tables of image shapes share: widths, models, patches, and what a machine lacks."""

from __future__ import annotations

from octopus_study.report import companions
from octopus_study.report.derive.image_shape import JUMP, MULTIPLE, PEAK, PUBLISHED, SPLITS, Patch
from octopus_study.report.labels import DENOISERS
from octopus_study.report.numbers import Number, Numbers

__all__ = ["JUMP", "MULTIPLE", "PEAK", "PUBLISHED", "SPLITS", "Patch"]
STUDY = "image_shape"
NO_RUN = "No run of the study image_shape is at hand: older results lack it."
NO_MEMORY = "No run of the study image_shape that is shown ran a model on a GPU."


def key(scope: str, workload: str, width: int, method: str, quantity: str, layer: str) -> str:
    """Return the id of a median."""
    return f"{scope}.{STUDY}.{workload}.n{width}.{method}.{quantity}.{layer}"


def steps(numbers: Numbers, scope: str, model: str) -> list[int]:
    """Return the distances between widths at which a machine measured a model's memory, ascending."""
    found = numbers.matching(rf"{scope}\.{STUDY}\.{model}-step(\d+)\.n\d+\.{PUBLISHED}\.{PEAK}\.memory")
    return sorted({int(match[1]) for match, number in found if number.value == number.value})


def widths(
    numbers: Numbers, scope: str, workload: str, quantity: str = PEAK, layer: str = "memory"
) -> list[int]:
    """Return the widths at which a quantity is known, ascending."""
    found = numbers.matching(rf"{scope}\.{STUDY}\.{workload}\.n(\d+)\.{PUBLISHED}\.{quantity}\.{layer}")
    return sorted(int(match[1]) for match, number in found if number.value == number.value)


def splits(numbers: Numbers, scope: str, workload: str, width: int, method: str = PUBLISHED) -> float:
    """Return how often a forward split the image; NaN where nobody counted."""
    return numbers.value(key(scope, workload, width, method, SPLITS, "deterministic"))


def models(numbers: Numbers, scope: str) -> list[str]:
    """Return the models of which a machine measured the memory."""
    return [model for model in DENOISERS if steps(numbers, scope, model)]


def measured(numbers: Numbers) -> list[str]:
    """Return the machines that measured some model's memory."""
    return [scope for scope in numbers.scopes(STUDY) if models(numbers, scope)]


def counted(numbers: Numbers) -> list[str]:
    """Return the machines that counted splits, if only by following the shapes."""
    pattern = rf"([^.]+)\.{STUDY}\.splits\.\w+\.step\d+"
    found = {match[1] for match, _ in numbers.matching(pattern)}
    return [scope for scope in numbers.scopes(STUDY) if scope in found]


def patches(numbers: Numbers, scope: str, model: str) -> dict[Patch, Number]:
    """Return the time to cover the image by patch, side by side."""
    pattern = rf"{scope}\.{STUDY}\.{model}-patches\.n\d+\.(\d+x\d+)\.cover\.\w+"
    found: dict[Patch, Number] = {}
    for match, number in numbers.matching(pattern):
        patch = Patch.of(match[1])
        if patch and number.value == number.value:
            found[patch] = number
    return dict(sorted(found.items()))


def covered(numbers: Numbers) -> list[str]:
    """Return the machines that timed patches."""
    return [
        scope for scope in numbers.scopes(STUDY) if any(patches(numbers, scope, model) for model in DENOISERS)
    ]


def interventions(numbers: Numbers, scope: str) -> list[str]:
    """Return the models of which a machine measured the interventions."""
    return [model for model in DENOISERS if widths(numbers, scope, f"{model}-interventions")]


def no_memory(numbers: Numbers) -> str:
    """Say that nothing was measured, and why."""
    return companions.nothing(numbers, STUDY, NO_MEMORY)


def footer(numbers: Numbers) -> str:
    """Say what a figure rests on."""
    return companions.footer(numbers, STUDY)
