"""What several GPUs take, predicted from one of them and from copies alone, beside what they took.

The work on a GPU's own data takes as long as on one GPU. What uploading adds to it on one GPU is longer by as much as
copies alone are where all GPUs copy at once. It is less than the copies' own time, since the host queues batches behind
one another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from octopus_study.measure.statistics import Interval
from octopus_study.names import SCALING, SCALING_WORKS
from octopus_study.report.capacity import corners
from octopus_study.report.frame import Frame, Key, Number, joined, make_number
from octopus_study.report.measured import inherited
from octopus_study.report.missing import make_absent
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Spec
from octopus_study.report.view import View, every_view

STUDY, COPIES, WAY = "scaling", "copies", "processes"
RESIDENT, UPLOADED = "weak_resident", "weak_uploaded"
PREDICTED, RATIO = "predicted", "predicted_over_measured"
NOT_MEASURED = (
    "Nothing is predicted: no run of the study scaling that is shown timed several GPUs, and copies alone."
)


def gpus_of(method: str) -> int:
    """Return how many GPUs a method has."""
    return int(method.removesuffix("-again").rpartition("-")[2])


def predictions(frame: Frame) -> Iterator[Number]:
    """Yield the predicted time of every block of several GPUs by processes, that time over the measured one, and of
    each work and quantity the ratio that is farthest from 1."""
    for view in every_view(frame, STUDY):
        for work in (name for name in SCALING_WORKS if name != COPIES):
            for quantity in SCALING:
                yield from _of_quantity(view, work, quantity)


def _of_quantity(view: View, work: str, quantity: str) -> Iterator[Number]:
    numbers = view.select(workload=work, quantity=quantity, layer="host")
    several = [n for n in numbers if n.method.rpartition("-")[0] == WAY and gpus_of(n.method) > 1]
    found = [number for measured in several for number in _of_time(view, measured)]
    yield from found
    ratios = [number for number in found if number.derived == RATIO]
    if ratios:
        worst = max(ratios, key=lambda number: abs(math.log(number.value)))
        note = f"farthest from 1, of {gpus_of(worst.method)} GPUs; {worst.note}"
        yield worst.named(worst.key.but(method=WAY))._replace(note=note)
    elif several:
        key, why = several[0].key.but(method=WAY), several[0].text
        why = "one GPU or copies alone were not timed" if several[0].known else why
        yield make_absent(key.derive(RATIO), several[0].source, "ratio", why)


def _of_time(view: View, number: Number) -> Iterator[Number]:
    parts = _basis(view, number.key)
    if not number.known or not parts:
        return
    shared = gpus_of(number.method) if number.quantity.startswith("strong") else 1
    time = corners(lambda *ms: _time(*ms) / shared, *map(interval_of, parts))
    behind = (*parts, number)
    source = joined(*behind)
    note = "time of one GPU" if len(parts) == 1 else "time of one GPU + its upload x copies of all / of one"
    note = inherited(f"{note}, / {shared}" if shared > 1 else note, *behind)
    yield make_number(number.key.derive(PREDICTED), source, "ms", *time, note=note)
    ratio = corners(lambda predicted, measured: predicted / measured, time, interval_of(number))
    note = inherited("predicted / median, over all ends of the intervals", *behind)
    yield make_number(number.key.derive(RATIO), source, "ratio", *ratio, note=note)


def _basis(view: View, key: Key) -> list[Number]:
    """Return the times that a time follows from; nothing where one of them is lacking."""
    one = key.but(method=f"{WAY}-1")
    keys = [one.but(quantity=RESIDENT)]
    if key.quantity.endswith("uploaded"):
        copies = {number.method: number.key for number in view.select(workload=COPIES, quantity=UPLOADED)}
        keys += [one.but(quantity=UPLOADED), *(copies[n] for n in (one.method, key.method) if n in copies)]
    found = [number for number in map(view.get, keys) if number]
    return found if len(found) == (4 if key.quantity.endswith("uploaded") else 1) else []


def _time(work: float, uploaded: float = 0, alone: float = 1, at_once: float = 0) -> float:
    """Return ms of a block; without uploads it is the work alone."""
    return work + (uploaded - work) * at_once / alone


def interval_of(number: Number) -> Interval:
    """Return a measured number as an interval."""
    return Interval(number.value, number.low, number.high, number.blocks or 1)


def _cases(view: View) -> Iterator[Key]:
    for work in SCALING_WORKS:
        for quantity in SCALING:
            for number in view.select(workload=work, quantity=quantity, derived=PREDICTED):
                yield number.key.derive("")


TABLE = Spec(
    study=STUDY,
    first="Work",
    label=lambda view, key: f"{SCALING_WORKS[key.workload]}, {SCALING[key.quantity]}",
    cases=_cases,
    columns={
        "GPUs": lambda view, key: str(gpus_of(key.method)),
        "Predicted": cells.interval(derived=PREDICTED),
        "Measured": cells.interval(),
        "Predicted / measured": cells.interval(derived=RATIO),
    },
    caption="Several GPUs of one host by a process each: time of a block, predicted from one GPU and from copies "
    "alone, and measured. What uploading adds to a block on one GPU is longer by as much as copies alone are when all "
    "GPUs copy. Ends of ratios: over all ends of the intervals.",
    absent=NOT_MEASURED,
    widths=("2.4fr", "0.5fr", "2fr", "2fr", "2fr"),
)
