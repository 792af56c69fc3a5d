"""Kernels that `crop_resize` made, kept for its next call with the same arguments.

Checking the options, finding the kernel and laying out its launch takes longer than to crop a small batch. A kernel is
kept per thread and per stream, so that no call ever waits for another one's.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from octopus.arrays.checks import INT32_MAX
from octopus.arrays.reading import UnreadableError, reading
from octopus.arrays.views import ArrayView
from octopus.backends.cuda.device import is_capturing
from octopus.crop.check import are_maps, check_box_shape, check_frame_index, check_gpu_boxes, kernel_dtype
from octopus.crop.items import Items
from octopus.crop.kernel import CropKernel
from octopus.crop.launch import INSIDE
from octopus.crop.options import CropOptions
from octopus.errors import InputError
from octopus.kernels.cuda.tiles import MAX_ITEMS, MOST_BOXES_INSIDE

MAX_KERNELS = 16  # per thread; each holds at most 64 KiB of device memory

_thread = threading.local()


def kernel_for(
    frame: ArrayView,
    boxes: ArrayView,
    items: Items,
    options: dict[str, Any],
    device: str,
    queue: Any = None,
) -> CropKernel:
    """A kernel for any number of boxes, used in this thread, and on a GPU on `queue` alone.

    Parameters
    ----------
    frame : ArrayView
        On the side that works.
    boxes : ArrayView
    items : Items
        These decide the dtypes of the kernel that is loaded first.
    options : dict
        Keyword arguments of `CropOptions`, not yet checked.
    device : {"cpu", "cuda"}
    queue : cuda.core.Stream
        Of the GPU.

    Raises
    ------
    InputError
        As `CropKernel`, and for boxes or an index that no kernel reads.
    """
    known: OrderedDict[tuple[Any, ...], CropKernel] = _thread.__dict__.setdefault("kernels", OrderedDict())
    try:
        parts = reading(options.items())
    except UnreadableError:
        return _make(frame, boxes, items, options, device, queue)
    key = (
        type(frame),
        frame.family,
        frame.dtype,
        frame.shape[-1:],
        len(frame.shape),
        frame.ordinal,
        device,
        queue,
        *parts,
    )
    kernel = known.get(key)
    if kernel is None:
        kernel = known[key] = _make(frame, boxes, items, options, device, queue)
        if len(known) > MAX_KERNELS:
            known.popitem(last=False)
    else:
        known.move_to_end(key)
    return kernel


def _make(
    frame: ArrayView,
    boxes: ArrayView,
    items: Items,
    options: dict[str, Any],
    device: str,
    queue: Any,
) -> CropKernel:
    if device == "cuda" and is_capturing(queue):
        raise InputError(
            "the first call of a kind on a stream reserves memory, which a graph can't capture; make it once before, "
            "or make a CropPlan"
        )
    check_box_shape(boxes.shape, boxes.dtype)
    if boxes.device == "cuda":
        check_gpu_boxes(boxes)
    check_frame_index(items.frame_index, frame, boxes.shape[0], boxes.device)
    maps = are_maps(boxes.shape)
    kernel = CropKernel(frame, CropOptions(**options), boxes.shape[0], device, maps)
    if device == "cuda":
        from_host = INSIDE if not maps and boxes.shape[0] <= MOST_BOXES_INSIDE else "float32"
        dtypes = kernel_dtype(boxes, from_host), kernel_dtype(items.frame_index, "int32")
        kernel.load(MAX_ITEMS, *dtypes, queue)
    kernel.max_boxes = INT32_MAX // kernel.spec.options.size[0]
    return kernel
