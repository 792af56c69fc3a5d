"""The way to run a checked crop-and-resize call on a CUDA device."""

from __future__ import annotations

from typing import Any

import numpy as np

from octopus.arrays.views import ArrayView, dtype_name
from octopus.crop.check import Room
from octopus.crop.items import NONE, HostItems, Items
from octopus.crop.launch import INSIDE, NO_ITEMS, ItemPointers, PlainLauncher, Ready, StreamLauncher
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


def pointers_of(items: Items) -> ItemPointers:
    """The addresses of what lies on the GPU."""
    if items is NONE:
        return NO_ITEMS
    flip, mean, std, count = (
        array.pointer if array is not None and array.device == "cuda" else 0 for array in items[1:]
    )
    step = items.flip.strides[0] if flip and items.flip is not None else 0
    return ItemPointers(count, flip, step, mean, std) if flip or mean or std or count else NO_ITEMS


def index_of(items: Items) -> tuple[int, str]:
    """Address and dtype of a frame index on the GPU."""
    index = items.frame_index
    return (0, "int32") if index is None else (index.pointer, dtype_name(index.dtype))


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
        self,
        spec: CropSpec,
        max_boxes: int,
        model: ArrayView,
        box_dtype: str,
        index_dtype: str,
        stream: Any,
        maps: bool = False,
    ) -> None:
        from octopus.backends.cuda import memory
        from octopus.backends.cuda.device import current, is_capturing

        self.spec = spec
        self._is_capturing = is_capturing
        self._copy = memory.copy
        self.capacity = upload_capacity(max_boxes, spec.frame.indexed)
        self._map_capacity = upload_capacity(max_boxes, spec.frame.indexed, MAP_BYTES)
        self.device_boxes = memory.DeviceArray(
            (upload_bytes(max_boxes, spec.frame.indexed),), np.uint8, stream=stream
        )
        self.device_index = memory.DeviceArray(
            (self.capacity if spec.frame.indexed else 0,), np.int32, stream=stream
        )
        many = spec.kernel.many_channels
        values = np.concatenate([spec.gain, spec.bias, spec.pad] if many else [np.empty(0, np.float32)])
        self.device_values = memory.DeviceArray((values.size,), np.float32, stream=stream)
        if many:
            self._copy(self.device_values.pointer, values.ctypes.data, values.nbytes, stream)
        self.owned = (self.device_boxes, self.device_index, self.device_values)
        self._own: dict[str, Any] = {}
        self._item_bytes = spec.nbytes(1)
        properties = current().properties
        self._launcher: PlainLauncher | StreamLauncher = (
            StreamLauncher(spec, properties.multiprocessor_count, properties.l2_cache_size)
            if spec.kernel.streams
            else PlainLauncher(spec, self.device_values.pointer)
        )
        self._map_launcher: PlainLauncher | None = None
        self.room = self._launcher.room
        self.preload(model, box_dtype, index_dtype, maps)

    def preload(self, model: ArrayView, box_dtype: str, index_dtype: str, maps: bool = False) -> None:
        """Load the kernel for frames like `model`, and boxes or maps of a dtype."""
        self._launcher_for(maps).preload(model, box_dtype, index_dtype)

    def _launcher_for(self, maps: bool) -> PlainLauncher | StreamLauncher:
        if not maps:
            return self._launcher
        if self._map_launcher is None:
            self._map_launcher = PlainLauncher(self.spec, self.device_values.pointer, maps=True)
        return self._map_launcher

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

    def upload_boxes(self, boxes: np.ndarray, stream: Any) -> int:
        """Queue the copy of checked float32 boxes, of at most 64 KiB, to the device; returns their address there.

        The driver has read the boxes when this returns: of page-locked ones, which it would read later, a copy.
        """
        pageable = np.array(boxes)
        self._copy(self.device_boxes.pointer, pageable.__array_interface__["data"][0], boxes.nbytes, stream)
        return self.device_boxes.pointer

    def upload_index(self, index: np.ndarray, stream: Any) -> int:
        """Queue the copy of a checked int32 frame index to the device; returns its address there."""
        pageable = np.array(index)
        self._copy(self.device_index.pointer, pageable.ctypes.data, index.nbytes, stream)
        return self.device_index.pointer

    def run_uploading(
        self,
        frame: ArrayView,
        boxes: np.ndarray | ArrayView | Room,
        items: Items,
        given_items: HostItems,
        out: int,
        transform: int,
        stream: Any,
    ) -> None:
        """Queue checked float32 boxes or maps, what items have of their own, or both from the host, and their kernel.

        Boxes in the `room` that was asked for them need no copy. The copy of a part of others waits, in the order of
        the stream, for the kernel that reads the part before it.

        Raises
        ------
        InputError
            While a graph is captured: it would copy from where the boxes were at the time. For a count on the GPU of
            more items than travel at a time: a launch knows nothing of the items before its own.
        """
        self.refuse_captured(stream)
        inside = isinstance(boxes, Room)
        given = boxes.boxes if isinstance(boxes, Room) else boxes
        box_dtype, count = INSIDE if inside else dtype_name(given.dtype), given.shape[0]
        maps = len(given.shape) == 3
        box_bytes = (6 if maps else 4) * given.dtype.itemsize
        room = self._map_capacity if maps else self.capacity
        if given_items.mean is not None:
            room = min(room, UPLOAD_BYTES // (4 * self.spec.frame.channels))
        if items.counted is not None and count > room:
            raise InputError(
                f"a count on the GPU, beside what items have on the host, is for up to {room} boxes, found {count}; "
                "bring frame_index, flip, mean and std to the GPU, too, or split the batch"
            )
        there, index_address, index_dtype = pointers_of(items), 0, "int32"
        if items.frame_index is not None:
            index_address, index_dtype = items.frame_index.pointer, dtype_name(items.frame_index.dtype)
        for first in range(0, count, room):
            last = min(first + room, count)
            index = index_address and index_address + first * np.dtype(index_dtype).itemsize
            if given_items.frame_index is not None:
                index = self.upload_index(given_items.frame_index[first:last], stream)
                index_dtype = "int32"
            own = there.behind(first, self.spec.frame.channels)
            if given_items.flip is not None:
                own = own._replace(
                    flips=self._upload("flip", given_items.flip[first:last], stream), flip_step=1
                )
            if given_items.mean is not None:
                own = own._replace(means=self._upload("mean", given_items.mean[first:last], stream))
            if given_items.std is not None:
                own = own._replace(stds=self._upload("std", given_items.std[first:last], stream))
            if inside:
                pointer = 0
            elif isinstance(given, np.ndarray):
                pointer = self.upload_boxes(given[first:last], stream)
            else:
                pointer = given.pointer + first * box_bytes
            self.launch(
                frame, pointer, box_dtype, last - first, out + first * self._item_bytes, stream, frame_index=index,
                index_dtype=index_dtype, transform=transform and transform + first * TRANSFORM_BYTES,
                items=own if any(own) else NO_ITEMS, maps=maps,
            )  # fmt: skip

    def refuse_captured(self, stream: Any) -> None:
        """Raise `InputError` while a graph is captured: it would have the boxes that were on the host then."""
        if self._is_capturing(stream):
            raise InputError(
                "boxes, and what each has of its own, must be on the GPU while a graph is captured"
            )

    def ready(
        self, frame: ArrayView, box_dtype: str, count: int, out: int, items: Items = NONE
    ) -> Ready | None:
        """The one launch that does a run, for `fire`; None if it takes another kernel, or several.

        What items have of their own must be on the GPU.
        """
        launcher = self._launcher
        if isinstance(launcher, PlainLauncher) or count > MAX_ITEMS:
            return None
        return launcher.ready(frame, box_dtype, count, out, index_of(items)[1], pointers_of(items))

    def fire(
        self, ready: Ready, frame: ArrayView, boxes: int, out: int, stream: Any, items: Items = NONE
    ) -> None:
        """Queue that launch for arrays at these addresses."""
        self._launcher.fire(  # type: ignore[union-attr]
            ready, frame, boxes, out, stream, index_of(items)[0], 0, pointers_of(items)
        )

    def _upload(self, name: str, values: np.ndarray, stream: Any) -> int:
        """Queue the copy of what items have of their own to the device; its memory there is made at the first run."""
        from octopus.backends.cuda import memory

        there = self._own.get(name)
        if there is None:
            room = (self.capacity * values.nbytes // len(values),)
            there = self._own[name] = memory.DeviceArray(room, np.uint8, stream=stream)
        there.release_on(stream)
        pageable = np.array(values)
        self._copy(there.pointer, pageable.ctypes.data, pageable.nbytes, stream)
        return there.pointer

    def launch(
        self,
        frame: ArrayView,
        boxes: int,
        box_dtype: str,
        count: int,
        out: int,
        stream: Any,
        *,
        frame_index: int = 0,
        index_dtype: str = "int32",
        transform: int = 0,
        items: ItemPointers = NO_ITEMS,
        maps: bool = False,
    ) -> None:
        """Queue the kernel, with `maps` that for affine maps; all arrays are in device memory."""
        if self.spec.kernel.many_channels and self._is_capturing(stream):
            _captured.append(self.device_values)
        submit_part = self._launcher_for(maps).launch
        if count <= MAX_ITEMS:
            submit_part(
                frame, boxes, box_dtype, count, out, stream, frame_index, index_dtype, transform, items
            )
            return
        box_bytes = (6 if maps else 4) * np.dtype(box_dtype).itemsize
        index_bytes = np.dtype(index_dtype).itemsize
        for first in range(0, count, MAX_ITEMS):
            submit_part(
                frame, boxes + first * box_bytes, box_dtype, min(MAX_ITEMS, count - first),
                out + first * self._item_bytes, stream, frame_index + first * index_bytes, index_dtype,
                transform + first * TRANSFORM_BYTES,
                items.behind(first, self.spec.frame.channels),
            )  # fmt: skip
