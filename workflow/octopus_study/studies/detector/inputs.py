"""From a frame on the host to a detector's input: letterboxed, normalised, float32, on the detector's device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from octopus import CropPlan, map_back
from octopus_study.baselines.availability import need_torch
from octopus_study.reference import crops as reference

PAD_LEVEL = 114  # the grey that YOLO surrounds its images with


@dataclass(frozen=True, eq=False)
class InputJob:
    """What is asked of every method."""

    frame_shape: tuple[int, int, int]  # Height, width and 3 channels
    size: tuple[int, int]  # height and width of the input
    # In units of the frame's values
    mean: tuple[float, ...]
    std: tuple[float, ...]
    device: str  # {"cpu", "cuda"}
    threads: int  # for what works on the CPU

    @property
    def box(self) -> NDArray[np.float32]:
        """The whole frame as a box, (1, 4)."""
        height, width, _ = self.frame_shape
        return np.array([[0, 0, width, height]], np.float32)

    @cached_property
    def place(self) -> reference.Place:
        """Where the frame lies in the input."""
        return reference.place(self.box[0], self.size)

    def expected(self, frame: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The right answer, (1, 3, height, width), computed in float64."""
        mean, std = np.array(self.mean), np.array(self.std)
        planes = reference.crop_resize(frame, self.box, self.size, mean, std, letterbox=True, pad_value=PAD_LEVEL)
        return np.ascontiguousarray(planes, np.float32)


class InputMethod:
    """From a frame on the host to the input on the device, (1, 3, height, width), that the next call may overwrite."""

    name: str
    why_different = ""
    prepare: Callable[[NDArray[np.uint8]], Any]

    def __init__(self, job: InputJob) -> None:
        self.job = job
        self.torch = need_torch(job.device, "models")
        self.device = self.torch.device(job.device)
        scale_x, scale_y, shift_x, shift_y = reference.transforms(job.box, job.size)[0].tolist()
        self._scale, self._shift = (self._constant((x, y, x, y)) for x, y in ((scale_x, scale_y), (shift_x, shift_y)))

    def back(self, boxes: Any) -> Any:
        """Boxes (N, 4) from pixels of the last input to pixels of its frame, by a way known beforehand."""
        return boxes * self._scale + self._shift

    def _constant(self, values: Any) -> Any:
        return self.torch.from_numpy(np.array(values, np.float32)).to(self.device)


class OctopusInput(InputMethod):
    """The frame goes to the device as it is; one launch does the rest into a tensor that the network reads."""

    name = "octopus"

    def __init__(self, job: InputJob) -> None:
        super().__init__(job)
        torch = self.torch
        self._on_gpu = job.device == "cuda"
        self._frame = torch.empty(job.frame_shape, dtype=torch.uint8, device=self.device)
        self._box = torch.from_numpy(job.box).to(self.device)
        self._plan = CropPlan(
            self._frame, 1, job.size, mean=job.mean, std=job.std, letterbox=True, pad_value=PAD_LEVEL,
            device=job.device,
        )  # fmt: skip
        self._transform: Any = None

    def prepare(self, frame: NDArray[np.uint8]) -> Any:
        pixels = self.torch.from_numpy(frame)
        if self._on_gpu:
            pixels = self._frame.copy_(pixels)
        planes, self._transform = self._plan.run(pixels, self._box)
        return planes

    def back(self, boxes: Any) -> Any:
        return map_back(boxes[None], self._transform)[0]


class OpenCvInput(InputMethod):
    """Everything in float32 on the CPU, in place and straight into the planes; then the upload of these."""

    name = "opencv"

    def __init__(self, job: InputJob) -> None:
        super().__init__(job)
        at = job.place
        pad = (PAD_LEVEL - np.array(job.mean)) / np.array(job.std)
        self._planes = np.empty((1, 3, *job.size), np.float32)
        self._planes[:] = pad[:, None, None]  # the frame's place is the same in every input
        self._inner = self._planes[0, :, at.top : at.top + at.height, at.left : at.left + at.width]
        self._inverse_std = tuple(1 / value for value in job.std)

    def prepare(self, frame: NDArray[np.uint8]) -> Any:
        cv2.setNumThreads(self.job.threads)
        at = self.job.place
        resized = cv2.resize(frame.astype(np.float32), (at.width, at.height), interpolation=cv2.INTER_LINEAR)
        # OpenCV takes scalars of four channels.
        cv2.subtract(resized, (*self.job.mean, 0.0), dst=resized)
        cv2.multiply(resized, (*self._inverse_std, 0.0), dst=resized)
        cv2.split(resized, list(self._inner))
        return self.torch.from_numpy(self._planes).to(self.device)


class OpenCvBytesInput(InputMethod):
    """As YOLO is mostly fed: bytes are resized, surrounded and uploaded, and become floats on the device."""

    name = "opencv-uint8"
    why_different = "OpenCV resizes bytes in fixed point and rounds to whole levels"

    def __init__(self, job: InputJob) -> None:
        super().__init__(job)
        mean, std = np.array(job.mean).reshape(1, 3, 1, 1), np.array(job.std).reshape(1, 3, 1, 1)
        self._gain, self._bias = self._constant(1 / std), self._constant(-mean / std)

    def prepare(self, frame: NDArray[np.uint8]) -> Any:
        cv2.setNumThreads(self.job.threads)
        at, (height, width) = self.job.place, self.job.size
        resized = cv2.resize(frame, (at.width, at.height), interpolation=cv2.INTER_LINEAR)
        below, after = height - at.height - at.top, width - at.width - at.left
        grey = (PAD_LEVEL,) * 3
        boxed = cv2.copyMakeBorder(resized, at.top, below, at.left, after, cv2.BORDER_CONSTANT, value=grey)
        planes = np.ascontiguousarray(boxed.transpose(2, 0, 1)[None])
        on_device = self.torch.from_numpy(planes).to(self.device)
        return self.torch.addcmul(self._bias, on_device, self._gain)


INPUT_METHODS: tuple[type[InputMethod], ...] = (OctopusInput, OpenCvInput, OpenCvBytesInput)
