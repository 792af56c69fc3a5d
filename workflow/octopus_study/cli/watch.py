"""A study in a process of its own, watched: a method that ends that process, or never returns, costs a row.

All methods still run in one process, since a process for each would change what is measured. If that process dies, or
one method is at work for too long, the study starts again without that method; parts that were complete are kept.
"""

from __future__ import annotations

import json
import logging
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from octopus_study.errors import MeasureError
from octopus_study.measure.at_work import BOARD, REFUSED, make_board, read_board
from octopus_study.measure.worker import Worker, WorkerError
from octopus_study.studies import run_study

if TYPE_CHECKING:
    from octopus_study.config import Config

log = logging.getLogger(__name__)

RUN = "octopus_study.cli.watch:run"


def run_watched(study: str, *, config: Config, manifest: Path, out: Path) -> None:
    """Run a study as `run_study`, in a process that may die: `MeasureError` where it dies while no method is at work,
    or again by the same method."""
    given = {"study": study, "config": config, "manifest": manifest, "out": out}
    refused: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        while True:
            method, reason = _attempt(Path(folder), given, refused, config.measure.stuck_seconds)
            if not reason:
                return
            if not method or method in refused:
                raise MeasureError(f"the process that measures {study} {reason}{' again' if method else ''}")
            log.warning("%s: %s %s; the study goes on without it", study, method, reason)
            refused[method] = f"it {reason}"


def _attempt(folder: Path, given: dict[str, Any], refused: dict[str, str], limit: float) -> tuple[str, str]:
    """Run the study once; the method that ended it, if any, and how, or no reason if it was completed."""
    board = folder / "board"
    make_board(board)
    task = {"given": given, "kept": folder / "parts", "argv": sys.argv, "levels": _levels()}
    watch = _Watch(board, limit)
    try:
        environment = {BOARD: str(board), REFUSED: json.dumps(refused)}
        with Worker("the process", environment, shows=True) as worker:
            worker.ask(RUN, task, seconds=math.inf, meanwhile=watch)
    except _StuckError as stuck:
        return read_board(board)[1], str(stuck)
    except WorkerError as error:
        if not error.how:  # of a process that the study has started
            raise
        return read_board(board)[1], error.how.replace("ended", "ended the process", 1)
    return "", ""


class _StuckError(Exception):
    """A method is at work for too long."""


class _Watch:
    """Looks whether the board still changes."""

    def __init__(self, board: Path, limit: float) -> None:
        self._board, self._limit = board, limit
        self._seen, self._since = "", time.monotonic()

    def __call__(self) -> None:
        entry, method = read_board(self._board)
        if entry != self._seen:
            self._seen, self._since = entry, time.monotonic()
        elif method and time.monotonic() - self._since > self._limit:
            raise _StuckError(f"was at work for {self._limit:g} s without an end, and was ended")


def _levels() -> dict[str, int]:
    return {name: logging.getLogger(name).level for name in ("", "octopus", "octopus_study", "numba")}


def run(task: dict[str, Any]) -> None:
    """Run a study in the process; what it raises goes to the parent."""
    logging.basicConfig(format="[%(asctime)s] %(levelname)-8s %(message)s", datefmt="%X")
    for name, level in task["levels"].items():
        logging.getLogger(name).setLevel(level)
    sys.argv = task["argv"]  # the command in the provenance is the user's
    run_study(**task["given"], kept=task["kept"])
