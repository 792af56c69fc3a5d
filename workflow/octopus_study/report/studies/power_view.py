"""What tables and figures of power share: which machines have energies, of what, and what to say of the others."""

from __future__ import annotations

from typing import NamedTuple

from octopus_study.names import POWER_SCOPES, PUBLISHED_POWER, SHORT_METHODS, human
from octopus_study.report.frame import PUBLISHED, Frame, Key, Number, published
from octopus_study.report.view import View, views

STUDY = "power"
WORKLOAD = "visdrone"
BACK_TO_BACK, PACED = "back_to_back", "paced"
METHODS = ("octopus", "published", "n-launches")
# (method, other) whose ratio is taken apart, with what the comparison is called.
PAIRS = {
    ("published", "n-launches"): "One launch over N launches",
    ("octopus", "published"): "Octopus over the published kernels",
}
PARTS = ("time", "power", "energy")
JETSON = "Jetson Orin Nano, as published"
NO_RUN = "No energy was measured: no run of the study power is at hand."


class Point(NamedTuple):
    """A method at one number of boxes on one machine, with its three numbers."""

    n: int
    time: Number
    power: Number
    energy: Number


def of(view: View) -> str:
    """Return what a machine's energies are the energies of, as columns name it; empty where it has none."""
    return view.fact("sensor.scope")


def of_name(view: View) -> str:
    """Return what a machine's energies are the energies of, for readers."""
    return human(POWER_SCOPES, of(view))


def measured(frame: Frame) -> list[View]:
    """Return the machines that have energies."""
    return [view for view in views(frame, STUDY) if _has_energies(view)]


def _has_energies(view: View) -> bool:
    return bool(of(view)) and any(points(view, method) for method in METHODS)


def note(frame: Frame) -> str:
    """Say on which machines there is no energy; empty where every machine has one."""
    machines = views(frame, STUDY)
    reasons = {view.name: view.fact("unavailable_brief") for view in machines if not _has_energies(view)}
    texts = [
        f"No energy was measured on {name}: {why or 'no reason given'}." for name, why in reasons.items()
    ]
    return " ".join(texts) if machines else NO_RUN


def figure_note(frame: Frame) -> str:
    """Say in a figure that it shows published values alone; empty where something was measured."""
    return "" if measured(frame) else f"{note(frame)} Only the published values are shown."


def footer(frame: Frame) -> str:
    """Say what a figure rests on."""
    shown = frame.text(Key("shown", STUDY, quantity="energy"))
    return shown if measured(frame) else "Nothing was measured."


def key(view: View, n: int | None, method: str, quantity: str, layer: str = BACK_TO_BACK) -> Key:
    """Return the key of a quantity; what the sensor sees is part of the names of powers and energies."""
    name = quantity if quantity.startswith("time") else f"{quantity}_{of(view)}"
    return view.key(WORKLOAD, n, method, quantity=name, layer=layer)


def counts(view: View, layer: str = BACK_TO_BACK) -> list[int]:
    """Return the numbers of boxes at which a machine has energies, ascending."""
    numbers = view.select(quantity=f"energy_per_frame_{of(view)}", layer=layer)
    return sorted({number.n for number in numbers if number.known})


def points(view: View, method: str, energy: str = "energy_per_frame") -> list[Point]:
    """Return a method's points on a machine, by number of boxes; those without a number are left out."""
    names = ("time_per_frame", "power_mean", energy)
    by_count = {n: [view.get(key(view, n, method, name)) for name in names] for n in counts(view)}
    return [Point(n, *numbers) for n, numbers in by_count.items() if all(numbers)]


def published_counts(frame: Frame, table: str = STUDY) -> list[int]:
    """Return the numbers of boxes of a published power table, ascending."""
    numbers = frame.select(PUBLISHED, table, method=PUBLISHED_POWER["published"], quantity="time")
    return sorted(number.n for number in numbers)


def published_points(frame: Frame, method: str) -> list[Point]:
    """Return the published points of a method, by number of boxes."""
    name = PUBLISHED_POWER[method]
    return [
        Point(n, *(frame[published(STUDY, f"n{n}", name, quantity)] for quantity in PARTS))
        for n in published_counts(frame)
    ]


def published_ratio(table: str, n: int, part: str) -> Key:
    """Return the key of a ratio of a published table, one launch over N launches."""
    return Key(PUBLISHED, "derived", table, n, quantity=part)


def ratio_key(view: View, n: int, pair: tuple[str, str], part: str) -> Key:
    """Return the key of a part of the energy ratio of two methods."""
    where = {"quantity": f"over_{pair[1]}", "layer": BACK_TO_BACK, "derived": part}
    return view.key(WORKLOAD, n, pair[0], **where)


def method_name(method: str, printed: bool = False) -> str:
    """Return what a legend calls a method."""
    return "One launch" if printed and method == "published" else human(SHORT_METHODS, method)
