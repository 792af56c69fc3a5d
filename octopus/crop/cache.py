"""Plans that `crop_resize` made for a frame on the GPU, kept for its next call with the same arguments.

Making a plan checks the arguments, finds the kernel and lays out its launch, which takes longer than to crop a small
batch. A plan is kept per thread and per stream, so that no call ever waits for another one's.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace
from typing import Any

import numpy as np

from octopus.arrays.checks import INT32_MAX
from octopus.arrays.views import ArrayView
from octopus.crop.check import check_box_shape, check_frame_index, check_gpu_boxes, kernel_dtype
from octopus.crop.plan import CropPlan
from octopus.kernels.cuda.tiles import MAX_ITEMS

MAX_PLANS = 16  # per thread; each holds at most 64 KiB of device memory

_thread = threading.local()
_FIXED = (int, float, bool, str, type(None), type)
_CHANGING = object()


def plan_for(
    frame: ArrayView, boxes: ArrayView, index: ArrayView | None, options: dict[str, Any], queue: Any
) -> CropPlan:
    """A plan without memory for results, for any number of boxes, used on `queue` alone.

    Parameters
    ----------
    frame : ArrayView
        On the GPU.
    boxes, index : ArrayView
        Decide the dtypes of the kernel that is loaded first.
    options : dict
        Keyword arguments of `CropPlan`.
    queue : cuda.core.Stream

    Raises
    ------
    InputError
        As `CropPlan`, and for boxes or an index that no kernel reads.
    """
    key = _key(frame, options, queue)
    if key is None:
        return _make(frame, boxes, index, options, queue)
    known: OrderedDict[tuple, CropPlan] = _thread.__dict__.setdefault("plans", OrderedDict())
    plan = known.get(key)
    if plan is None:
        plan = known[key] = _make(frame, boxes, index, options, queue)
        if len(known) > MAX_PLANS:
            known.popitem(last=False)
    else:
        known.move_to_end(key)
    return plan


class _BarePlan(CropPlan):
    """A plan that holds a buffer for boxes from the host and nothing else."""

    def _reserve(self, allocate: bool, stream: Any) -> None:
        self._out = self._transform = None

    def _check_free(self, allocate: bool) -> None:
        """Nothing is allocated that could not fit."""

    @property
    def upload_boxes(self) -> int:
        """As many as travel at a time."""
        return MAX_ITEMS


def _make(
    frame: ArrayView, boxes: ArrayView, index: ArrayView | None, options: dict[str, Any], queue: Any
) -> CropPlan:
    check_box_shape(boxes.shape, boxes.dtype)
    if boxes.device == "cuda":
        check_gpu_boxes(boxes)
    check_frame_index(index, frame, boxes.shape[0], boxes.device)
    model = replace(frame, owner=None)  # the plan outlives the frame
    plan = _BarePlan(
        model, boxes.shape[0], box_dtype=kernel_dtype(boxes, "float32"), index_dtype=kernel_dtype(index, "int32"),
        stream=queue, **options,
    )  # fmt: skip
    plan.max_boxes = INT32_MAX // plan.spec.height
    return plan


def _key(frame: ArrayView, options: dict[str, Any], queue: Any) -> tuple | None:
    """What decides the plan; None if an argument may change without our seeing it, such as a tensor of means."""
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
