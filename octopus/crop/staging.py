"""The way of a frame that is on the host while the GPU does the work: there, and the result back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from octopus.arrays.views import ArrayView, c_strides
from octopus.crop.spec import CropSpec


class Stage:
    """Device memory for a frame from the host, and for what is made of it.

    Parameters
    ----------
    spec : CropSpec
    frame_bytes : int
        Of the largest frame.
    max_boxes : int
    stream : cuda.core.Stream
        On which the memory is allocated.
    """

    def __init__(self, spec: CropSpec, frame_bytes: int, max_boxes: int, stream: Any) -> None:
        from octopus.backends.cuda import memory

        self._copy = memory.copy
        self._frame = memory.DeviceArray((frame_bytes,), np.uint8, stream=stream)
        self._out = memory.DeviceArray(spec.shape(max_boxes), spec.dtype, stream=stream)
        transforms = (max_boxes if spec.letterbox else 0, 4)
        self._transform = memory.DeviceArray(transforms, np.float32, stream=stream)
        self.owned = (self._frame, self._out, self._transform)

    def run(
        self,
        frame: ArrayView,
        out: ArrayView,
        transform: ArrayView | None,
        queue: Any,
        submit: Callable[[ArrayView, int, int], None],
    ) -> None:
        """Bring the frame to the GPU, `submit` what reads it there, bring the results back, and wait for them.

        Parameters
        ----------
        frame, out, transform : ArrayView
            On the host.
        queue : cuda.core.Stream
        submit : callable
            Queues the work, given the frame on the GPU and the addresses of result and transform there.
        """
        pixels = np.ascontiguousarray(frame.numpy())
        self._copy(self._frame.pointer, pixels.ctypes.data, pixels.nbytes, queue)
        strides = c_strides(frame.shape, frame.dtype)
        on_gpu = replace(frame, pointer=self._frame.pointer, strides=strides, device="cuda")
        submit(on_gpu, self._out.pointer, self._transform.pointer)
        self._copy(out.pointer, self._out.pointer, out.nbytes, queue)
        if transform is not None:
            self._copy(transform.pointer, self._transform.pointer, transform.nbytes, queue)
        queue.sync()
