"""The two ways to run a checked crop-and-resize call: on the CPU and on a CUDA device."""

from __future__ import annotations

from functools import cache
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
    """Runs a spec with the fused CUDA kernel: one launch, no allocation after construction.

    Parameters
    ----------
    spec : CropSpec
    max_boxes : int
        Capacity of the buffers for boxes that come from the host: 16 bytes per box on the device.
    staging : bool
        Keep a page-locked buffer on the host too; it takes long to make, so a plan used once does without.
    stream : cuda.core.Stream
        On which memory is allocated.
    """

    def __init__(self, spec: CropSpec, max_boxes: int, staging: bool, stream: Any) -> None:
        from cuda.core import launch

        from octopus.backends.cuda import memory

        self.spec = spec
        self._launch = launch
        self._memory = memory
        self.device_boxes = memory.DeviceArray((max_boxes, 4), np.float32, stream=stream)
        self._staging = memory.pinned((max_boxes, 4), np.float32) if staging else None
        self._copied: Any = None
        self._configs: dict[int, Any] = {}
        self._threads = min(-(-spec.width // 32) * 32, MAX_COLUMNS)
        self._tiles = (-(-spec.width // self._threads), -(-spec.height // ROWS))
        self._shape = tuple(np.int32(v) for v in (spec.width, spec.height, *self._tiles))
        self._affine = tuple(np.float32(v) for v in (*_four(spec.gain), *_four(spec.bias)))
        self._float_kernel = self.kernel("float32")

    def __del__(self) -> None:
        # The page-locked buffer must outlive the copy that reads it.
        if getattr(self, "_copied", None) is not None:
            self._copied.sync()

    def kernel(self, box_dtype: str) -> Any:
        """The compiled kernel for boxes of that dtype."""
        return _kernel(self.spec.kernel_name, self.spec.channels, self.spec.frame_dtype, box_dtype,
                       self.spec.dtype, self.spec.layout)  # fmt: skip

    def upload_boxes(self, boxes: np.ndarray, stream: Any) -> int:
        """Queue the copy of checked float32 boxes to the device; returns their address there.

        With staging the copy is asynchronous, and the page-locked buffer is written again only after the copy before
        has read it; without, the driver has read the boxes when this returns.
        """
        if self._staging is not None:
            if self._copied is not None:
                self._copied.sync()
            self._staging[: len(boxes)] = boxes
            boxes = self._staging[: len(boxes)]
        self._memory.copy(self.device_boxes.pointer, boxes.ctypes.data, boxes.nbytes, stream)
        if self._staging is not None:
            self._copied = stream.record(self._copied)
        return self.device_boxes.pointer

    def launch(self, frame: ArrayView, boxes: int, box_dtype: str, count: int, out: int, stream: Any) -> None:
        """Queue the kernel; `frame`, `boxes` and `out` are in device memory."""
        height, width, _ = frame.shape
        kernel = self._float_kernel if box_dtype == "float32" else self.kernel(box_dtype)
        pitch = np.int32(frame.strides[0] // frame.dtype.itemsize)
        self._launch(
            stream, self._config(count), kernel, frame.pointer, pitch, np.int32(width), np.int32(height),
            boxes, out, *self._shape, *self._affine,
        )  # fmt: skip

    def _config(self, count: int) -> Any:
        config = self._configs.get(count)
        if config is None:
            from cuda.core import LaunchConfig

            grid = count * self._tiles[0] * self._tiles[1]
            config = self._configs[count] = LaunchConfig(grid=grid, block=self._threads)
        return config


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
