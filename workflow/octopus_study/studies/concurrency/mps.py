"""NVIDIA's Multi-Process Service (MPS), started for a study alone and stopped behind it.

MPS lets processes share a GPU at the same time instead of taking turns. A process becomes a client when it finds the
control daemon's pipe at its first use of CUDA, and *silently runs without MPS* when it doesn't. So the daemon's own
list of clients is the proof, and nothing else is.

The daemon has folders of its own, so that no other process can become its client, and none of ours that of another
daemon. The GPU's compute mode is left as it is.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path

from octopus_study.baselines.availability import Unavailable
from octopus_study.measure.rows import one_line

log = logging.getLogger(__name__)

CONTROL = "nvidia-cuda-mps-control"
SECONDS = 20.0  # for one answer of the control program
QUIT_SECONDS = 10.0  # for the daemon's end
PID_FILE = f"{CONTROL}.pid"


class Mps:
    """A control daemon of our own; entering it raises `Unavailable` where it is missing or doesn't start or answer."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._own: dict[str, str] = {}
        self.environment: dict[str, str] = {}  # what a process needs to become a client

    def __enter__(self) -> Mps:
        if shutil.which(CONTROL) is None:
            raise Unavailable(f"{CONTROL} is not installed; it comes with NVIDIA's driver on Linux")
        with ExitStack() as stack:
            # A socket's path has a hundred characters at most, which a temporary folder of one's own may exceed.
            short = "/tmp" if os.access("/tmp", os.W_OK) else None
            folder = Path(tempfile.mkdtemp(prefix="mps-", dir=short))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            for name in ("pipe", "log"):
                (folder / name).mkdir()
                self._own[f"CUDA_MPS_{name.upper()}_DIRECTORY"] = str(folder / name)
            self.environment = self._own | _first_device()
            _end_when_terminated(stack)
            stack.callback(self._quit, folder)
            self._start(folder / "output.txt")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def clients(self) -> set[int]:
        """Process ids of the clients that are attached now."""
        lists = [_numbers(self._say(f"get_client_list {server}")) for server in self._servers()]
        return {client for clients in lists for client in clients}

    def wait_for(self, workers: Iterable[int], seconds: float = 5.0) -> str:
        """Wait until exactly these processes are attached; say what is wrong, or nothing. One that is missing runs
        without MPS, one more would mean that somebody else is served."""
        wanted, until = set(workers), time.monotonic() + seconds
        while (clients := self.clients()) != wanted:
            if time.monotonic() >= until:
                return (
                    f"the MPS daemon's clients are {_listed(clients)}, the processes of this arm {_listed(wanted)}: "
                    "they were not attached, or others were"
                )
            time.sleep(0.1)
        return ""

    def _servers(self) -> list[int]:
        """Process ids of the servers; there is none before the first client."""
        return _numbers(self._say("get_server_list"))

    def _start(self, output: Path) -> None:
        """Start the daemon; it goes into the background by itself and keeps the files that it is given."""
        with output.open("w", encoding="utf-8") as out:
            try:
                done = subprocess.run(
                    [CONTROL, "-d"], env={**os.environ, **self._own},
                    stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=SECONDS,
                )  # fmt: skip
            except subprocess.TimeoutExpired as error:
                raise Unavailable(f"the MPS daemon did not start within {SECONDS:g} s") from error
        if done.returncode:
            words = one_line(output.read_text(encoding="utf-8", errors="replace")) or "it said nothing"
            raise Unavailable(f"the MPS daemon did not start: exit status {done.returncode}, {words}")
        if self._servers():
            raise Unavailable("the MPS daemon has servers before it has a client: it is not the one just started")

    def _say(self, command: str) -> str:
        """Give the control program a command, and return its answer."""
        try:
            done = subprocess.run(
                [CONTROL], env={**os.environ, **self._own}, input=command + "\n",
                capture_output=True, text=True, timeout=SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"the MPS daemon did not answer {command!r} within {SECONDS:g} s") from error
        if done.returncode:
            words = one_line(done.stdout + done.stderr) or "it said nothing"
            raise Unavailable(f"the MPS daemon did not take {command!r}: {words}")
        return done.stdout

    def _quit(self, folder: Path) -> None:
        """Have the daemon quit, and see that it does."""
        daemon = None
        with suppress(OSError, ValueError):
            daemon = int((folder / "pipe" / PID_FILE).read_text(encoding="ascii"))
        try:
            self._say("quit")
        except (Unavailable, OSError) as error:
            log.warning("%s", error)
        if daemon is not None and not _gone(daemon, QUIT_SECONDS):
            log.warning("the MPS daemon %d did not quit and is ended", daemon)
            with suppress(OSError):
                os.kill(daemon, signal.SIGTERM)


def _end_when_terminated(stack: ExitStack) -> None:
    """Let SIGTERM, which ends Python at once, end it as an exception does: a daemon outlives whoever started it."""
    in_main = threading.current_thread() is threading.main_thread()  # no other thread may say what a signal does
    if in_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        # As a shell says that a signal ended a process.
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        stack.callback(signal.signal, signal.SIGTERM, signal.SIG_DFL)


def _first_device() -> dict[str, str]:
    """The daemon numbers anew the devices that it may see, so that a client's first is always number 0."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return {"CUDA_VISIBLE_DEVICES": "0"} if chosen[:1].isdigit() else {}


def _numbers(answer: str) -> list[int]:
    """Process ids, one per line; lines that hold anything else are messages."""
    return [int(line) for line in answer.split("\n") if line.strip().isdigit()]


def _listed(processes: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(processes))) or "none"


def _gone(process: int, seconds: float) -> bool:
    """Whether a process ends in time, be it that its exit status was never asked for, as in some containers."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.kill(process, 0)
            status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
            if status.rpartition(")")[2].split()[0] == "Z":
                return True
        except ProcessLookupError:
            return True
        except OSError:  # this system has no such file, or no longer: the next look tells
            pass
        time.sleep(0.05)
    return False
