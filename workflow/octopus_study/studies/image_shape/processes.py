"""Starts the processes of the study `image_shape` and compares what they computed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from octopus.errors import OctopusError
from octopus_study.measure import Method, Row, check_answers
from octopus_study.measure.clock_rates import ClockRates
from octopus_study.measure.worker import Worker
from octopus_study.names import AS_PUBLISHED
from octopus_study.status import Answer, different
from octopus_study.studies.image_shape.child import Order

log = logging.getLogger(__name__)

CHILD = "octopus_study.studies.image_shape.child"
SECONDS = 300  # for one order, after which its process is ended
# Of the result's greatest value: TF32 has 10 bits, and the algorithms add in different orders.
TOLERANCE = 0.01
WHY_DIFFERENT = {
    "padded-whole": "quadrants begin at columns that are no multiple of 8, so the model's strides fall elsewhere",
    "forced-split": "a quadrant sees nothing beyond its overlap",
}


def in_forks(
    orders: Sequence[Order], folder: Path, rates: ClockRates | None = None
) -> Iterator[list[Row] | str]:
    """Per order its rows, or why there are none; `rates` gets the GPU's clocks meanwhile.

    `folder` holds `image.npy`, and gets the results that are kept.
    """
    log.info("%d processes, one after the other", len(orders))
    with Worker("its process") as worker:
        for order in orders:
            try:
                worker.start()  # anew if the one before has ended
                worker.ask(f"{CHILD}:import_once", seconds=SECONDS)
                yield worker.ask_fork(
                    f"{CHILD}:measure", order, folder, seconds=SECONDS, meanwhile=rates and rates.read
                )
            except OctopusError as error:
                yield str(error)


def measured(orders: Sequence[Order], folder: Path, found: Iterable[list[Row] | str]) -> list[Row]:
    """The rows of all orders, with their answers; those of an order that failed say so."""
    outcomes = list(found)
    answers, rows = _answers(orders, folder), []
    for order, outcome in zip(orders, outcomes, strict=True):
        if isinstance(outcome, str):
            log.warning("%s, %s: %s", order.workload, order.method, outcome)
            rows += order.gaps(outcome)
        else:
            rows += [_answered(row, answers) for row in outcome]
    return rows


def _answers(orders: Sequence[Order], folder: Path) -> dict[tuple[str, int, str], Answer]:
    """By workload, width and method: whether the image is the one of the model as published."""
    kept = [order for order in orders if order.keeps]
    answers = {}
    for published in (order for order in kept if order.method == AS_PUBLISHED):
        others = [order for order in kept if order.workload == published.workload]
        for width in published.widths:
            if not published.result(folder, width).is_file():
                continue
            expected = np.load(published.result(folder, width))
            for order in others:
                path = order.result(folder, width)
                if path.is_file():
                    answers[order.workload, width, order.method] = _compared(order.method, path, expected)
    return answers


def _compared(name: str, path: Path, expected: np.ndarray) -> Answer:
    if not np.isfinite(expected).all():
        return different("the model as published gives values that are NaN or infinite")
    tolerance = TOLERANCE * float(np.abs(expected).max())
    method = Method(name, lambda: None, lambda: np.load(path), tolerance, WHY_DIFFERENT.get(name, ""))
    return check_answers([method], expected)[name]


def _answered(row: Row, answers: dict[tuple[str, int, str], Answer]) -> Row:
    """The row with what the comparison said; counts of discarded blocks and gaps stay as they are."""
    answer = answers.get((row.workload, row.n, row.method))
    return row if answer is None or row.value is None else row.answered(answer)
