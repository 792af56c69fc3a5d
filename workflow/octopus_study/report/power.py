"""What figures and tables of power share: which machines have energies, of what, and what to say of the others."""

from __future__ import annotations

import re
from typing import NamedTuple

from octopus_study.report.captions import scope_name
from octopus_study.report.labels import PUBLISHED_POWER, SHORT_METHODS, human
from octopus_study.report.numbers import Number, Numbers

STUDY = "power"
WORKLOAD = "visdrone"
LAYER = "back_to_back"
METHODS = ("octopus", "published", "n-launches")
# (method, other) whose ratio is taken apart, with what the comparison is called.
PAIRS = {
    ("published", "n-launches"): "One launch over N launches",
    ("octopus", "published"): "Octopus over the published kernels",
    ("octopus", "n-launches"): "Octopus over N launches",
}
JETSON = "Jetson Orin Nano, as published"
MISREAD = "Jetson, first table: a voltage as power"
NO_RUN = "No energy was measured: no run of the study power is at hand."
PUBLISHED_ALONE = "Only the published values are shown."


class Arm(NamedTuple):
    """A method at one number of boxes on one machine, with its three numbers."""

    n: int
    time: Number
    power: Number
    energy: Number


def measured(numbers: Numbers) -> list[str]:
    """Return the machines that have energies."""
    return [scope for scope in numbers.scopes(STUDY) if sensor_scope(numbers, scope)]


def without(numbers: Numbers) -> dict[str, str]:
    """Return the machines that ran the study and have no energies, with the reason."""
    scopes = [scope for scope in numbers.scopes(STUDY) if not sensor_scope(numbers, scope)]
    return {scope: numbers.text(f"{scope}.{STUDY}.unavailable_brief", "no reason given") for scope in scopes}


def sensor_scope(numbers: Numbers, scope: str) -> str:
    """Return what a machine's energies are the energies of, as columns name it; empty where it has none."""
    return numbers.text(f"{scope}.{STUDY}.sensor.scope")


def note(numbers: Numbers) -> str:
    """Say on which machines there is no energy; empty where every machine has one."""
    if not numbers.scopes(STUDY):
        return NO_RUN
    parts = [
        f"No energy was measured on {scope_name(numbers, scope)}: {why}."
        for scope, why in without(numbers).items()
    ]
    return " ".join(parts)


def figure_note(numbers: Numbers) -> str:
    """Say in a figure that it shows published values alone; empty where something was measured."""
    return "" if measured(numbers) else f"{note(numbers)} {PUBLISHED_ALONE}"


def footer(numbers: Numbers) -> str:
    """Say what a figure rests on."""
    return numbers.text("shown.power.energy") if measured(numbers) else "Nothing was measured."


def key(numbers: Numbers, scope: str, n: int, method: str, quantity: str, layer: str = LAYER) -> str:
    """Return the id of a quantity; the sensor's scope is part of the names of powers and energies."""
    suffix = "" if quantity.startswith("time") else f"_{sensor_scope(numbers, scope)}"
    return f"{scope}.{STUDY}.{WORKLOAD}.n{n}.{method}.{quantity}{suffix}.{layer}"


def counts(numbers: Numbers, scope: str, layer: str = LAYER) -> list[int]:
    """Return the numbers of boxes at which a machine has energies, ascending."""
    name = f"energy_per_frame_{sensor_scope(numbers, scope)}"
    found = numbers.matching(rf"{scope}\.{STUDY}\.{WORKLOAD}\.n(\d+)\.[\w-]+\.{name}\.{layer}")
    return sorted({int(match[1]) for match, number in found if number.value == number.value})


def arms(numbers: Numbers, scope: str, method: str, energy: str = "energy_per_frame") -> list[Arm]:
    """Return a method's arms on a machine, by number of boxes; those without a number are left out."""
    found = []
    for n in counts(numbers, scope):
        parts = [
            numbers.get(key(numbers, scope, n, method, name))
            for name in ("time_per_frame", "power_mean", energy)
        ]
        if all(parts):
            found.append(Arm(n, *parts))
    return found


def published_arms(numbers: Numbers, method: str) -> list[Arm]:
    """Return the published arms of a method, by number of boxes."""
    name = PUBLISHED_POWER.get(method)
    found = []
    for n in published_counts(numbers) if name else []:
        prefix = f"published.power.n{n}.{name}"
        found.append(Arm(n, *(numbers[f"{prefix}.{quantity}"] for quantity in ("time", "power", "energy"))))
    return found


def published_counts(numbers: Numbers, table: str = "power") -> list[int]:
    """Return the numbers of boxes of a published power table, ascending."""
    pattern = re.compile(rf"published\.{table}\.n(\d+)\.one-launch\.time")
    return sorted(int(match[1]) for match, _ in numbers.matching(pattern.pattern))


def ratio_key(scope: str, n: int, pair: tuple[str, str], name: str) -> str:
    """Return the id of a part of the energy ratio of two methods."""
    method, other = pair
    return f"{scope}.{STUDY}.{WORKLOAD}.n{n}.{method}.over_{other}.{LAYER}.{name}"


def method_name(method: str, published: bool = False) -> str:
    """Return what a legend calls a method."""
    return "One launch" if published and method == "published" else human(SHORT_METHODS, method)
