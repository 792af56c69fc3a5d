"""What each GPU does: crops of frames, ragged images to one size, or copies alone.

A work is described on the host and told to workers, which hold its batches: pixels that lie in page-locked memory of
the host, and on their GPU. It knows the right answers of a few items, by the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus import CropPlan
from octopus import images as of_images
from octopus_study.data.workload import sample_boxes
from octopus_study.peers.job import TOLERANCE_LEVELS
from octopus_study.reference import crops as reference
from octopus_study.studies.context import Context
from octopus_study.studies.pictures import cut, log_uniform

MIB = 1 << 20
COPY = (64, MIB)
SAMPLED = 4  # items of a batch that are compared
LEAST, LARGEST, SIDE = (256, 256), (1024, 1024), 224
OPTIONS: dict[str, Any] = {"size": SIDE, "scale": 255, "mean": 0.5, "std": 0.5, "source": "HWC"}


def sampled(items: Any) -> Any:
    """A few of them, from the first one on, at even distances."""
    return items[:: -(-len(items) // SAMPLED)]


@dataclass(frozen=True, eq=False)
class Crops:
    """Crops of frames with boxes of VisDrone: each frame's pixels and boxes lie for themselves.

    The pixels of all frames are those of the data set's one frame, which no kernel knows.
    """

    frame: NDArray[np.uint8]
    boxes: NDArray[np.int32]
    count: int
    size: tuple[int, int]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    name, unit, always_uploads = "crops", "1/s", False

    @property
    def items(self) -> int:
        """Crops of a block."""
        return self.count * self.boxes.shape[1]

    @property
    def held(self) -> int:
        """Frames in memory."""
        return len(self.boxes)

    @property
    def tolerance(self) -> float:
        """Largest difference from the right answer."""
        return TOLERANCE_LEVELS / max(self.std)

    def pixels(self, index: int) -> NDArray[np.uint8]:
        """Those of a frame, flat."""
        return self.frame.reshape(-1)

    def on(self, device: Any, there: Sequence[Any]) -> Callable[[int], Any]:
        """What makes a frame's crops by the one plan of a device."""
        frames = [device.part(pixels, 0, self.frame.shape) for pixels in there]
        boxes = [device.place(chosen) for chosen in self.boxes]
        plan = CropPlan(
            frames[0], self.boxes.shape[1], self.size, mean=self.mean, std=self.std, box_dtype="int32",
            device=device.name, stream=device.stream,
        )  # fmt: skip
        return lambda index: plan.run(frames[index], boxes[index], stream=device.stream)

    def right(self, index: int) -> NDArray[np.float32]:
        """Some of its crops, by the reference in float64."""
        mean, std = np.array(self.mean), np.array(self.std)
        crops = reference.crop_resize(self.frame, sampled(self.boxes[index]), self.size, mean, std)
        return crops.astype(np.float32)


@dataclass(frozen=True, eq=False)
class Images:
    """Batches of images that all differ in size, each resized to 224 x 224 and normalised."""

    frame: NDArray[np.uint8]
    sizes: NDArray[np.int64]
    count: int
    seed: int
    name, unit, always_uploads = "images", "1/s", False
    tolerance = TOLERANCE_LEVELS / 255 / OPTIONS["std"]

    @property
    def items(self) -> int:
        """Images of a block."""
        return self.count * self.sizes.shape[1]

    @property
    def held(self) -> int:
        """Batches in memory."""
        return len(self.sizes)

    def images(self, index: int) -> list[NDArray[np.uint8]]:
        """Those of a batch, (height, width, 3)."""
        return cut(self.frame, self.sizes[index], self.seed + index)

    def pixels(self, index: int) -> NDArray[np.uint8]:
        """Those of a batch one behind the other, so that they travel in one copy."""
        return np.concatenate([image.reshape(-1) for image in self.images(index)])

    def on(self, device: Any, there: Sequence[Any]) -> Callable[[int], Any]:
        """What resizes a batch by the one plan of a device."""
        batches = [
            self._parts(device, pixels, sizes) for pixels, sizes in zip(there, self.sizes, strict=True)
        ]
        where = {"device": device.name, "stream": device.stream}
        plan = of_images.ImagePlan("resize", batches[0], self.sizes.shape[1], **where, **OPTIONS)
        return lambda index: plan.run(batches[index], stream=device.stream)

    def _parts(self, device: Any, pixels: Any, sizes: NDArray[np.int64]) -> list[Any]:
        channels = self.frame.shape[2]
        ends = np.cumsum(sizes.prod(axis=1) * channels).tolist()
        return [
            device.part(pixels, start, (height, width, channels))
            for start, (height, width) in zip([0, *ends], sizes.tolist(), strict=False)
        ]

    def right(self, index: int) -> NDArray[np.float32]:
        """Some of its images, resized by the CPU."""
        made: NDArray[np.float32] = of_images.resize(sampled(self.images(index)), device="cpu", **OPTIONS)
        return made


@dataclass(frozen=True, eq=False)
class Copies:
    """Copies of 64 MiB from page-locked memory and nothing else: what host and bus give."""

    count: int
    held: int
    shape: tuple[int, int] = COPY
    name, unit, always_uploads, tolerance = "copies", "GB/s", True, 0.0

    @property
    def items(self) -> int:
        """MiB of a block."""
        return self.count * (self.shape[0] * self.shape[1] // MIB or 1)

    def pixels(self, index: int) -> NDArray[np.uint8]:
        """Bytes that differ from their neighbours, and from those of the other copies."""
        return ((np.arange(self.shape[0] * self.shape[1]) + index) % 251).astype(np.uint8)

    def on(self, device: Any, there: Sequence[Any]) -> Callable[[int], Any]:
        """Nothing is made of what came."""
        arrived = [device.part(pixels, 0, self.shape) for pixels in there]
        return lambda index: arrived[index]

    def right(self, index: int) -> NDArray[np.uint8]:
        """Some of its rows."""
        rows: NDArray[np.uint8] = sampled(self.pixels(index).reshape(self.shape))
        return rows


Work = Crops | Images | Copies


def crops_of(context: Context) -> Crops:
    """As the settings say."""
    settings, crop, frame = context.config.scaling, context.config.crop, context.workload.frame
    held = min(settings.frames, max(settings.held_mib * MIB // frame.nbytes, 1))
    boxes = [
        sample_boxes(context.workload.pool, settings.boxes, context.seed + index) for index in range(held)
    ]
    return Crops(frame, np.stack(boxes), settings.frames, tuple(crop.size), tuple(crop.mean), tuple(crop.std))


def images_of(context: Context) -> Images:
    """As the settings say."""
    settings, frame = context.config.scaling, context.workload.frame
    drawn = log_uniform(LEAST, LARGEST, settings.batches * settings.images, context.seed)
    sizes = drawn.reshape(settings.batches, settings.images, 2)
    filled = np.cumsum(sizes.prod(axis=2).sum(axis=1) * frame.shape[2])
    held = max(int((filled <= settings.held_mib * MIB).sum()), 1)
    return Images(frame, sizes[:held], settings.batches, context.seed)


def copies_of(context: Context) -> Copies:
    """As the settings say."""
    settings = context.config.scaling
    return Copies(
        settings.copies, min(settings.copies, max(settings.held_mib * MIB // (COPY[0] * COPY[1]), 1))
    )


class Job:
    """A work on one device, with memory for its batches on both sides.

    Parameters
    ----------
    work : Work
    device : Gpu
        Of this thread.
    """

    def __init__(self, work: Work, device: Any) -> None:
        self.device = device
        self._pixels = [device.pinned(work.pixels(index)) for index in range(work.held)]
        self._there = [device.place(pixels) for pixels in self._pixels]
        self._make = work.on(device, self._there)
        self._made: Any = None

    def run(self, batches: Iterable[int], upload: bool) -> None:
        """Do them one after the other, each uploaded before if asked for, and wait until all is done."""
        for batch in batches:
            index = batch % len(self._there)
            if upload:
                self.device.copy(self._there[index], self._pixels[index])
            self._made = self._make(index)
        self.device.synchronize()

    def answer(self, batches: Sequence[int], upload: bool) -> NDArray[Any]:
        """Some items of the first and the last one; each is done anew, in memory in which nothing was left."""
        return np.concatenate([self._one(index, upload) for index in checked(batches, len(self._there))])

    def _one(self, index: int, upload: bool) -> NDArray[Any]:
        if self._made is not None:
            self.device.poison(self._made)
        if upload:
            self.device.poison(self._there[index])
        self.run([index], upload)
        return np.array(sampled(self.device.fetch(self._made)))

    def throttled(self) -> str | None:
        """Why the device was slowed down since the last call, if it can be told."""
        reason: str | None = self.device.throttled()
        return reason


def checked(batches: Sequence[int], held: int) -> list[int]:
    """Which batches of memory are compared: of the first and of the last one."""
    return sorted({batches[0] % held, batches[-1] % held})
