"""Makes the calls of a table on a pretended GPU whose kernels run in Numba's simulator, in a process of its own.

The simulator must be chosen before Numba is imported. Prints as JSON what is wrong with each case, "" if nothing is.

    python tests/library/cases/simulate.py crops PART PARTS
"""

import json
import os
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
sys.path.insert(0, str(Path(__file__).parents[1]))

import emulations
import numpy as np
import pretended
import pytest
from numba import cuda
from numba.cuda.simulator import kernelapi
from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray
from numba.cuda.simulator.kernel import FakeCUDAKernel
from numba.cuda.simulator.kernelapi import Dim3, FakeCUDAModule

from cases.runners import Gpu
from octopus.backends.cuda import language

language.emulations |= emulations.TABLE
# Device functions are called as what they are: to find them anew at each call takes as long as what they do.
language.device, found_later = (lambda function: function), language._emulation
language._emulation = lambda name: emulations.TABLE.get(name) or found_later(name)

BARRIERS = ("ragged", "tiles")  # whose threads wait for each other
CAPABILITIES = {"images": (7, 5)}  # without tensor cores for bytes: the kernel for them is no Python


class Simulator(Gpu):
    """Arrays in memory of the pretended GPU."""

    def __init__(self, gpu: pretended.SimulatedGpu) -> None:
        self.gpu = gpu
        self.put = gpu.put

    def ragged(self, call, planned):
        """With as many values and packs per thread as a large batch has, or as a small one."""
        self.gpu.properties.multiprocessor_count = 0 if planned else 132
        return super().ragged(call, planned)


class Fiber(threading.Thread):
    """A thread of a block that waits for others: it runs only while its caller waits for it, to its end or a barrier.
    Numba's simulator lets all threads of a block run at once and asks them in turn whether they are at a barrier, which
    takes many times as long as all that they do."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.go, self.back, self.error = threading.Semaphore(0), threading.Semaphore(0), None
        self.start()

    def run(self) -> None:
        """Do one piece of work after the other."""
        while True:
            self.go.acquire()
            try:
                self.work()
            except Exception as error:
                self.error = error
            self.work = None
            self.back.release()

    def advance(self) -> bool:
        """Let it run; whether it is at a barrier."""
        self.go.release()
        self.back.acquire()
        if self.error:
            raise self.error
        return self.work is not None

    def wait(self) -> None:
        """What `syncthreads` does."""
        self.back.release()
        self.go.acquire()


FIBERS: list[Fiber] = []


def run_block(size: tuple[int, int, int], work: Callable[[], None]) -> None:
    """Let the threads of a block run in turn from barrier to barrier."""
    threads = [Dim3(*place) for place in np.ndindex(*size)]
    FIBERS.extend(Fiber() for _ in range(len(threads) - len(FIBERS)))
    at_work = list(zip(threads, FIBERS, strict=False))
    for _, fiber in at_work:
        fiber.work = work
    while at_work:
        waiting = []
        for cuda.threadIdx, fiber in at_work:
            cuda.syncthreads = fiber.wait
            if fiber.advance():
                waiting.append((cuda.threadIdx, fiber))
        at_work = waiting


def run_threads(size: tuple[int, int, int], work: Callable[[], None]) -> None:
    """Let the threads of a block without barriers run one after the other."""
    for place in np.ndindex(*size):
        cuda.threadIdx = Dim3(*place)
        work()


def simulate(barriers: bool) -> None:
    """Make Numba's simulator quick: it starts a thread for each of a GPU's and puts another module in the place of
    `cuda` at every call of a device function, which takes more time than what they do."""
    run = run_block if barriers else run_threads

    def call(kernel, *arguments):
        if kernel._device:
            return kernel.fn(*arguments)
        inside = FakeCUDAModule(kernel.grid_dim, kernel.block_dim, kernel.dynshared_size)
        for name in set(dir(inside)) - {"threadIdx", "blockIdx", "laneid"}:
            if not name.startswith("_"):
                setattr(cuda, name, getattr(inside, name))
        arguments = [value._ary if isinstance(value, FakeCUDAArray) else value for value in arguments]
        for block in np.ndindex(*kernel.grid_dim):
            cuda.blockIdx = Dim3(*block)
            run(kernel.block_dim, lambda: kernel.fn(*arguments))
        return None

    def place_of(frame):
        return [(frame.f_back.f_code.co_filename, frame.f_back.f_lineno), None]

    FakeCUDAKernel.__call__ = call
    kernelapi.traceback = SimpleNamespace(extract_stack=place_of)  # tells one shared array from another


def installed(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int] = (9, 0), barriers: bool = False):
    """A simulated GPU in the place of the real one."""
    if barriers:
        from octopus.kernels.cuda import tile_grid, tile_sums
        from octopus.tiles import api as tiles

        for module in (tile_grid, tile_sums, tiles):
            monkeypatch.setattr(module, "THREADS", 32)  # of a block: the simulator is slow
    simulate(barriers)
    gpu = pretended.put_in(monkeypatch, pretended.SimulatedGpu(capability))
    language.emulations["tail_floats"] = lambda item: gpu.tail_floats(item)
    return gpu


def main(table: str, part: int, parts: int) -> None:
    warnings.simplefilter("ignore")
    cases = import_module(f"cases.{table}").CASES
    capability = CAPABILITIES.get(table, (9, 0))
    gpu, wrong = installed(pytest.MonkeyPatch(), capability, table in BARRIERS), {}
    runner = Simulator(gpu)
    for number, name in enumerate(list(cases)[part::parts]):
        if table in ("crops", "varied"):  # as many rows per thread as a large batch has, or as a small one
            gpu.properties.multiprocessor_count = 132 * (number % 2)
        try:
            cases[name].check("small", runner)
            wrong[name] = ""
        except Exception:
            causes = [f"in the driver: {error!r}" for error in gpu.errors]
            wrong[name] = "\n".join([traceback.format_exc(limit=-3), *causes])
            gpu.errors.clear()
    print(json.dumps(wrong))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
