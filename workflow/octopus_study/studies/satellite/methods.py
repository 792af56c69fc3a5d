"""Methods that judge the tiles of a scene: in one launch, a launch per tile, padded, and what users have on the CPU.

A scene begins on the host and ends as one flag per tile there (`run`); `kernel` is the device's part of it, on what
lies there already. Memory of results is spoilt first, so that a flag that nobody writes is seen.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from octopus.backends import cpu
from octopus.tiles.api import TilePlan
from octopus_study.peers.availability import require_room
from octopus_study.studies.satellite.job import TileJob

SPOILT = 0xFF  # neither of a flag's values
BOUND = "read-bound"
Maker = Callable[[TileJob], Any]
Means = Callable[[], NDArray[np.float64]]


class Octopus:
    """A plan: all tiles in one launch.

    Parameters
    ----------
    device : str, optional
        Instead of the job's.
    """

    def __init__(self, job: TileJob, device: str | None = None) -> None:
        self.job = job
        self.plan = TilePlan(job.image, job.tiles, scale=job.scale, device=device or job.device)
        self.flags = self.plan.run(job.image)[0].view(np.uint8)
        self.flags.fill(SPOILT)

    def run(self) -> None:
        """From the scene on the host to the flags on the host."""
        self.plan.run(self.job.image, self.job.threshold)


class OnDevice:
    """A plan for the scene where it lies on the GPU; for the time of the kernel alone."""

    def __init__(self, job: TileJob) -> None:
        self.job = job
        self.plan = TilePlan(job.device_image, job.tiles, scale=job.scale)
        self._flags = self.plan.run(job.device_image)[0].fill_bytes(SPOILT)

    def kernel(self) -> None:
        """One launch."""
        self.plan.run(self.job.device_image, self.job.threshold)

    @property
    def flags(self) -> NDArray[np.uint8]:
        """What the last launch found."""
        return self._flags.copy_to_host().view(np.uint8)


class NLaunches:
    """The same kernel, launched for each tile with the blocks that it needs."""

    def __init__(self, job: TileJob) -> None:
        from octopus.backends.cuda import memory, stream_of
        from octopus.kernels.cuda.tile_grid import MOST_PARTS, Grid, parts_of

        self.job, self._stream = job, stream_of(None)
        self.plan = TilePlan(job.device_image, job.tiles, scale=job.scale)
        self._on_host = np.zeros(len(job.tiles), np.uint8)
        self._device_flags = memory.DeviceArray((len(job.tiles),), np.uint8).fill_bytes(SPOILT)
        self._device_means = memory.DeviceArray((len(job.tiles),), np.float64)
        width, height = (job.tiles[:, 2:] - job.tiles[:, :2]).astype(np.int64).T
        passes = self.plan.engine.grid.passes
        strips, bands, _ = parts_of(width, height, self.plan.spec.pixel, passes, listed=False)
        parts = np.clip(strips * bands, 1, MOST_PARTS)
        self._grids = [Grid((1, blocks), passes, None) for blocks in parts.tolist()]

    def kernel(self) -> None:
        """As many launches as tiles."""
        image, means, flags = (
            array.pointer for array in (self.job.device_image, self._device_means, self._device_flags)
        )
        job, plan = self.job, self.plan
        for tile, grid in enumerate(self._grids):
            plan.engine.launch_part(
                plan.spec, image, job.scale, job.threshold, means, flags, self._stream, grid=grid, first=tile
            )  # fmt: skip

    def run(self) -> None:
        """From the scene on the host to the flags on the host."""
        self.job.device_image.copy_from_host(self.job.image, self._stream)
        self.kernel()
        self._device_flags.copy_to_host(self._on_host)

    @property
    def flags(self) -> NDArray[np.uint8]:
        """What the last launches found."""
        return self._device_flags.copy_to_host()


class Padded:
    """A batch of items as large as the largest tile, each judged whole by one launch of the same kernel.

    The batch is one tall image whose tiles are the items; their means count the padding, which is taken out again.

    Raises
    ------
    Unavailable
        The host, or the GPU, has too little memory.
    """

    def __init__(self, job: TileJob) -> None:
        self.job = job
        width, height = (job.tiles[:, 2:] - job.tiles[:, :2]).max(axis=0).tolist()
        self._height, self._area = height, float(width * height)
        self.batch = _memory((len(job.tiles) * height, width, *job.image.shape[2:]), job)
        self._source = _on_device(self.batch) if job.on_gpu else self.batch
        number = np.arange(len(job.tiles), dtype=np.int32)[:, None]
        items = number * np.array([0, height, 0, height]) + np.array([0, 0, width, height])
        self.plan = TilePlan(self._source, items, scale=1.0)
        self.batch.fill(0)  # once: the tiles stay the same, as they do for a plan, and so does the padding
        self.fill()

    def fill(self) -> None:
        """Copy tile by tile, and bring the batch to the device."""
        image, height = self.job.image, self._height
        for item, (x1, y1, x2, y2) in enumerate(self.job.tiles.tolist()):
            first = item * height
            self.batch[first : first + y2 - y1, : x2 - x1] = image[y1:y2, x1:x2]
        if self.job.on_gpu:
            self._source.copy_from_host(self.batch)

    def kernel(self) -> None:
        """One launch over tiles and padding."""
        self._means = self.plan.run(self._source)[1]

    def run(self) -> None:
        """From the scene on the host to the flags on the host."""
        self.fill()
        self.kernel()
        _ = self.flags

    @property
    def flags(self) -> NDArray[np.uint8]:
        """From sums over the tiles alone; they are integers, so that the way over the last launch's means is exact."""
        means = self._means.copy_to_host() if self.job.on_gpu else self._means
        channels = self.job.image[0, 0].size
        mean = np.rint(means * (self._area * channels)) / (self.job.pixels * channels)
        return (mean / self.job.scale > self.job.threshold).astype(np.uint8)


def _memory(shape: tuple[int, ...], job: TileJob) -> NDArray[Any]:
    """On the host, of the scene's dtype; page-locked where a GPU reads it."""
    nbytes = int(np.prod(shape, dtype=np.int64)) * job.image.itemsize
    require_room("the padded batch", "host", nbytes, cpu.free_bytes())
    if not job.on_gpu:
        return np.empty(shape, job.image.dtype)
    from octopus.backends.cuda import memory

    require_room("the padded batch", "GPU", nbytes, memory.free_bytes())
    return memory.pinned(shape, job.image.dtype)


def _on_device(array: NDArray[Any]) -> Any:
    from octopus.backends.cuda.memory import DeviceArray

    return DeviceArray(array.shape, array.dtype)


class ByMeans:
    """On the host, by the mean of each tile over all channels.

    Parameters
    ----------
    means_of : callable
        Gives, for a job, what finds the means, (N,) float64.
    """

    def __init__(self, means_of: Callable[[TileJob], Means], job: TileJob) -> None:
        self.job, self._means = job, means_of(job)
        self.flags = np.zeros(len(job.tiles), np.uint8)

    def run(self) -> None:
        """From the scene to the flags."""
        self.flags = (self._means() / self.job.scale > self.job.threshold).astype(np.uint8)


def _numpy(job: TileJob) -> Means:
    image, boxes = job.image, job.tiles.tolist()
    return lambda: np.array([image[y1:y2, x1:x2].mean() for x1, y1, x2, y2 in boxes])


def _mean(image: NDArray[Any], box: list[int]) -> float:
    """`cv2.mean` of a tile, over all its channels; Python's lock is free meanwhile."""
    x1, y1, x2, y2 = box
    channels = image[0, 0].size
    return sum(cv2.mean(image[y1:y2, x1:x2])[:channels]) / channels


def _opencv(job: TileJob) -> Means:
    boxes = job.tiles.tolist()

    def means() -> NDArray[np.float64]:
        cv2.setNumThreads(1)
        return np.array([_mean(job.image, box) for box in boxes])

    return means


def _opencv_threads(job: TileJob) -> Means:
    """The same on a pool of as many threads as Octopus has."""
    boxes, pool = job.tiles.tolist(), ThreadPoolExecutor(cpu.get_num_threads())
    each = partial(_mean, job.image)

    def means() -> NDArray[np.float64]:
        cv2.setNumThreads(1)
        return np.array(list(pool.map(each, boxes)))

    return means


def _integral(job: TileJob) -> Means:
    """`cv2.integral` of the scene on one thread, then four values per tile; float64 counts exactly what int32 can't
    hold."""
    height, width = job.image.shape[:2]
    shape = (height + 1, width + 1, *job.image.shape[2:])
    require_room("the integral image", "host", 8 * int(np.prod(shape, dtype=np.int64)), cpu.free_bytes())
    memory = np.empty(shape)  # written once, so that its pages are not mapped anew each time
    memory.fill(0)

    def means() -> NDArray[np.float64]:
        cv2.setNumThreads(1)
        table = cv2.integral(job.image, memory, sdepth=cv2.CV_64F)
        left, top, right, bottom = job.tiles.T
        sums = table[bottom, right] - table[top, right] - table[bottom, left] + table[top, left]
        sums = sums.reshape(len(sums), -1)
        return sums.sum(axis=1) / (job.pixels * sums.shape[1])

    return means


def kernels(device: str) -> dict[str, Maker]:
    """Methods whose work on the device is compared."""
    if device == "cpu":
        return {"octopus": Octopus, "padded": Padded}
    return {"octopus": OnDevice, "n-launches": NLaunches, "padded": Padded}


def whole(device: str) -> dict[str, Maker]:
    """Methods that are compared from the scene to the flags.

    Beside a GPU stands Octopus on the CPU: what the way there and back must pay for.
    """
    on_gpu: dict[str, Maker] = {"octopus-cpu": partial(Octopus, device="cpu"), "n-launches": NLaunches}
    on_host = {
        "numpy": _numpy, "opencv": _opencv, "opencv-threads": _opencv_threads, "integral": _integral,
    }  # fmt: skip
    return {
        "octopus": Octopus,
        **({} if device == "cpu" else on_gpu),
        "padded": Padded,
        **{name: partial(ByMeans, means_of) for name, means_of in on_host.items()},
    }
