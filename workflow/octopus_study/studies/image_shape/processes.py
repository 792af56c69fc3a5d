"""Starts the processes of the study `image_shape` and compares what they computed."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from octopus_study.measure import Method, Row, check_answers
from octopus_study.methods import AS_PUBLISHED
from octopus_study.studies.image_shape.child import Order
from octopus_study.studies.image_shape.patches import TOLERANCE

log = logging.getLogger(__name__)

CHILD = "octopus_study.studies.image_shape.child"
SECONDS = 300  # for one order, after which its process is ended
WHY_DIFFERENT = {
    "padded-whole": "quadrants begin at columns that are no multiple of 8, so the model's strides fall elsewhere",
    "forced-split": "a quadrant sees nothing beyond its overlap",
}


def measured(orders: Sequence[Order], folder: Path) -> list[Row]:
    """The rows of all orders; those of an order whose process failed say so."""
    silent = _run(orders, folder)
    answers = _answers(orders)
    rows = []
    for number, order in enumerate(orders):
        path = folder / f"{number}.json"
        answer = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"why": silent}
        if "why" in answer:
            log.warning("%s, %s: %s", order.workload, order.method, answer["why"])
            rows += order.gaps(answer["why"])
            continue
        rows += [_answered(Row(*row), answers) for row in answer["rows"]]
    return rows


def _run(orders: Sequence[Order], folder: Path) -> str:
    """Have a fresh Python carry out the orders, and return what to say where no answer came."""
    given = {"orders": [asdict(order) for order in orders], "folder": str(folder), "seconds": SECONDS}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    log.info("%d processes, one after the other", len(orders))
    done = subprocess.run(
        [sys.executable, "-m", CHILD],
        input=json.dumps(given),
        env=environment,
        capture_output=True,
        text=True,
    )
    last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    return f"its process ended without an answer within {SECONDS} s: {last}"


def _answers(orders: Sequence[Order]) -> dict[tuple[str, int, str], str]:
    """By workload, width and method: whether the image is the one of the model as published."""
    answers = {}
    for published in (order for order in orders if order.results and order.method == AS_PUBLISHED):
        others = [order for order in orders if order.workload == published.workload and order.results]
        for width in published.widths:
            if not published.result(width).is_file():
                continue
            expected = np.load(published.result(width))
            for order in others:
                if order.result(width).is_file():
                    answers[order.workload, width, order.method] = _compared(order, width, expected)
    return answers


def _compared(order: Order, width: int, expected: np.ndarray) -> str:
    if not np.isfinite(expected).all():
        return "different: the model as published gives values that are NaN or infinite"
    method = Method(
        order.method,
        lambda: None,
        lambda: np.load(order.result(width)),
        TOLERANCE * float(np.abs(expected).max()),
        WHY_DIFFERENT.get(order.method, ""),
    )
    return check_answers([method], expected)[order.method]


def _answered(row: Row, answers: dict[tuple[str, int, str], str]) -> Row:
    """The row with what the comparison said; counts of discarded blocks and gaps stay as they are."""
    answer = answers.get((row.workload, row.n, row.method))
    return row if answer is None or row.value is None else row._replace(answer=answer)
