"""Measures the study `image_shape`'s orders, each in a process of its own that has yet to meet the GPU.

What takes seconds to import is imported once; then each order is carried out in a fork of that process. Nothing before
the fork may start CUDA, which survives no fork: importing deepinv does (it looks for the GPU with the most free
memory), so that this is left to the forks.

Of each width the first forward is measured apart, since there cuDNN tries out what it is told to and CUDA loads
kernels. The second gives the other numbers: the cache of PyTorch's allocator is emptied and its peaks are reset, then

* `allocated_peak` and `reserved_peak` are what the allocator held at most, weights and image included;
* `device_delta` is the free memory of the device (`cudaMemGetInfo`) before the image was there, less that right behind
  the forward, before anything is given back.

Then the forward alone is timed, with the image on the GPU and without emptying anything.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.measure import Budget, Case, Clock, Method, PowerCapKept, Row, run_paired, unavailable
from octopus_study.measure.rows import describe
from octopus_study.status import NO_ANSWER
from octopus_study.studies.image_shape.denoisers import Denoiser

STUDY = "image_shape"
IMPORT_ONCE = ("torch", "torchvision", "octopus_study.measure.runner", "octopus_study.measure.throttle")
MEMORY = ("first_allocated_peak", "allocated_peak", "reserved_peak", "device_delta")
SPLITS = ("deterministic", "split_calls", "count")
TIME = ("device", "forward", "ms")
QUANTITIES = (SPLITS, *(("memory", name, "bytes") for name in MEMORY), TIME)


@dataclass(frozen=True)
class Order:
    """What one process measures: one model, run by one method, at some widths."""

    # Of the rows
    dataset: str
    workload: str
    # See `octopus_study.studies.image_shape.denoisers`
    model: str
    method: str
    widths: list[int]  # columns of the image; the `n` of the rows
    budget: dict[str, Any]  # fields of a `Budget`, for one forward
    seed: int
    # Number of the first block; no two orders that share a case have a block in common, since nothing of them was
    # measured together
    first_block: int = 0
    keeps: bool = False  # whether the denoised image of each width is kept, for a comparison

    def case(self, width: int) -> Case:
        """The case of one width."""
        return Case(STUDY, self.dataset, self.workload, width)

    def gaps(self, reason: str, width: int | None = None) -> list[Row]:
        """One `unavailable` row for each quantity at one width, by default the first."""
        case = self.case(self.widths[0] if width is None else width)
        return [unavailable(case, self.method, *quantity, reason) for quantity in QUANTITIES]

    def result(self, folder: Path, width: int) -> Path:
        """Where the denoised image of one width is kept."""
        return folder / f"{self.workload}-{self.method}-{width}.npy"


def measure(order: Order, folder: Path) -> list[Row]:
    """All rows of an order; a width that fails gets one `unavailable` row per quantity.

    `folder` holds `image.npy`, the image at its greatest width, (H, W, 3) uint8.

    Raises
    ------
    Unavailable
        PyTorch or deepinv is missing, or there is no GPU.
    """
    denoiser = Denoiser(order.model, "cuda", order.seed)
    image = np.load(folder / "image.npy")
    rows: list[Row] = []
    for width in order.widths:
        path = order.result(folder, width) if order.keeps else None
        try:
            rows += _width(order, denoiser, image[:, :width], path)
        except Exception as error:  # too little memory for one width is a row, the other widths go on
            rows += order.gaps(describe(error), width)
    return [_numbered(row, order.first_block) for row in rows]


def _numbered(row: Row, first: int) -> Row:
    """The row of a timed block with its number among all orders of the case."""
    return row._replace(block=row.block + first) if row.layer == TIME[0] else row


def _width(order: Order, denoiser: Denoiser, image: NDArray[np.uint8], path: Path | None) -> list[Row]:
    """Memory of two forwards, then the time of some more."""
    case, run = order.case(image.shape[1]), denoiser.by(order.method)
    first = _forward(denoiser, run, image)["allocated_peak"]
    readings = {"first_allocated_peak": first, **_forward(denoiser, run, image, path)}
    rows = [
        case.row(order.method, layer, name, unit, readings[name]) for layer, name, unit in QUANTITIES[:-1]
    ]
    images = denoiser.upload(image)
    timed = [Method(order.method, lambda: run(images))]
    return rows + capped(case, TIME[1], lambda clock: _time(order, case, timed, clock))


def _clock(watch: PowerCapKept) -> Clock:
    from octopus_study.measure.cuda import CudaEventClock

    return CudaEventClock(watch)


def _time(order: Order, case: Case, timed: list[Method], clock: Clock) -> list[Row]:
    _, quantity, unit = TIME
    return run_paired(case, quantity, unit, timed, clock, Budget(**order.budget), NO_ANSWER, order.seed)


def capped(case: Case, quantity: str, timing: Callable[[Clock], list[Row]]) -> list[Row]:
    """The rows of `timing`, which is given a clock that keeps power-capped blocks, and the share of those."""
    watch = PowerCapKept()
    clock = _clock(watch)
    rows = timing(clock)
    return [*rows, case.row(quantity, clock.layer, "power_capped", "fraction", watch.capped_share())]


def _forward(
    denoiser: Denoiser, run: Callable[[Any], Any], image: NDArray[np.uint8], path: Path | None = None
) -> dict[str, int]:
    """Readings of one forward that starts from an emptied cache; its result goes to `path`."""
    gpu = denoiser.torch.cuda
    gc.collect()  # tensors that a reference cycle still holds
    gpu.synchronize()
    gpu.empty_cache()
    gpu.reset_peak_memory_stats()
    free = gpu.mem_get_info()[0]
    images = denoiser.upload(image)
    with denoiser.counted_splits() as splits:
        result = run(images)
    gpu.synchronize()
    readings = {
        "split_calls": splits.calls,
        "allocated_peak": gpu.max_memory_allocated(),
        "reserved_peak": gpu.max_memory_reserved(),
        "device_delta": free - gpu.mem_get_info()[0],
    }
    if path:
        np.save(path, result.cpu().numpy())
    return readings


def import_once() -> None:
    """Import, ahead of the forks, what takes seconds and doesn't start CUDA."""
    for module in IMPORT_ONCE:
        import_module(module)
