"""What the tests on a GPU share: waiting, streams with work on them, the sanitizer, kernels compiled side by side."""

import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from cases.runners import Gpu
from cases.tables import ALL, TABLES

from octopus.backends.cuda import compile
from octopus.backends.cuda.device import current
from octopus.backends.cuda.memory import DeviceArray, allocate
from octopus.kernels.arguments import Arguments


def host(array):
    """An array of any library on the host."""
    if isinstance(array, np.ndarray):
        return array
    return array.copy_to_host() if hasattr(array, "copy_to_host") else array.cpu().numpy()


def synchronize():
    current().sync()


def slow_down(stream, microseconds):
    """Queue waiting on a stream."""
    from cuda.core import LaunchConfig, launch

    launch(stream, LaunchConfig(grid=1, block=1), _waiting(), np.int32(microseconds))


def slow_stream():
    """A non-blocking stream with 20 ms of waiting already queued."""
    stream = current().create_stream()
    slow_down(stream, 20_000)
    return stream


def _waiting():
    def build():
        from numba import cuda

        def wait(microseconds):
            for _ in range(microseconds):
                cuda.nanosleep(np.uint32(1000))

        wait.arguments = Arguments.table("int32 microseconds")
        return wait

    return compile.load("wait", build, Path(__file__).parent)


def refuse_allocation(*args):
    """Stands for `memory.allocate` while a plan runs."""
    raise AssertionError("a run allocated device memory")


def new_results(count, items, size):
    """Memory for as many batches of crops."""
    return [DeviceArray((items, 3, *size), np.float32) for _ in range(count)]


def overwrite_freed_memory(shape):
    """What has been given back is handed out again and filled with NaN."""
    for _ in range(50):
        DeviceArray(shape, np.float32).fill_bytes(0xFF)


def sanitize(tool, code, folder):
    """Run a program under a tool of compute-sanitizer, which must find nothing."""
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    script = folder / "program.py"
    script.write_text(code)
    options = ["--tool", tool, "--report-api-errors", "no", "--error-exitcode", "9"]
    command = [program, *options, sys.executable, script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def compile_side_by_side():
    """Compile the kernels of all cases in several processes; the tests then find them in the cache. One after the other
    they take minutes, since a process compiles one kernel at a time."""
    allocate(1)  # fails here, and not in every process, where there is no GPU
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        list(pool.map(_make, reversed(ALL)))  # those of images take longest


def _make(case):
    table, name = case
    for scene in ("small", "large"):
        with suppress(Exception):  # which the test of the case shows
            TABLES[table][name].check(scene, Gpu())
