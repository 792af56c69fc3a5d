"""The two ways to run a checked crop-and-resize call: on the CPU and on a CUDA device."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np

from octopus.cropspec import CropSpec
from octopus.interop import ArrayView
from octopus.kernels.cuda.tiles import MAX_COLUMNS, ROWS


class CpuEngine:
    """Runs a spec with the Numba CPU kernel; holds no memory of its own."""

    def __init__(self, spec: CropSpec) -> None:
        self.spec = spec

    def run(self, frame: np.ndarray, boxes: np.ndarray, out: np.ndarray) -> None:
        """Fill `out` for float32 `boxes` (N, 4) on the host."""
        from octopus.kernels.cpu import crop

        spec = self.spec
        band = crop.band_rows(len(boxes), spec.height)
        crop.crop_resize(frame, boxes, self._rows_of(out), spec.width, band, spec.gain, spec.bias)

    def _rows_of(self, out: np.ndarray) -> np.ndarray:
        """The result as (N, planes, rows, values per row); float16 as its bits, which Numba can store."""
        bits = out.view(np.uint16) if out.dtype == np.float16 else out
        if self.spec.layout == "NCHW":
            return bits
        return bits.reshape(len(out), 1, self.spec.height, self.spec.width * self.spec.channels)


class CudaEngine:
    """Runs a spec with the fused CUDA kernel: one launch, no device allocation after construction.

    Parameters
    ----------
    spec : CropSpec
    max_boxes : int
        Capacity of the device's buffer for boxes that come from the host: 16 bytes per box.
    box_dtype : str
        Dtype of the boxes to come, whose kernel is loaded now; another one's is at its first launch.
    stream : cuda.core.Stream
        On which memory is allocated.
    """

    def __init__(self, spec: CropSpec, max_boxes: int, box_dtype: str, stream: Any) -> None:
        from cuda.core import launch

        from octopus.backends.cuda import memory

        self.spec = spec
        self._submit = launch
        self._memory = memory
        self.device_boxes = memory.DeviceArray((max_boxes, 4), np.float32, stream=stream)
        self._threads = min(-(-spec.width // 32) * 32, MAX_COLUMNS)
        self._tiles = (-(-spec.width // self._threads), -(-spec.height // ROWS))
        self._shape = tuple(np.int32(v) for v in (spec.width, spec.height, *self._tiles))
        self._affine = tuple(np.float32(v) for v in (*_four(spec.gain), *_four(spec.bias)))
        self._kernels = {box_dtype: self.kernel(box_dtype)}

    def kernel(self, box_dtype: str) -> Any:
        """The compiled kernel for boxes of that dtype."""
        return _kernel(self.spec.kernel_name, self.spec.channels, self.spec.frame_dtype, box_dtype,
                       self.spec.dtype, self.spec.layout)  # fmt: skip

    def upload_boxes(self, boxes: np.ndarray, stream: Any) -> int:
        """Queue the copy of checked float32 boxes to the device; returns their address there.

        The driver has read the boxes when this returns. Up to 64 KiB (4096 boxes) it keeps a copy of its own and
        doesn't wait for the stream, so that a page-locked buffer would gain nothing.
        """
        self._memory.copy(self.device_boxes.pointer, boxes.ctypes.data, boxes.nbytes, stream)
        return self.device_boxes.pointer

    def launch(self, frame: ArrayView, boxes: int, box_dtype: str, count: int, out: int, stream: Any) -> None:
        """Queue the kernel; `frame`, `boxes` and `out` are in device memory."""
        height, width, _ = frame.shape
        kernel = self._kernels.get(box_dtype)
        if kernel is None:
            kernel = self._kernels[box_dtype] = self.kernel(box_dtype)
        pitch = np.int32(frame.strides[0] // frame.dtype.itemsize)
        blocks = count * self._tiles[0] * self._tiles[1]
        self._submit(
            stream, _config(blocks, self._threads), kernel, frame.pointer, pitch, np.int32(width), np.int32(height),
            boxes, out, *self._shape, *self._affine,
        )  # fmt: skip


@lru_cache(maxsize=1024)
def _config(blocks: int, threads: int) -> Any:
    from cuda.core import LaunchConfig

    return LaunchConfig(grid=blocks, block=threads)


@cache
def _kernel(name: str, channels: int, frame_dtype: str, box_dtype: str, dtype: str, layout: str) -> Any:
    from octopus.backends.cuda import compile

    def build() -> tuple:
        from octopus.kernels.cuda import crop

        return crop.build(channels, dtype, layout), crop.argument_types(frame_dtype, box_dtype, dtype)

    return compile.load(f"crop-{name}-{box_dtype}", build)


def _four(values: np.ndarray) -> np.ndarray:
    """The values of up to four channels, filled up with zeros: the kernel has a parameter for each."""
    return np.pad(values, (0, 4 - len(values)))
