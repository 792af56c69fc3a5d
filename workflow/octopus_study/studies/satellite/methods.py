"""A scene with its tiles and the rule, and methods that judge them: in one launch, a launch per tile, padded, and what
users have on the CPU.

A scene begins on the host and ends as one flag per tile there; `OnDevice` alone finds it on the GPU. Memory of results
is spoilt first, so that a flag that is not written is seen.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from octopus.backends import cpu
from octopus.backends.cuda import memory, stream_of
from octopus.tiles.api import TilePlan
from octopus_study.baselines.availability import require_room

SPOILT = 0xFF  # neither of a flag's values
BOUND = "read-bound"
Means = Callable[[], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class TileJob:
    """What every method is given."""

    image: NDArray[Any]  # (H, W) or (H, W, C) uint8 or uint16, the scene, on the host
    tiles: NDArray[np.int32]
    # A tile is kept if its mean divided by `scale` is above `threshold`
    scale: float
    threshold: float
    device: str  # {"cpu", "cuda"}

    @property
    def on_gpu(self) -> bool:
        """Whether there is a GPU to work on."""
        return self.device == "cuda"

    @property
    def pixels(self) -> NDArray[np.int64]:
        """Of each tile, (N,)."""
        sides = (self.tiles[:, 2:] - self.tiles[:, :2]).astype(np.int64)
        return sides[:, 0] * sides[:, 1]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Bytes of each tile, (N,)."""
        return self.pixels * (self.image.nbytes // (self.image.shape[0] * self.image.shape[1]))

    @cached_property
    def device_image(self) -> Any:
        """The scene in the memory of the GPU, for all methods that find it there."""
        return memory.upload(self.image)

    @cached_property
    def reference(self) -> NDArray[np.float64]:
        """Brightness of each tile by NumPy, (N,)."""
        return _numpy(self)() / self.scale

    @property
    def expected(self) -> NDArray[np.uint8]:
        """The right flags."""
        return (self.reference > self.threshold).astype(np.uint8)


def placed(image: NDArray[Any], device: str) -> NDArray[Any]:
    """A scene as the methods find it: page-locked where a GPU reads it."""
    if device == "cpu":
        return image
    copy = memory.pinned(image.shape, image.dtype)
    copy[...] = image
    return copy


class Octopus:
    """A plan: all tiles in one launch."""

    def __init__(self, job: TileJob) -> None:
        self.job = job
        self.plan = TilePlan(job.image, job.tiles, scale=job.scale, device=job.device)
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

    def run(self) -> None:
        """One launch."""
        self.plan.run(self.job.device_image, self.job.threshold)

    @property
    def flags(self) -> NDArray[np.uint8]:
        """What the last launch found."""
        return self._flags.copy_to_host().view(np.uint8)


class NLaunches:
    """The same kernel, launched for each tile with the blocks that it needs."""

    def __init__(self, job: TileJob) -> None:
        from octopus.kernels.cuda.tile_grid import Grid, bands_of

        self.job, self._stream = job, stream_of(None)
        self.plan = TilePlan(job.device_image, job.tiles, scale=job.scale)
        self.flags = np.full(len(job.tiles), SPOILT, np.uint8)
        self._device_flags = memory.DeviceArray((len(job.tiles),), np.uint8).fill_bytes(SPOILT)
        self._device_means = memory.DeviceArray((len(job.tiles),), np.float64)
        width, height = (job.tiles[:, 2:] - job.tiles[:, :2]).astype(np.int64).T
        share = self.plan.engine.grid.share
        bands, _ = bands_of(width, height, self.plan.spec.pixel, share)
        self._grids = [Grid((1, blocks), share) for blocks in bands.tolist()]

    def run(self) -> None:
        """From the scene on the host to the flags on the host, by as many launches as tiles."""
        job, plan = self.job, self.plan
        job.device_image.copy_from_host(job.image, self._stream)
        image, means, flags = (array.pointer for array in (job.device_image, self._device_means, self._device_flags))
        for tile, grid in enumerate(self._grids):
            plan.engine.launch(
                plan.spec, image, job.scale, job.threshold, means, flags, self._stream, grid=grid, first=tile
            )  # fmt: skip
        self._device_flags.copy_to_host(self.flags)


class Padded:
    """A batch of items as large as the largest tile, each judged whole by one launch of the same kernel. The batch is
    one tall image whose tiles are the items; their means count the padding, which is taken out again."""

    def __init__(self, job: TileJob) -> None:
        self.job = job
        width, height = (job.tiles[:, 2:] - job.tiles[:, :2]).max(axis=0).tolist()
        self._height, self._area = height, float(width * height)
        self.batch = _memory((len(job.tiles) * height, width, *job.image.shape[2:]), job)
        self._source = memory.upload(self.batch) if job.on_gpu else self.batch
        number = np.arange(len(job.tiles), dtype=np.int32)[:, None]
        items = number * np.array([0, height, 0, height]) + np.array([0, 0, width, height])
        self.plan = TilePlan(self._source, items, scale=1.0)
        self.batch.fill(0)  # once: the tiles stay the same, as they do for a plan, and so does the padding
        self.flags = np.full(len(job.tiles), SPOILT, np.uint8)

    def run(self) -> None:
        """From the scene on the host to the flags on the host: a copy of each tile, and one launch over all. Flags come
        from sums over the tiles alone; they are integers, so that the way over means is exact."""
        job = self.job
        for item, (x1, y1, x2, y2) in enumerate(job.tiles.tolist()):
            first = item * self._height
            self.batch[first : first + y2 - y1, : x2 - x1] = job.image[y1:y2, x1:x2]
        if job.on_gpu:
            self._source.copy_from_host(self.batch)
        means = self.plan.run(self._source)[1]
        channels = job.image[0, 0].size
        sums = np.rint((means.copy_to_host() if job.on_gpu else means) * (self._area * channels))
        self.flags = (sums / (job.pixels * channels) / job.scale > job.threshold).astype(np.uint8)


def _memory(shape: tuple[int, ...], job: TileJob) -> NDArray[Any]:
    """On the host, of the scene's dtype; page-locked where a GPU reads it."""
    nbytes = int(np.prod(shape, dtype=np.int64)) * job.image.itemsize
    require_room("the padded batch", "cpu", nbytes)
    if not job.on_gpu:
        return np.empty(shape, job.image.dtype)
    require_room("the padded batch", "cuda", nbytes)
    return memory.pinned(shape, job.image.dtype)


class ByMeans:
    """On the host, by the mean of each tile over all channels: `means_of` gives, for a job, what finds them, (N,)
    float64."""

    def __init__(self, means_of: Callable[[TileJob], Means], job: TileJob) -> None:
        self.job, self._means = job, means_of(job)
        self.flags = np.zeros(len(job.tiles), np.uint8)

    def run(self) -> None:
        """From the scene to the flags."""
        self.flags = (self._means() / self.job.scale > self.job.threshold).astype(np.uint8)


def _numpy(job: TileJob) -> Means:
    image, boxes = job.image, job.tiles.tolist()
    return lambda: np.array([image[y1:y2, x1:x2].mean() for x1, y1, x2, y2 in boxes])


def _opencv_threads(job: TileJob) -> Means:
    """`cv2.mean` on a pool of as many threads as Octopus has; Python's lock is free meanwhile."""
    image, boxes, pool = job.image, job.tiles.tolist(), ThreadPoolExecutor(cpu.get_num_threads())
    channels = image[0, 0].size

    def each(box: list[int]) -> float:
        x1, y1, x2, y2 = box
        return sum(cv2.mean(image[y1:y2, x1:x2])[:channels]) / channels

    def means() -> NDArray[np.float64]:
        cv2.setNumThreads(1)
        return np.array(list(pool.map(each, boxes)))

    return means


def _integral(job: TileJob) -> Means:
    """`cv2.integral` of the scene on one thread, then four values per tile; float64 counts exactly what int32 can't
    hold."""
    height, width = job.image.shape[:2]
    shape = (height + 1, width + 1, *job.image.shape[2:])
    require_room("the integral image", "cpu", 8 * int(np.prod(shape, dtype=np.int64)))
    room = np.empty(shape)
    room.fill(0)  # written once, so that its pages are not mapped anew each time

    def means() -> NDArray[np.float64]:
        cv2.setNumThreads(1)
        table = cv2.integral(job.image, room, sdepth=cv2.CV_64F)
        left, top, right, bottom = job.tiles.T
        sums = table[bottom, right] - table[top, right] - table[bottom, left] + table[top, left]
        sums = sums.reshape(len(sums), -1)
        return sums.sum(axis=1) / (job.pixels * sums.shape[1])

    return means


METHODS: dict[str, Callable[[TileJob], Any]] = {
    "octopus": Octopus,
    "n-launches": NLaunches,
    "padded": Padded,
    **{
        name: partial(ByMeans, means_of)
        for name, means_of in (("numpy", _numpy), ("opencv-threads", _opencv_threads), ("integral", _integral))
    },
}


def methods(device: str) -> list[str]:
    """Names of those that are compared from the scene to the flags."""
    return [name for name in METHODS if device == "cuda" or name != "n-launches"]
