"""Kernels that `crop_resize` loaded for a frame on the GPU, kept for its next call with the same arguments.

Checking the options, finding the kernel and laying out its launch takes longer than to crop a small batch. A kernel is
kept per thread and per stream, so that no call ever waits for another one's.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import numpy as np

from octopus.arrays.checks import INT32_MAX
from octopus.arrays.views import ArrayView
from octopus.crop.check import check_box_shape, check_frame_index, check_gpu_boxes, kernel_dtype
from octopus.crop.kernel import CropKernel
from octopus.crop.options import CropOptions
from octopus.kernels.cuda.tiles import MAX_ITEMS

MAX_KERNELS = 16  # per thread; each holds at most 64 KiB of device memory

_thread = threading.local()
_FIXED = (int, float, bool, str, type(None), type)
_CHANGING = object()


def kernel_for(
    frame: ArrayView, boxes: ArrayView, index: ArrayView | None, options: dict[str, Any], queue: Any
) -> CropKernel:
    """A kernel for any number of boxes, used on `queue` alone.

    Parameters
    ----------
    frame : ArrayView
        On the GPU.
    boxes, index : ArrayView
        Decide the dtypes of the kernel that is loaded first.
    options : dict
        Keyword arguments of `CropOptions`, not yet checked.
    queue : cuda.core.Stream

    Raises
    ------
    InputError
        As `CropKernel`, and for boxes or an index that no kernel reads.
    """
    key = _key(frame, options, queue)
    if key is None:
        return _make(frame, boxes, index, options, queue)
    known: OrderedDict[tuple[Any, ...], CropKernel] = _thread.__dict__.setdefault("kernels", OrderedDict())
    kernel = known.get(key)
    if kernel is None:
        kernel = known[key] = _make(frame, boxes, index, options, queue)
        if len(known) > MAX_KERNELS:
            known.popitem(last=False)
    else:
        known.move_to_end(key)
    return kernel


def _make(
    frame: ArrayView, boxes: ArrayView, index: ArrayView | None, options: dict[str, Any], queue: Any
) -> CropKernel:
    check_box_shape(boxes.shape, boxes.dtype)
    if boxes.device == "cuda":
        check_gpu_boxes(boxes)
    check_frame_index(index, frame, boxes.shape[0], boxes.device)
    kernel = CropKernel(frame, CropOptions(**options), boxes.shape[0], "cuda")
    kernel.load(MAX_ITEMS, kernel_dtype(boxes, "float32"), kernel_dtype(index, "int32"), queue)
    kernel.max_boxes = INT32_MAX // kernel.spec.options.size[0]
    return kernel


def _key(frame: ArrayView, options: dict[str, Any], queue: Any) -> tuple[Any, ...] | None:
    """What decides the kernel; None if an argument may change without our seeing it, such as a tensor of means."""
    values = [_fixed(value) for value in options.values()]
    if _CHANGING in values:
        return None
    return frame.family, frame.dtype, frame.shape[-1:], len(frame.shape), frame.ordinal, queue, *values


def _fixed(value: Any) -> Any:
    """An argument as something that stays what it is."""
    kind = type(value)
    if kind in _FIXED:
        return value
    if kind is np.ndarray:
        return value.shape, tuple(value.ravel().tolist())
    if kind in (tuple, list) and all(type(part) in _FIXED for part in value):
        return kind, *value
    named = isinstance(value, np.dtype) or (kind.__module__, kind.__name__) == ("torch", "dtype")
    return value if named else _CHANGING
