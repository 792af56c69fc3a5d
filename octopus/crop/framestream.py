"""Frames from the host, one after the other: the next one is uploaded while this one is cropped."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from octopus import backends
from octopus.arrays.checks import Device, OneAtATime, check_known, check_stream, dtype_text, is_count
from octopus.arrays.memo import dynamo_disabled
from octopus.arrays.results import BFLOAT16
from octopus.arrays.views import ArrayView
from octopus.crop.api import CropPlan
from octopus.crop.frame import NV12, P010, VideoView, frame_view
from octopus.crop.spec import PLAN_OPTIONS, PlanOptions, Size
from octopus.errors import InputError, shown


class _Slot:
    """What one frame under way needs: the host writes `buffer`, in `host`, and the plan reads `frame`, in `there`."""

    def __init__(self, model: ArrayView, max_boxes: int, device: str, crops: Any, options: dict[str, Any]) -> None:
        height, width, *_ = shape = model.shape
        if isinstance(model, VideoView):  # both planes, one below the other
            shape = height * 3 // 2, width
        if device == "cpu":
            self.host = np.zeros(shape, model.dtype)
            self.there: Any = self.host
        else:
            from octopus.backends.cuda import memory
            from octopus.backends.cuda.device import current

            self.host = memory.pinned(shape, model.dtype)
            self.host.fill(0)
            self.there = memory.DeviceArray(shape, model.dtype, stream=crops)
            self.uploaded, self.done = current().create_event(), current().create_event()
        self.buffer, self.frame = (_frame_in(held, model) for held in (self.host, self.there))
        self.plan = CropPlan(self.frame, max_boxes, device=device, stream=crops, **options)


def _frame_in(held: Any, model: ArrayView) -> Any:
    if not isinstance(model, VideoView):
        return held
    height, width, _ = model.shape
    form: Any = NV12 if model.coding.kind == NV12.kind else P010
    if isinstance(held, np.ndarray):
        y, uv = held[:height], held[height:]
    else:
        y, uv = held.part(0, (height, width)), held.part(height * width, (height // 2, width))
    return form(y, uv, matrix=model.coding.matrix, range=model.coding.range)


class FrameStream:
    """Crops of frames that come from the host one after the other, such as a camera's.

    A frame is written into page-locked memory (`buffer`) and handed over with its boxes (`submit`). On the GPU its
    upload goes on a stream of its own, so that it runs beside the crops of the frame before; on the CPU the crops are
    made at once. After the construction no memory is allocated.

    Parameters
    ----------
    frame : ndarray, (H, W, C), or NV12 or P010
        A frame like those to come: same shape and dtype, and coding of video; its pixels are not read.
    max_boxes : int
        Most boxes in a frame.
    size, mean, std, scale, dtype, layout, edge, antialias, filter, letterbox, return_transform, outside, pad_mode,
    pad_value, channels
        As in `crop_resize`, but for bfloat16, of which a stream has no arrays.
    buffers : int
        Frames that may be under way, at least 1; with 2 one is uploaded while the other is cropped.
    overlap : bool
        False uploads in the order of the crops instead, which shows what overlapping gains.
    stream : optional
        The CUDA stream on which crops are made, of any library: work that follows on it needs no waiting. Default:
        the default stream. None where the CPU works.
    device : {"auto", "cpu", "cuda", "cuda:0", ...} or torch.device
        "auto" works on the GPU if there is one.

    Raises
    ------
    InputError, DeviceError, OutOfMemoryError
        As `crop_resize`.

    Examples
    --------
    >>> import numpy as np
    >>> video = [np.zeros((1080, 1920, 3), np.uint8)] * 3
    >>> stream = FrameStream(video[0], 100, (32, 32), device="cpu")
    >>> for frame in video:
    ...     stream.buffer()[...] = frame
    ...     crops = stream.submit([[10, 20, 60, 90], [5, 5, 6, 6]])
    >>> crops.shape
    (2, 3, 32, 32)
    """

    @dynamo_disabled
    def __init__(
        self, frame: Any, max_boxes: int, size: Size = (224, 224), *, buffers: int = 2, overlap: bool = True,
        stream: Any = None, device: Device = "auto", **given: Unpack[PlanOptions],
    ) -> None:  # fmt: skip
        check_known("FrameStream", given, PLAN_OPTIONS)
        model = frame_view(frame)
        if model.device != "cpu" or len(model.shape) != 3:
            raise InputError(
                "a stream takes frames (H, W, C) from the host, found one of shape "
                f"{model.shape} on {model.device}; CropPlan takes frames that are on the GPU"
            )
        if dtype_text(given.get("dtype", "float32"), (BFLOAT16,)) == BFLOAT16:
            raise InputError(
                "a stream's results can't be of bfloat16; ask for float32 or float16, or make a CropPlan for tensors"
            )
        if not is_count(buffers) or buffers < 1:
            raise InputError(f"buffers must be a positive integer, found {shown(buffers)}")
        options: dict[str, Any] = {"size": size, **given}
        self.device = backends.resolve(device)
        self._next, self._alone = 0, OneAtATime()
        self._crops: Any = None
        if self.device == "cpu":
            check_stream(stream, self.device)
        else:
            from octopus.backends.cuda import stream_of
            from octopus.backends.cuda.device import current

            self._crops = stream_of(stream)
            self._uploads = current().create_stream() if overlap else self._crops
        self._slots = [_Slot(model, max_boxes, self.device, self._crops, options) for _ in range(buffers)]
        if self.device == "cuda":
            self.wait()

    def buffer(self) -> Any:
        """Where the next frame is to be written, (H, W, C); waits until its last upload is over.

        Returns
        -------
        ndarray, (H, W, C), or NV12 or P010
            Of video the planes `y` and `uv` are to be written. The same until `submit`, then that of the next slot, in
            turn. What was written into it before is still there.
        """
        slot = self._slots[self._next]
        if self.device == "cuda":
            slot.uploaded.sync()
        return slot.buffer

    @dynamo_disabled
    def submit(self, boxes: Any) -> Any:
        """Queue the upload of the frame in `buffer` and its crops.

        Parameters
        ----------
        boxes : array, (N, 4) or (N, 2, 3)
            As in `crop_resize`; N may be 0, which uploads the frame alone.

        Returns
        -------
        DeviceArray, or on the CPU ndarray, (N, C, height, width) or (N, height, width, C)
            As `CropPlan.run` returns it (with `return_transform` a pair), to be used on the stream of the crops, or
            after `wait`. It is overwritten by the frame that comes `buffers` later.

        Raises
        ------
        InputError
            For bad boxes, or while another thread submits; the frame then stays the next one.
        """
        with self._alone:
            slot = self._slots[self._next]
            if self.device == "cuda":
                self._upload(slot)
            crops = slot.plan.run(slot.frame, boxes, stream=self._crops)
            if self.device == "cuda":
                self._crops.record(slot.done)
            self._next = (self._next + 1) % len(self._slots)
            return crops

    def _upload(self, slot: _Slot) -> None:
        """Queue a frame's upload behind the last crops that read its slot, and the crops to come behind it."""
        if self._uploads is not self._crops:
            self._uploads.wait(slot.done)
        slot.there.copy_from_host(slot.host, self._uploads)
        self._uploads.record(slot.uploaded)
        if self._uploads is not self._crops:
            self._crops.wait(slot.uploaded)

    def __enter__(self) -> FrameStream:
        return self

    def __exit__(self, *error: object) -> None:
        self.wait()

    def wait(self) -> None:
        """Wait until everything that was submitted is done."""
        if self.device == "cuda":
            from octopus.backends.cuda.device import current

            current()
            self._crops.sync()
