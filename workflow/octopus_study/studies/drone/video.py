"""A video: frames come from the host one after the other, and each has boxes of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus import CropPlan
from octopus_study.peers.job import CropJob
from octopus_study.studies.crops import ReferenceCrops


@dataclass(frozen=True)
class Footage:
    """Frames that come over and over, and what makes the right crops of each."""

    ring: NDArray[np.uint8]
    references: list[ReferenceCrops]

    def crops(self, number: int, boxes: NDArray[np.int32]) -> NDArray[np.float32]:
        """The right crops of the frame of that number."""
        return self.references[number % len(self.ring)].of(boxes)


class Video:
    """Frames on the host, in page-locked memory beside a GPU, the boxes of each, and memory for their crops.

    Parameters
    ----------
    ring : ndarray, (R, H, W, C), uint8
        The frames, over and over.
    boxes : sequence of (N, 4) int32
        One array per frame, on the host.
    size, mean, std
        As in `CropJob`.
    device : {"cpu", "cuda"}

    Attributes
    ----------
    number : int
        Of the frame that is worked on.
    out : array, (crops, C, height, width), float32
        Crops of a frame; every frame's go there.
    """

    def __init__(
        self,
        ring: NDArray[np.uint8],
        boxes: Sequence[NDArray[np.int32]],
        size: tuple[int, int],
        mean: tuple[float, ...],
        std: tuple[float, ...],
        device: str,
    ) -> None:
        self.number = 0
        self.most, self.frames = max(map(len, boxes)), len(boxes)
        shape = (self.most, ring.shape[3], *size)
        self.device_frame: Any = None
        self.ring, self.out = ring, np.zeros(shape, np.float32)
        if device == "cuda":
            self._to_gpu(ring, shape)
        self._addresses = [int(frame.ctypes.data) for frame in self.ring]
        self.jobs = [
            CropJob(self.frame(index), part, size, mean, std, self._first(len(part)), self.device_frame)
            for index, part in enumerate(boxes)
        ]
        for job in self.jobs:
            _ = job.affine  # else the first run of each frame would work it out

    def _to_gpu(self, ring: NDArray[np.uint8], shape: tuple[int, ...]) -> None:
        from octopus.backends.cuda import memory

        self.ring = memory.pinned(ring.shape, np.uint8)
        self.ring[...] = ring
        self.device_frame = memory.DeviceArray(ring.shape[1:], np.uint8)
        self.out = memory.DeviceArray(shape, np.float32)

    def _first(self, count: int) -> Any:
        return self.out[:count] if isinstance(self.out, np.ndarray) else self.out.head(count)

    @property
    def on_gpu(self) -> bool:
        """Whether the crops are made on the GPU."""
        return self.device_frame is not None

    @property
    def job(self) -> CropJob:
        """Frame, boxes and result of the frame that is worked on."""
        return self.jobs[self.number]

    def turn(self, number: int) -> None:
        """Go to another frame."""
        self.number = number

    def frame(self, number: int) -> NDArray[np.uint8]:
        """A frame on the host."""
        return self.ring[number % len(self.ring)]

    def upload(self, stream: Any = None) -> None:
        """Queue the frame's way to `device_frame`; nothing on a CPU."""
        if self.device_frame is None:
            return
        from octopus.backends.cuda.memory import copy

        source = self._addresses[self.number % len(self._addresses)]
        copy(self.device_frame.pointer, source, self.device_frame.nbytes, stream)

    def plan(self, max_boxes: int) -> CropPlan:
        """A plan for frames like these, which writes into memory that it is given."""
        job = self.jobs[0]
        options: dict[str, Any] = {
            "mean": job.mean,
            "std": job.std,
            "device": "cuda" if self.on_gpu else "cpu",
        }
        return CropPlan(job.working_frame, max_boxes, job.size, allocate=False, **options)
