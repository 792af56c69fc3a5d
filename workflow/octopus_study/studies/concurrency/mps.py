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
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from octopus_study.measure.rows import one_line
from octopus_study.peers.availability import Unavailable

log = logging.getLogger(__name__)

CONTROL = "nvidia-cuda-mps-control"
SECONDS = 20.0  # for one answer of the control program
QUIT_SECONDS = 10.0  # for the daemon's end
PID_FILE = f"{CONTROL}.pid"


class Mps:
    """A control daemon of our own; a context manager.

    Attributes
    ----------
    environment : dict
        What a process needs to become a client.

    Raises
    ------
    Unavailable
        On entering: the control program is missing, or its daemon doesn't start or answer.
    """

    def __init__(self, control: str = CONTROL, seconds: float = SECONDS) -> None:
        self._control, self._seconds = control, seconds
        self._folder: Path | None = None
        self._own: dict[str, str] = {}
        self.environment: dict[str, str] = {}
        self._replaced = False

    def __enter__(self) -> Mps:
        if shutil.which(self._control) is None:
            raise Unavailable(f"{self._control} is not installed; it comes with NVIDIA's driver on Linux")
        # A socket's path has a hundred characters at most, which a temporary folder of one's own may exceed.
        short = "/tmp" if os.access("/tmp", os.W_OK) else None
        self._folder = Path(tempfile.mkdtemp(prefix="mps-", dir=short))
        self._own = _folders(self._folder)
        self.environment = self._own | _first_device()
        self._heed_termination()
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def servers(self) -> list[int]:
        """Process ids of the servers; there is none before the first client."""
        return _numbers(self._say("get_server_list"))

    def clients(self) -> set[int]:
        """Process ids of the clients that are attached now."""
        return {
            client for server in self.servers() for client in _numbers(self._say(f"get_client_list {server}"))
        }

    def listing(self) -> list[str]:
        """The control program's own table of clients, line by line; for the record."""
        return [" ".join(line.split()) for line in self._say("ps").splitlines() if line.strip()]

    def wait_for(self, workers: Iterable[int], seconds: float = 5.0) -> str:
        """Wait until exactly these processes are attached; say what is wrong, or nothing.

        Parameters
        ----------
        workers : iterable of int
            Their process ids. One that is missing runs without MPS, one more would mean that somebody else is served.
        """
        wanted, until = set(workers), time.monotonic() + seconds
        while True:
            clients = self.clients()
            if clients == wanted:
                return ""
            if time.monotonic() >= until:
                return (
                    f"the MPS daemon's clients are {_listed(clients)}, the processes of this arm {_listed(wanted)}: "
                    "they were not attached, or others were"
                )
            time.sleep(0.1)

    def _start(self) -> None:
        """Start the daemon; it goes into the background by itself and keeps the files that it is given."""
        assert self._folder is not None
        output = self._folder / "said.txt"
        with output.open("w", encoding="utf-8") as out:
            try:
                done = subprocess.run(
                    [self._control, "-d"],
                    env={**os.environ, **self._own},
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    timeout=self._seconds,
                )
            except subprocess.TimeoutExpired as error:
                raise Unavailable(f"the MPS daemon did not start within {self._seconds:g} s") from error
        if done.returncode:
            words = one_line(output.read_text(encoding="utf-8", errors="replace")) or "it said nothing"
            raise Unavailable(f"the MPS daemon did not start: exit status {done.returncode}, {words}")
        if self.servers():
            raise Unavailable(
                "the MPS daemon has servers before it has a client: it is not the one just started"
            )

    def _heed_termination(self) -> None:
        """Let SIGTERM, which ends Python at once, end it as an exception does: a daemon outlives whoever started it."""
        if threading.current_thread() is not threading.main_thread():
            return  # Python lets no other thread say what a signal does
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _terminated)
            self._replaced = True

    def _say(self, command: str) -> str:
        """Give the control program a command, and return its answer."""
        try:
            done = subprocess.run(
                [self._control],
                env={**os.environ, **self._own},
                input=command + "\n",
                capture_output=True,
                text=True,
                timeout=self._seconds,
            )
        except subprocess.TimeoutExpired as error:
            raise Unavailable(
                f"the MPS daemon did not answer {command!r} within {self._seconds:g} s"
            ) from error
        if done.returncode:
            words = one_line(done.stdout + done.stderr) or "it said nothing"
            raise Unavailable(f"the MPS daemon did not take {command!r}: {words}")
        return done.stdout

    def _stop(self) -> None:
        """Have the daemon quit, and see that it does; then SIGTERM is again what it was."""
        try:
            self._quit()
        finally:
            if self._replaced:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                self._replaced = False

    def _quit(self) -> None:
        folder, self._folder = self._folder, None
        if folder is None:
            return
        daemon = _daemon(folder)
        try:
            self._say("quit")
        except (Unavailable, OSError) as error:
            log.warning("%s", error)
        if daemon is not None and not _gone(daemon, QUIT_SECONDS):
            log.warning("the MPS daemon %d did not quit and is ended", daemon)
            with suppress(OSError):
                os.kill(daemon, signal.SIGTERM)
        shutil.rmtree(folder, ignore_errors=True)


def _terminated(number: int, frame: object) -> None:
    sys.exit(128 + number)  # as a shell says that a signal ended a process


def _first_device() -> dict[str, str]:
    """The daemon numbers anew the devices that it may see, so that a client's first is always number 0."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return {"CUDA_VISIBLE_DEVICES": "0"} if chosen[:1].isdigit() else {}


def _folders(folder: Path) -> dict[str, str]:
    folders = {f"CUDA_MPS_{name.upper()}_DIRECTORY": folder / name for name in ("pipe", "log")}
    for path in folders.values():
        path.mkdir()
    return {name: str(path) for name, path in folders.items()}


def _numbers(answer: str) -> list[int]:
    """Process ids, one per line; lines that hold anything else are messages."""
    return [int(line) for line in answer.split("\n") if line.strip().isdigit()]


def _listed(processes: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(processes))) or "none"


def _daemon(folder: Path) -> int | None:
    try:
        return int((folder / "pipe" / PID_FILE).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _gone(process: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if _ended(process):
            return True
        time.sleep(0.05)
    return False


def _ended(process: int) -> bool:
    """Whether a process has ended, also one that nobody has asked for its exit status yet, as in some containers."""
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except ProcessLookupError:
        return True
    except OSError:  # this system has no such file, or no longer: the next look tells
        return False
