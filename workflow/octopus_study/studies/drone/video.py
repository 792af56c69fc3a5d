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
    keep : bool
        True gives the crops of every frame memory of their own, False the same to all.

    Attributes
    ----------
    number : int
        Of the frame that is worked on.
    out : array, (crops, C, height, width), float32
        Crops of all frames, or of one.
    """

    def __init__(
        self,
        ring: NDArray[np.uint8],
        boxes: Sequence[NDArray[np.int32]],
        size: tuple[int, int],
        mean: tuple[float, ...],
        std: tuple[float, ...],
        device: str,
        keep: bool = False,
    ) -> None:
        self.number = 0
        counts = [len(part) for part in boxes]
        self.most, self.frames = max(counts), len(boxes)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]]) if keep else np.zeros(self.frames, int)
        shape = (sum(counts) if keep else self.most, ring.shape[3], *size)
        self.device_frame: Any = None
        self.ring, self.out = ring, np.zeros(shape, np.float32)
        if device == "cuda":
            self._to_gpu(ring, shape)
        self._addresses = [int(frame.ctypes.data) for frame in self.ring]
        self.jobs = [
            CropJob(self.frame(index), part, size, mean, std, self._part(start, len(part)), self.device_frame)
            for index, (part, start) in enumerate(zip(boxes, starts.tolist(), strict=True))
        ]
        for job in self.jobs:
            _ = job.affine  # else the first run of each frame would work it out

    def _to_gpu(self, ring: NDArray[np.uint8], shape: tuple[int, ...]) -> None:
        from octopus.backends.cuda import memory

        self.ring = memory.pinned(ring.shape, np.uint8)
        self.ring[...] = ring
        self.device_frame = memory.DeviceArray(ring.shape[1:], np.uint8)
        self.out = memory.DeviceArray(shape, np.float32)

    def _part(self, start: int, count: int) -> Any:
        if isinstance(self.out, np.ndarray):
            return self.out[start : start + count]
        item = self.out.shape[1:]
        return self.out.part(start * int(np.prod(item)), (count, *item))

    @property
    def on_gpu(self) -> bool:
        """Whether the crops are made on the GPU."""
        return self.device_frame is not None

    @property
    def job(self) -> CropJob:
        """Frame, boxes and result of the frame that is worked on."""
        return self.jobs[self.number]

    def whole_job(self) -> CropJob:
        """All crops of a video that keeps them, as the result of one job; its frame is the first one."""
        first, boxes = self.jobs[0], np.concatenate([job.boxes for job in self.jobs])
        return CropJob(first.frame, boxes, first.size, first.mean, first.std, self.out, self.device_frame)

    def turn(self, number: int) -> None:
        """Go to another frame."""
        self.number = number

    def frame(self, number: int) -> NDArray[np.uint8]:
        """A frame on the host."""
        return self.ring[number % len(self.ring)]

    def upload(self, target: int | None = None, stream: Any = None) -> None:
        """Queue the frame's way to the GPU, by default to `device_frame`; nothing on a CPU."""
        if self.device_frame is None:
            return
        from octopus.backends.cuda.memory import copy

        source = self._addresses[self.number % len(self._addresses)]
        copy(
            self.device_frame.pointer if target is None else target, source, self.device_frame.nbytes, stream
        )

    def plan(self, max_boxes: int, frames: Any = None, **options: Any) -> CropPlan:
        """A plan for frames like these, which writes into memory that it is given."""
        job = self.jobs[0]
        model = job.working_frame if frames is None else frames
        device = "cuda" if self.on_gpu else "cpu"
        return CropPlan(
            model, max_boxes, job.size, mean=job.mean, std=job.std, device=device, allocate=False, **options
        )
