"""Makes the calls of a table on a pretended GPU whose kernels run in Numba's simulator, in a process of its own.

The simulator must be chosen before Numba is imported. Prints as JSON what is wrong with each case, "" if nothing is.

    python tests/library/cases/simulate.py crops PART PARTS
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
import warnings
from importlib import import_module
from pathlib import Path

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
sys.path.insert(0, str(Path(__file__).parents[1]))

import pretended
import pytest
from numba.cuda.simulator.kernel import BlockThread

from cases.runners import Gpu

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


def is_alive(thread: BlockThread) -> bool:
    """Whether a thread of a block is at work still, after waiting a little for its end.

    The simulator asks all threads in turn until they have ended or wait for each other. Without a pause that takes up
    to five times as long as all that the threads do.
    """
    if not thread.syncthreads_blocked:
        thread.join(2e-4)
    return threading.Thread.is_alive(thread)


def start(thread: BlockThread) -> None:
    """Start a thread and wait for its end, in kernels without barriers: hundreds at once mostly take turns."""
    threading.Thread.start(thread)
    thread.join()


def installed(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int] = (9, 0), barriers: bool = False):
    """A simulated GPU in the place of the real one."""
    if barriers:
        from octopus.kernels.cuda import tile_grid, tile_rows
        from octopus.tiles import cuda as tiles

        BlockThread.is_alive = is_alive
        for module in (tile_grid, tile_rows, tiles):
            monkeypatch.setattr(module, "THREADS", 32)  # of a block: the simulator is slow
    else:
        BlockThread.start = start
    gpu = pretended.put_in(monkeypatch, pretended.SimulatedGpu(capability))
    from octopus.kernels.cuda import ptx

    ptx.tail_floats = gpu.tail_floats
    return gpu


def main(table: str, part: int, parts: int) -> None:
    """See the module's docstring."""
    warnings.simplefilter("ignore")
    cases = import_module(f"cases.{table}").CASES
    capability = CAPABILITIES.get(table, (9, 0))
    gpu, wrong = installed(pytest.MonkeyPatch(), capability, table in BARRIERS), {}
    runner = Simulator(gpu)
    for name in list(cases)[part::parts]:
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
