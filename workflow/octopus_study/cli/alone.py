"""A GPU for one study at a time: a lock among our own runs, and a look at whether anything else works there."""

import fcntl
import logging
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from octopus.backends import resolve
from octopus.errors import DeviceError
from octopus_study.measure import _nvml
from octopus_study.measure.machine import gpu_name

# What a desktop takes for itself stays below; a study that has just ended shows above for a second.
BUSY_PERCENT = 10
QUIET_READINGS = 3
BETWEEN_SECONDS = 0.4
PATIENCE_SECONDS = 15
ANYWAY = "OCTOPUS_BUSY"

log = logging.getLogger(__name__)


@contextmanager
def alone(device: str) -> Iterator[None]:
    """Hold the GPU among all runs on this machine, and begin when it is idle. On a CPU nothing is held. `DeviceError`
    where something else still works on it after 15 s and the environment doesn't say ``OCTOPUS_BUSY=measure``."""
    if resolve(device) != "cuda":
        yield
        return
    with _lock_file(_nvml.pci_address()) as file:
        _take(file)
        if os.environ.get(ANYWAY) != "measure":
            wait_until_idle()
        yield


def wait_until_idle() -> None:
    """Return when the GPU has been idle for a second; where NVML can't say how busy it is, at once."""
    quiet, end = 0, time.monotonic() + PATIENCE_SECONDS
    while quiet < QUIET_READINGS:
        use = _nvml.read("nvmlDeviceGetUtilizationRates")
        if use is None:
            return
        quiet = quiet + 1 if use.gpu <= BUSY_PERCENT else 0
        if not quiet and time.monotonic() > end:
            raise DeviceError(_company(use.gpu))
        time.sleep(BETWEEN_SECONDS)


def _company(percent: int) -> str:
    processes = _nvml.read("nvmlDeviceGetComputeRunningProcesses") or ()
    others = ", ".join(f"process {each.pid}" for each in processes) or "a process that can't be seen from here"
    return (
        f"other work runs on the {gpu_name()}: it was busy {percent} % of the time ({others}), and what is measured "
        f"beside it means nothing. End it, or wait, and repeat the command; {ANYWAY}=measure measures all the same"
    )


@contextmanager
def _lock_file(address: str) -> Iterator[IO[str]]:
    path = Path(tempfile.gettempdir(), f"octopus-gpu-{address.replace(':', '-')}.lock")
    # The first run makes it, for all users of the machine.
    descriptor = os.open(path, os.O_CREAT | os.O_RDONLY, 0o666)
    with os.fdopen(descriptor) as file:
        yield file


def _take(file: IO[str]) -> None:
    """Hold the lock until the file is closed; the kernel lets go of it however the process ends."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        log.warning("another run measures on this GPU; this one goes on when that study is over")
        fcntl.flock(file, fcntl.LOCK_EX)
