"""What every method on crops is given: a frame, boxes, the normalisation, and where to write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.errors import InputError
from octopus_study.measure import Method

# An answer is the same if it is within 1/1000 of the range of the pixel values, before the division by std.
TOLERANCE_LEVELS = 0.255


@dataclass(frozen=True, eq=False)
class CropJob:
    """Crop, resize to `size`, normalise, to float32 NCHW."""

    # (H, W, C) uint8, on the host; for CUDA its copy on the device is `device_frame`
    frame: NDArray[np.uint8]
    # (N, 4) int32, `x1, y1, x2, y2` in pixels, on the host, where every method's way begins
    boxes: NDArray[np.int32]
    size: tuple[int, int]  # height and width of the result
    # In units of the frame's values
    mean: tuple[float, ...]
    std: tuple[float, ...]
    # Shared by all methods, so that memory is needed once: a NumPy array, or a `DeviceArray`, which decides the device
    out: Any
    device_frame: Any = None
    # Where methods that work on the host write if `out` is on the GPU, such as page-locked memory
    host_out: NDArray[np.float32] | None = None

    @property
    def count(self) -> int:
        """Number of boxes."""
        return len(self.boxes)

    @property
    def on_gpu(self) -> bool:
        """Whether the methods work on the GPU."""
        return not isinstance(self.out, np.ndarray)

    @property
    def device(self) -> str:
        """ "cuda" or "cpu"."""
        return "cuda" if self.on_gpu else "cpu"

    @property
    def crops_shape(self) -> tuple[int, int, int, int]:
        """Shape of an intermediate batch in NHWC."""
        return self.count, *self.size, self.frame.shape[2]

    @cached_property
    def kept(self) -> dict[str, NDArray]:
        """Copies of the inputs, from when they are asked for first."""
        return {"the frame": self.frame.copy(), "the boxes": self.boxes.copy()}

    @cached_property
    def affine(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Mean and 1 / std per channel."""
        return np.array(self.mean, np.float32), (1 / np.array(self.std)).astype(np.float32)

    @property
    def working_frame(self) -> Any:
        """The frame where the work is done."""
        return self.device_frame if self.on_gpu else self.frame

    def on_host(self) -> CropJob:
        """The same job in host memory, for methods that know no GPU."""
        if not self.on_gpu:
            return self
        out = np.empty(self.out.shape, np.float32) if self.host_out is None else self.host_out
        return replace(self, out=out, device_frame=None)

    @property
    def tolerance(self) -> float:
        """Largest difference from the right answer that counts as none: the strictest channel's, for all."""
        return TOLERANCE_LEVELS / max(self.std)

    def method(self, name: str, run: Callable[[], object], why_different: str = "") -> Method:
        """A method that writes the job's result."""
        return Method(name, run, self.result, self.tolerance, why_different)

    def poison(self) -> None:
        """Fill the result with 0xFF, which is NaN or white, so that a value that is not written is seen."""
        if self.on_gpu:
            self.out.fill_bytes(0xFF)
        else:
            self.out.view(np.uint8).fill(0xFF)

    def mend(self) -> str:
        """Put back what was written into the inputs since the first call; says into which of them, or an empty text."""
        given = {"the frame": self.frame, "the boxes": self.boxes}
        harmed = [name for name, kept in self.kept.items() if not np.array_equal(given[name], kept)]
        for name in harmed:
            given[name][...] = self.kept[name]
        if self.device_frame is not None and not np.array_equal(self.device_frame.copy_to_host(), self.frame):
            self.device_frame.copy_from_host(np.ascontiguousarray(self.frame))
            harmed.append("the frame on the GPU")
        return " and ".join(harmed)

    def result(self, every: int = 1) -> NDArray[np.float32]:
        """Each `every`-th crop of the result as float32, on the host; a copy only where it is not that already."""
        return on_host(self.out, every).astype(np.float32, copy=False)


def on_host(results: Any, every: int = 1) -> NDArray[Any]:
    """Each `every`-th item of a NumPy array or a `DeviceArray`; of the latter only these are copied."""
    if isinstance(results, np.ndarray):
        return results[::every]
    from octopus.backends.cuda import memory, stream_of

    found = np.empty((-(-len(results) // every), *results.shape[1:]), results.dtype)
    step = results.nbytes // max(len(results), 1)
    for item, target in enumerate(found):
        memory.copy(target.ctypes.data, results.pointer + item * every * step, step)
    stream_of(None).sync()
    return found


def plain(frame: NDArray[np.uint8]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation that leave the channels of a frame as they are."""
    return (0.0,) * frame.shape[-1], (1.0,) * frame.shape[-1]


def make_job(
    frame: NDArray[np.uint8],
    boxes: NDArray[np.int32],
    size: tuple[int, int],
    mean: tuple[float, ...],
    std: tuple[float, ...],
    device: str,
    dtype: Any = np.float32,
    layout: str = "NCHW",
) -> CropJob:
    """Allocate a job's result on `device` ("cpu" or "cuda"), and bring the frame, or frames, there."""
    item = (frame.shape[-1], *size) if layout == "NCHW" else (*size, frame.shape[-1])
    shape = (len(boxes), *item)
    if device == "cpu":
        return CropJob(frame, boxes, size, mean, std, np.zeros(shape, dtype))
    if device != "cuda":
        raise InputError(f"a job works on cpu or cuda, not on {device!r}")
    from octopus.backends.cuda import memory

    out = memory.DeviceArray(shape, dtype)
    return CropJob(frame, boxes, size, mean, std, out, memory.upload(frame))
