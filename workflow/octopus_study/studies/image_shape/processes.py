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
from octopus_study.measure.clock_rates import PERIOD_S, ClockRates
from octopus_study.names import AS_PUBLISHED
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


def measured(orders: Sequence[Order], folder: Path, rates: ClockRates | None = None) -> list[Row]:
    """The rows of all orders; those of an order whose process failed say so.

    `folder` holds `image.npy`, and gets what the processes write; `rates` gets the GPU's clocks meanwhile.
    """
    last_words = _run(orders, folder, rates)
    answers = _answers(orders, folder)
    rows = []
    for number, order in enumerate(orders):
        path = folder / f"{number}.json"
        content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"reason": last_words}
        if "reason" in content:
            log.warning("%s, %s: %s", order.workload, order.method, content["reason"])
            rows += order.gaps(content["reason"])
            continue
        rows += [_answered(Row(*row), answers) for row in content["rows"]]
    return rows


def _run(orders: Sequence[Order], folder: Path, rates: ClockRates | None) -> str:
    """Have a fresh Python carry out the orders, and return what to say where no answer came."""
    task = {"orders": [asdict(order) for order in orders], "folder": str(folder), "seconds": SECONDS}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    log.info("%d processes, one after the other", len(orders))
    said = _talk([sys.executable, "-m", CHILD], json.dumps(task), environment, rates)
    last = (said.strip().splitlines() or ["it said nothing"])[-1]
    return f"its process ended without an answer within {SECONDS} s: {last}"


def _talk(command: list[str], task: str, environment: dict[str, str], rates: ClockRates | None) -> str:
    """Give a process its task, read the clocks from here until it ends, and return what it said on its errors."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, text=True, **pipes) as process:
        given: str | None = task
        while True:
            try:
                return process.communicate(given, timeout=PERIOD_S)[1]
            except subprocess.TimeoutExpired:
                given = None  # it has its task
                if rates is not None:
                    rates.read()
            except BaseException:
                process.kill()
                raise


def _answers(orders: Sequence[Order], folder: Path) -> dict[tuple[str, int, str], str]:
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


def _compared(name: str, path: Path, expected: np.ndarray) -> str:
    if not np.isfinite(expected).all():
        return "different: the model as published gives values that are NaN or infinite"
    tolerance = TOLERANCE * float(np.abs(expected).max())
    method = Method(name, lambda: None, lambda: np.load(path), tolerance, WHY_DIFFERENT.get(name, ""))
    return check_answers([method], expected)[name]


def _answered(row: Row, answers: dict[tuple[str, int, str], str]) -> Row:
    """The row with what the comparison said; counts of discarded blocks and gaps stay as they are."""
    answer = answers.get((row.workload, row.n, row.method))
    return row if answer is None or row.value is None else row._replace(answer=answer)
