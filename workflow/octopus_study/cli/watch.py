"""A study in a process of its own, watched: a method that ends that process, or never returns, costs a row.

All methods still run in one process, since a process for each would change what is measured. If that process dies, or
one method is at work for too long, the study starts again without that method; parts that were complete are kept.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from octopus.errors import OctopusError
from octopus_study.errors import MeasureError
from octopus_study.measure.at_work import BOARD, REFUSED, make_board, read_board
from octopus_study.measure.child import end_at_once, end_with_parent
from octopus_study.studies import run_study

if TYPE_CHECKING:
    from octopus_study.config import Config

log = logging.getLogger(__name__)

MODULE = "octopus_study.cli.watch"
LOOK_SECONDS = 0.5


def run_watched(study: str, *, config: Config, receipt: Path, out: Path, replicate: int = 1) -> None:
    """Run a study as `run_study`, in a process that may die.

    Raises
    ------
    MeasureError
        The process dies where no method is at work, or again by the same method.
    OctopusError
        What `run_study` raises.
    """
    given = {"study": study, "config": config, "receipt": receipt, "out": out, "replicate": replicate}
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
    board, failure = folder / "board", folder / "failure"
    make_board(board)
    environment = {
        **os.environ,
        BOARD: str(board),
        REFUSED: json.dumps(refused),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    task = {"given": given, "folder": folder, "argv": sys.argv, "levels": _levels()}
    process = subprocess.Popen([sys.executable, "-m", MODULE], stdin=subprocess.PIPE, env=environment)
    assert process.stdin is not None
    with process.stdin as pipe:
        pickle.dump(task, pipe)
    stuck = _wait(process, board, limit)
    if failure.exists():
        raise pickle.loads(failure.read_bytes())
    if process.returncode == 0:
        return "", ""
    return read_board(board)[1], stuck or _how(process.returncode)


def _wait(process: subprocess.Popen[bytes], board: Path, limit: float) -> str:
    """Wait for the end of a process; why it was ended, if it was."""
    seen, since = "", time.monotonic()
    while True:
        try:
            process.wait(LOOK_SECONDS)
            return ""
        except subprocess.TimeoutExpired:
            entry, method = read_board(board)
        if entry != seen:
            seen, since = entry, time.monotonic()
        elif method and time.monotonic() - since > limit:
            process.kill()
            process.wait()
            return f"was at work for {limit:g} s without an end, and was ended"


def _how(code: int) -> str:
    """How a process ended."""
    return (
        f"ended the process by {signal.Signals(-code).name}"
        if code < 0
        else f"ended the process with code {code}"
    )


def _levels() -> dict[str, int]:
    return {name: logging.getLogger(name).level for name in ("", "octopus", "octopus_study", "numba")}


def main() -> None:
    """Read a task from the standard input and run its study; an error of ours goes to the parent, which shows it."""
    end_with_parent()
    task = pickle.load(sys.stdin.buffer)
    logging.basicConfig(format="[%(asctime)s] %(levelname)-8s %(message)s", datefmt="%X")
    for name, level in task["levels"].items():
        logging.getLogger(name).setLevel(level)
    sys.argv = task["argv"]  # the command in the provenance is the user's
    try:
        run_study(**task["given"], kept=task["folder"] / "parts")
    except OctopusError as error:
        (task["folder"] / "failure").write_bytes(pickle.dumps(error))
        sys.exit(1)
    end_at_once()


if __name__ == "__main__":
    main()
