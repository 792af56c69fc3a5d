"""The way to run a checked crop-and-resize call on a CUDA device."""

from __future__ import annotations

from typing import Any

import numpy as np

from octopus.arrays.launch import PreparedLaunch, launch
from octopus.arrays.views import ArrayView, c_strides
from octopus.crop.check import are_maps, is_readable
from octopus.crop.items import NOTHING, HostItems
from octopus.crop.launch import Call, Launcher, PlainLauncher, StreamLauncher
from octopus.crop.spec import CropSpec
from octopus.errors import InputError
from octopus.kernels.cuda.tiles import MAX_ITEMS

UPLOAD_BYTES = 1 << 16  # the driver copies this much out of pageable memory without waiting for the stream
BOX_BYTES, MAP_BYTES, INDEX_BYTES, TRANSFORM_BYTES = 16, 24, 4, 16


def upload_capacity(max_boxes: int, indexed: bool, box_bytes: int = BOX_BYTES) -> int:
    """Boxes from the host, or affine maps, with their frame index, that travel at a time."""
    return min(max_boxes, UPLOAD_BYTES // (box_bytes + INDEX_BYTES * indexed))


def upload_bytes(max_boxes: int, indexed: bool) -> int:
    """Device memory for as many of either kind."""
    return max(size * upload_capacity(max_boxes, indexed, size) for size in (BOX_BYTES, MAP_BYTES))


_captured: list[Any] = []  # what graphs read, which may live longer than the engines


class CudaEngine:
    """Runs a spec with the streaming CUDA kernel, or the plain one: one launch, no device allocation afterwards.

    Up to 240 boxes from the host are an argument of the streaming kernel. More, or those of the plain kernel, go
    through a buffer of at most 64 KiB; larger batches take several turns, each with a launch of its own. So do batches
    of more than 65535 boxes. Affine maps have a plain kernel of their own, loaded when it is first needed.

    Parameters
    ----------
    spec : CropSpec
    max_boxes : int
        Capacity that the buffer for boxes from the host needs at most.
    model : ArrayView
        A frame like those to come; the kernel for it is loaded now.
    box_dtype, index_dtype : str
        Dtypes of the boxes and of the frame index to come; `INSIDE` for a few boxes from the host.
    stream : cuda.core.Stream
        On which memory is allocated.
    maps : bool
        Whether the boxes to come are affine maps.
    """

    def __init__(
        self, spec: CropSpec, max_boxes: int, model: ArrayView, box_dtype: str, index_dtype: str, stream: Any,
        maps: bool = False,
    ) -> None:  # fmt: skip
        from octopus.backends.cuda import memory
        from octopus.backends.cuda.device import current, is_capturing

        self.spec = spec
        self._is_capturing = is_capturing
        self._copy = memory.copy
        self.capacity = upload_capacity(max_boxes, spec.frame.indexed)
        self._map_capacity = upload_capacity(max_boxes, spec.frame.indexed, MAP_BYTES)
        boxes = upload_bytes(max_boxes, spec.frame.indexed)
        index = INDEX_BYTES * self.capacity if spec.frame.indexed else 0
        many = spec.kernel.many_channels
        values = np.concatenate([spec.gain, spec.bias, spec.pad] if many else [np.empty(0, np.float32)])
        self.device_boxes, self.device_index, self.device_values = (
            memory.DeviceArray((nbytes,), np.uint8, stream=stream) for nbytes in (boxes, index, values.nbytes)
        )
        if many:
            self._copy(self.device_values.pointer, values.ctypes.data, values.nbytes, stream)
        self.owned = (self.device_boxes, self.device_index, self.device_values)
        self._own: dict[str, Any] = {}
        properties = current().properties
        self._launcher: Launcher = (
            StreamLauncher(spec, properties.multiprocessor_count, properties.l2_cache_size)
            if spec.kernel.streams
            else PlainLauncher(spec, self.device_values.pointer)
        )
        self._map_launcher: Launcher | None = None
        self.preload(model, box_dtype, index_dtype, maps)

    def preload(self, model: ArrayView, box_dtype: str, index_dtype: str, maps: bool = False) -> None:
        """Load the kernel for frames like `model`, and boxes or maps of a dtype."""
        self._launcher_for(maps).preload(model, box_dtype, index_dtype)

    def _launcher_for(self, maps: bool) -> Launcher:
        if not maps:
            return self._launcher
        if self._map_launcher is None:
            self._map_launcher = PlainLauncher(self.spec, self.device_values.pointer, maps=True)
        return self._map_launcher

    def prepare(self, call: Call) -> PreparedLaunch | None:
        """What does a call, and others like it, in one launch; None if it takes more than that."""
        count, on_host, maps = call.boxes.shape[0], call.boxes.device == "cpu", are_maps(call.boxes.shape)
        if count > MAX_ITEMS or self.spec.kernel.many_channels or any(a.device == "cpu" for a in call.items.arrays):
            return None
        if on_host and (maps or count > self.capacity or not is_readable(call.boxes)):
            return None
        return self._launcher_for(maps).prepare(call, self.device_boxes)

    def run(self, call: Call, given: HostItems = NOTHING, stream: Any = None) -> None:
        """Queue the kernel for a frame on the GPU, and the upload of what else comes from the host.

        Boxes from the host are float32 that have been checked. The copy of a part of what is uploaded waits, in the
        order of the stream, for the kernel that reads the part before it.

        Raises
        ------
        InputError
            While a graph is captured: it would copy from where the boxes were at the time. For a count on the GPU of
            more items than travel at a time: a launch knows nothing of the items before its own.
        """
        count, items, maps = call.boxes.shape[0], call.items, are_maps(call.boxes.shape)
        if self.spec.kernel.many_channels and self._is_capturing(stream):
            _captured.append(self.device_values)
        room = MAX_ITEMS
        if call.boxes.device == "cpu" or given.any:
            self.refuse_captured(stream)
            room = self._map_capacity if maps else self.capacity
            if given.mean is not None:
                room = min(room, UPLOAD_BYTES // (4 * self.spec.frame.channels))
            if items.counted is not None and count > room:
                raise InputError(
                    f"a count on the GPU, beside what items have on the host, is for up to {room} boxes, found "
                    f"{count}; bring frame_index, flip, mean and std to the GPU, too, or split the batch"
                )
        for first in range(0, count, room):
            part, last = call.part(first, min(first + room, count)), first + room
            own = {
                name: self._upload(name, array[first:last], stream)
                for name, array in given._asdict().items()
                if array is not None
            }
            part = part._replace(items=part.items._replace(**own))
            if maps and part.boxes.device == "cpu":
                part = part._replace(boxes=self._upload("boxes", call.boxes.numpy()[first:last], stream))
            prepared = self._launcher_for(maps).prepare(part, self.device_boxes)
            launch(prepared, part.addresses, stream)

    def refuse_captured(self, stream: Any) -> None:
        """Raise `InputError` while a graph is captured: it would have the boxes that were on the host then."""
        if self._is_capturing(stream):
            raise InputError("boxes, and what each has of its own, must be on the GPU while a graph is captured")

    def _upload(self, name: str, values: np.ndarray, stream: Any) -> ArrayView:
        """Queue the copy of what items have of their own to the GPU, of at most 64 KiB.

        The driver has read it when this returns: of page-locked memory, which it would read later, a copy.
        """
        from octopus.backends.cuda import memory

        there = {"boxes": self.device_boxes, "frame_index": self.device_index}.get(name) or self._own.get(name)
        if there is None:  # reserved at the first run that needs it
            size = self.capacity * values.nbytes // len(values)
            there = self._own[name] = memory.DeviceArray((size,), np.uint8, stream=stream)
        if name in self._own:
            there.release_on(stream)
        pageable = np.array(values)
        self._copy(there.pointer, pageable.ctypes.data, pageable.nbytes, stream)
        strides = c_strides(pageable.shape, pageable.dtype)
        return ArrayView(there.pointer, pageable.shape, strides, pageable.dtype, "cuda", "octopus", None)

    def read_boxes(self, boxes: ArrayView, stream: Any) -> np.ndarray:
        """Boxes on the GPU as an array on the host, once the work before them on the stream is done.

        Raises
        ------
        InputError
            While a graph is captured, which nothing may wait for.
        """
        if self._is_capturing(stream):
            raise InputError(
                'outside="error" reads the boxes, which a graph that is captured does not allow; '
                'ask for outside="clip" or "pad"'
            )
        return self.read(boxes, stream)

    def read(self, array: ArrayView, stream: Any) -> np.ndarray:
        """The same of any contiguous array, where no graph is captured."""
        result = np.empty(array.shape, array.dtype)
        self._copy(result.ctypes.data, array.pointer, result.nbytes, stream)
        stream.sync()
        return result
