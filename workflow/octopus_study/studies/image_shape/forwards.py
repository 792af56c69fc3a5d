"""Memory and time of forwards by the width of the image, each order in a process that has yet to meet the GPU.

Of each width the first forward is measured apart, since there cuDNN tries out what it is told to and CUDA loads
kernels. The second gives the other numbers: the cache of PyTorch's allocator is emptied and its peaks are reset, then

* `allocated_peak` and `reserved_peak` are what the allocator held at most, weights and image included;
* `device_delta` is the free memory of the device (`cudaMemGetInfo`) before the image was there, less that right behind
  the forward, before anything is given back.

Then the forward alone is timed, with the image on the GPU and without emptying anything.
"""

import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.errors import OctopusError
from octopus_study.measure import Budget, Case, Clock, Method, PowerCapKept, Row, check_answers, run_paired, unavailable
from octopus_study.measure.rows import describe
from octopus_study.measure.worker import Worker
from octopus_study.names import AS_PUBLISHED
from octopus_study.status import NO_ANSWER, Answer, different
from octopus_study.studies.image_shape.denoisers import Denoiser

log = logging.getLogger(__name__)

STUDY = "image_shape"
SECONDS = 300  # for one order, after which its process is ended
SPLITS = ("deterministic", "split_calls", "count")
TIME = ("device", "forward", "ms")
MEMORY = ("first_allocated_peak", "allocated_peak", "reserved_peak", "device_delta")
QUANTITIES = (SPLITS, *(("memory", name, "bytes") for name in MEMORY), TIME)
# Of the result's greatest value: TF32 has 10 bits, and the algorithms add in different orders.
TOLERANCE = 0.01
WHY_DIFFERENT = {
    "padded-whole": "quadrants begin at columns that are no multiple of 8, so the model's strides fall elsewhere",
    "forced-split": "a quadrant sees nothing beyond its overlap",
    "tiles": "a tile sees nothing beyond its overlap, and the edges of the image are mirrored",
}


@dataclass(frozen=True)
class Order:
    """What one process measures: one model, run by one method, at some widths."""

    dataset: str
    workload: str
    model: str
    method: str
    widths: list[int]  # columns of the image; the `n` of the rows
    budget: Budget  # for one forward
    seed: int
    # Number of the first block; no two orders that share a case have a block in common, since nothing of them was
    # measured together
    first_block: int = 0
    compared: bool = (
        False  # whether the denoised image is compared with that of the model as published, an order before
    )

    def case(self, width: int) -> Case:
        """The case of one width."""
        return Case(STUDY, self.dataset, self.workload, width)

    def gaps(self, reason: str, width: int | None = None) -> list[Row]:
        """One `unavailable` row for each quantity at one width, by default the first."""
        case = self.case(self.widths[0] if width is None else width)
        return [unavailable(case, self.method, *quantity, reason) for quantity in QUANTITIES]


def in_processes(orders: Sequence[Order], folder: Path) -> Iterator[Row]:
    """The rows of all orders; those of one that failed say why. `folder` holds `image.npy`, the image at its greatest
    width, (H, W, 3) uint8."""
    log.info("%d processes, one after the other", len(orders))
    for order in orders:
        try:
            with Worker("its process") as worker:
                yield from worker.ask(f"{__name__}:measure", order, folder, seconds=SECONDS)
        except OctopusError as error:
            log.warning("%s, %s: %s", order.workload, order.method, error)
            yield from order.gaps(str(error))


def measure(order: Order, folder: Path) -> list[Row]:
    """All rows of an order; a width that fails gets one `unavailable` row per quantity. It raises what `load` does."""
    denoiser = Denoiser(order.model, "cuda", order.seed)
    image = np.load(folder / "image.npy")
    rows: list[Row] = []
    for width in order.widths:
        try:
            rows += _width(order, denoiser, image[:, :width], folder)
        except Exception as error:  # too little memory for one width is a row, the other widths go on
            rows += order.gaps(describe(error), width)
    return rows


def _width(order: Order, denoiser: Denoiser, image: NDArray[np.uint8], folder: Path) -> list[Row]:
    """Memory of two forwards, then the time of some more."""
    case, run = order.case(image.shape[1]), denoiser.by(order.method)
    first, _ = forward(denoiser, run, image)
    readings, result = forward(denoiser, run, image)
    readings["first_allocated_peak"] = first["allocated_peak"]
    answer = answer_of(order, folder / f"{order.workload}-{case.n}.npy", result) if order.compared else NO_ANSWER
    del result
    rows = [
        case.row(order.method, layer, name, unit, readings[name], answer=answer)
        for layer, name, unit in QUANTITIES[:-1]
    ]
    images = denoiser.upload(image)
    timed = [Method(order.method, lambda: run(images))]
    times = run_paired(case, *TIME[1:], timed, clock(), order.budget, answer, order.seed)
    return [*rows, *(row._replace(block=row.block + order.first_block) for row in times)]


def clock() -> Clock:
    """Events on the GPU; large convolutions reach the board's power limit by themselves."""
    from octopus_study.measure.cuda import CudaEventClock

    return CudaEventClock(PowerCapKept())


def forward(
    denoiser: Denoiser, run: Callable[[Any], Any], image: NDArray[np.uint8]
) -> tuple[dict[str, int], NDArray[np.float32]]:
    """Readings of one forward that starts from an emptied cache, and its result."""
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
        "split_calls": splits["splits"],
        "allocated_peak": gpu.max_memory_allocated(),
        "reserved_peak": gpu.max_memory_reserved(),
        "device_delta": free - gpu.mem_get_info()[0],
    }
    return readings, result.cpu().numpy()


def answer_of(order: Order, published: Path, result: NDArray[np.float32]) -> Answer:
    """Whether the image is the one of the model as published, which is kept for the orders behind it."""
    if order.method == AS_PUBLISHED:
        np.save(published, result)
    if not published.is_file():
        return NO_ANSWER
    expected = np.load(published)
    if not np.isfinite(expected).all():
        return different("the model as published gives values that are NaN or infinite")
    tolerance, why = TOLERANCE * float(np.abs(expected).max()), WHY_DIFFERENT.get(order.method, "")
    return check_answers([Method("it", lambda: None, lambda: result, tolerance, why)], expected)["it"]
