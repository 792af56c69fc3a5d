"""What is drawn in a figure against the unit that its axis names."""

import re
from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes

from octopus_study.report.frame import Frame, Number
from octopus_study.report.outputs import figure_of, figures
from octopus_study.report.uses import watch
from octopus_study.verify.recomputed import UNITS
from octopus_study.verify.scene import Outcome, Scene

_UNIT = re.compile(r"\(([^();]+)[^()]*\)")
# Of what is drawn along an axis; the rest are ends of intervals, zeros, and what a figure computes.
LEAST_SHARE = 0.2
# Shares may be computed for a figure alone.
_JUDGED = ("time", "bytes", "power", "energy", "bandwidth")


def axes(scene: Scene) -> Outcome:
    """The unit of each axis that names one against the numbers that are drawn along it."""
    count, faults = 0, []
    for name, (study, chart) in figures().items():
        if scene.frame.shown(study) or chart.published:
            for label, share in judged(name, scene.frame):
                count += 1
                if share < LEAST_SHARE:
                    faults.append(f"{name}: {label!r} fits {share:.0%} of what is drawn along it")
    return Outcome(count, faults)


def judged(name: str, frame: Frame) -> Iterator[tuple[str, float]]:
    """Yield the label of each axis of a figure that names a unit, and the share of what is drawn along it that are
    numbers, looked up for this figure, in that unit."""
    (figure, _), watched = watch(lambda numbers: figure_of(name, numbers), frame)
    numbers = [number for key in watched.seen if (number := frame.get(key))]
    columns = [column for series in watched.drawn for column in series.columns.values()]
    points = [value for column in columns for value in column if isinstance(value, float)]
    for axis in figure.axes:
        for side in "xy":
            label = str(getattr(axis, f"get_{side}label")()).replace("\n", " ")
            unit = next((text for text in _UNIT.findall(label) if text in UNITS), "")
            drawn = _along(axis, side)
            if unit and UNITS[unit][0] in _JUDGED and len(drawn):
                known = np.array(sorted([*_in_unit(numbers, unit, " per " in label), *points]))
                if len(known):
                    yield label, _share(drawn, known)


def _along(axis: Axes, side: str) -> np.ndarray:
    """Return the coordinates of lines and the ends of bars along one side, but for zeros."""
    found = [0.0]
    for line in axis.lines:
        if line.get_transform() == axis.transData:
            found += list(np.asarray(getattr(line, f"get_{side}data")(), float))
    for patch in axis.patches:
        if hasattr(patch, "get_bbox"):
            found += list(getattr(patch.get_bbox(), f"interval{side}"))
    values = np.array(found)
    return values[np.isfinite(values) & (values != 0)]


def _in_unit(numbers: list[Number], unit: str, each: bool) -> list[float]:
    """Return the numbers of the unit's kind in that unit; with `each` also per item. Only then: 1 ms of 1000 items is
    1 us of each."""
    kind, size = UNITS[unit]
    same = [number for number in numbers if UNITS.get(number.unit, ("",))[0] == kind]
    values = [number.value * UNITS[number.unit][1] / size for number in same]
    if each:
        values += [value / number.n for value, number in zip(values, same, strict=True) if number.n]
    return values


def _share(drawn: np.ndarray, known: np.ndarray) -> float:
    place = np.searchsorted(known, drawn)
    beside = [known[np.clip(place + step, 0, len(known) - 1)] for step in (-1, 0)]
    near = np.minimum(*(np.abs(value - drawn) for value in beside)) <= 1e-9 * np.abs(drawn)
    return float(near.mean())
