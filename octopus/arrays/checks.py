"""Checks that calls of all kinds share, boxes as detectors hold them, and values of each channel."""

from __future__ import annotations

import os
import sys
import warnings
import weakref
from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from octopus.arrays.views import ArrayView, c_strides, dtype_name, family, host_numbers, view, view_of
from octopus.errors import InputError, shown


class TorchDevice(Protocol):
    """A `torch.device`, which need not be installed."""

    @property
    def type(self) -> str: ...

    @property
    def index(self) -> int | None: ...


Device: TypeAlias = Literal["auto", "cpu", "cuda"] | str | TorchDevice  # str: such as "cuda:0"

INT32_MAX = 2**31 - 1
MAX_SIDE = 2**24  # a float32 counts pixels exactly up to here


_hinted: set[str] = set()


def check_choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name}={shown(value)} is unknown; use one of {', '.join(allowed)}")


def check_known(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Keyword arguments must be those of a function; raises `TypeError`, as Python does."""
    for name in given:
        if name not in (names := tuple(known)):
            near = get_close_matches(name, names, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")


def checked_size(size: Any) -> tuple[int, int]:
    """Height and width of a result: a pair of positive integers, or one for a square."""
    sides = size.tolist() if isinstance(size, np.ndarray) else size
    if is_count(sides):
        sides = (sides, sides)
    good = isinstance(sides, (tuple, list)) and len(sides) == 2
    if not good or not all(is_count(side) and side > 0 for side in sides):
        raise InputError(f"size must be (height, width) in positive integers, or one for a square, found {shown(size)}")
    return int(sides[0]), int(sides[1])


def is_count(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def switch(name: str, value: Any) -> bool:
    """True or False, of Python or NumPy."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} must be True or False, found {shown(value)}")
    return bool(value)


def channels_first(shape: tuple[int, ...]) -> bool:
    """Whether the channels of (..., C, H, W) come first, since the last axis is too long for them."""
    return shape[-1] > MAX_CHANNELS and 0 < shape[-3] <= MOST_FIRST


def check_return_transform(letterbox: bool, return_transform: bool) -> None:
    if return_transform and not letterbox:
        raise InputError("return_transform=True is for letterbox=True, whose items it leads back; leave it out")


def dtype_text(dtype: Any, dtypes: tuple[str, ...]) -> Any:
    """The name of a dtype of NumPy or torch, if it is one; to be checked. `dtypes` are known by their names."""
    text = str(dtype).removeprefix("torch.")
    if dtype is None or text in dtypes:  # NumPy takes None for float64
        return None if dtype is None else text
    try:
        return str(np.dtype(dtype).name)
    except TypeError:
        return text


def of_dtype(array: ArrayView, dtypes: tuple[str, ...]) -> bool:
    """Whether the elements are of one of a few dtypes, in the machine's byte order."""
    return dtype_name(array.dtype) in dtypes and array.dtype.isnative


def check_readable(array: ArrayView, name: str, dtypes: tuple[str, ...]) -> None:
    if not array.contiguous or not of_dtype(array, dtypes):
        raise InputError(
            f"{name} on the GPU must be contiguous and one of {', '.join(dtypes)}, "
            f"found {array.dtype} with strides {array.strides} bytes"
        )


def check_dense(array: Any, name: str) -> None:
    if family(array) == "torch" and str(getattr(array, "layout", "torch.strided")) != "torch.strided":
        raise InputError(f"{name} is a sparse tensor ({array.layout}); make it dense first: .to_dense()")


def check_tensor(array: Any, name: str) -> None:
    check_dense(array, name)
    if family(array) == "torch" and getattr(array, "requires_grad", False):
        raise InputError(f"no gradient passes through Octopus, but {name} requires one; pass it with .detach()")


def check_stream(stream: Any, device: str) -> None:
    """A stream belongs to a GPU; a call that works on the CPU would ignore it."""
    if stream is not None and device == "cpu":
        raise InputError("stream is of a GPU but this call works on the CPU; leave stream out")


def check_apart(out: ArrayView, name_of_out: str = "out", /, **others: ArrayView | None) -> None:
    first, last = out.extent
    for name, array in others.items():
        if array is None or array.device != out.device:
            continue
        for plane in array.planes:
            begin, end = plane.extent
            if begin < last and first < end:
                raise InputError(
                    f"{name_of_out} lies in the memory of {name}, which is read while that is written; pass other "
                    "memory"
                )


def hint_once(name: str, message: str) -> None:
    """Warn of what is legal but seldom meant, once per process, at the line outside the library that caused it."""
    if name in _hinted:
        return
    _hinted.add(name)
    depth, caller = 1, sys._getframe()
    while caller is not None and caller.f_globals.get("__name__", "").partition(".")[0] in ("octopus", "torch"):
        depth, caller = depth + 1, caller.f_back  # type: ignore[assignment]
    warnings.warn(message, UserWarning, stacklevel=depth)


class OneAtATime:
    """`with` this, one thread uses what belongs to a plan; a second one is refused, since both would write there."""

    def __init__(self) -> None:
        self.free = [True]  # empty while a thread is inside: to take the element and to put it back are atomic
        _all.add(self)

    def __reduce__(self) -> tuple[type[OneAtATime], tuple[()]]:
        return OneAtATime, ()

    def __enter__(self) -> None:
        try:
            self.free.pop()
        except IndexError:
            raise at_work() from None

    def __exit__(self, *error: object) -> None:
        self.free.append(True)


def at_work() -> InputError:
    return InputError(
        "this plan is at work in another thread, and both would write to one memory; make a plan per thread"
    )


_all: weakref.WeakSet[OneAtATime] = weakref.WeakSet()


def _free_all() -> None:
    """In a child process: the threads that were at work stayed behind."""
    for alone in _all:
        alone.free[:] = [True]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)


TOPS = {"uint8": 255, "uint16": 65535, "nv12": 255, "p010": 255}  # largest values of pixels, where there are any
GREY = 114.0  # of padding, in units of 255: what detectors are trained with
LEAST_LEVELS = 32  # of a uint8 result, between those of the smallest and the largest pixel
MAX_CHANNELS, MOST_FIRST = 64, 16  # of a frame, and where channels come first
ORDERS = ("RGB", "BGR", "RGBA", "BGRA")  # of channels as they are stored


def check_order(order: str, number: int, what: str) -> int:
    """Channels of the result for an order and the `number` that are stored of `what`, such as "images"."""
    if order == "RGB":
        return number
    if number != len(order):
        raise InputError(f'channels="{order}" is for {what} of {len(order)} channels, found {number}')
    return 3


def per_channel(name: str, value: Any, default: float, channels: int) -> np.ndarray:
    """One value per channel, (C,), float64; an array may have it along any one axis, such as (C, 1, 1)."""
    values = np.asarray(default) if value is None else host_numbers(value, name)
    along_one_axis = values.size in (1, channels) and values.size == max(values.shape, default=1)
    if values.dtype.kind not in "iuf" or not along_one_axis or not np.isfinite(values).all():
        alpha = '; channels="RGBA" or "BGRA" leaves the fourth out' if (values.size, channels) == (3, 4) else ""
        raise InputError(
            f"{name} must be one finite number or {channels} (one per channel), found {shown(value)}{alpha}"
        )
    return np.broadcast_to(values.ravel().astype(np.float64), channels)


def normalisation(
    mean: Any, std: Any, scale: Any, channels: int, dtype: Any = np.float32
) -> tuple[np.ndarray, np.ndarray]:
    """Gain and bias of each channel, (C,): `(value / scale - mean) / std` is `value * gain + bias`."""
    mean = per_channel("mean", mean, 0.0, channels)
    std = per_channel("std", std, 1.0, channels)
    scale = per_channel("scale", scale, 1.0, channels)
    for name, values in (("std", std), ("scale", scale)):
        if not (values > 0).all():
            raise InputError(f"{name} must be positive, found {shown(values.tolist())}")
    with np.errstate(all="ignore"):
        gain, bias = (1.0 / (scale * std)).astype(dtype), (-mean / std).astype(dtype)
    if not (np.isfinite(gain).all() and np.isfinite(bias).all()):
        told = (shown(values.tolist()) for values in (mean, std, scale))
        raise InputError("mean {}, std {} and scale {} leave the range of float32".format(*told))
    return gain, bias


def padding(value: Any, gain: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """The padding of each channel, (C,), float32, normalised as a pixel of that value would be."""
    values = per_channel("pad_value", value, 0.0, len(gain))
    with np.errstate(over="ignore"):
        pad: np.ndarray = values.astype(np.float32) * gain + bias
    if not np.isfinite(pad).all():
        raise InputError(f"pad_value {shown(values.tolist())} leaves the range of float32 once normalised")
    return pad


def usual_padding(what: str, source: str, scale: Any, channels: int) -> Any:
    """The grey that detectors are trained with, in units of the pixels, which the caller calls `what`."""
    if TOPS.get(source) == 255:
        return GREY
    if scale is None:
        raise InputError(
            f"the {what} is {source}, of which no range is known, so that padding has no default: give pad_value in "
            f"units of its values, or scale=, of which {GREY:.0f}/255 are taken"
        )
    return per_channel("scale", scale, 1.0, channels) * (GREY / 255)


def units(
    what: str, source: str, dtype: str, mean: Any, std: Any, scale: Any, channels: int
) -> tuple[np.ndarray, np.ndarray]:
    """`normalisation`, after a look for units that are hardly ever meant: a warning, or for pixels of integers whose
    scale is below 1 an error. `source` and `dtype` are dtypes of the pixels, which the caller calls `what`, and of the
    result."""
    gain, bias = normalisation(mean, std, scale, channels)
    means, stds, unit = (per_channel("", v, d, channels) for v, d in ((mean, 0.0), (std, 1.0), (scale, 1.0)))
    top, both = TOPS.get(source), np.concatenate([means, stds])
    given = scale is None and mean is not None and std is not None  # 0 and 1, which change nothing, are of any unit
    of_one = given and (both >= 0).all() and (both <= 1).all() and bool((both % 1).any())
    if (unit < 1).any():
        text = f"scale={shown(scale)} is below 1, but it is the value that counts as 1"
        if top is not None:
            raise InputError(
                f"{text}: scale={top} makes 0 to 1 of {source}, where others say 1/{top}; use std= to enlarge"
            )
        hint_once("small-scale", f"{text}: where others multiply by 1/255, say scale=255")
    elif top is None:
        top = unit.max() if scale is not None else 1 if of_one else None
    elif (unit > 2 * top).any():
        hint_once(
            "large-scale",
            f"scale={shown(scale)} is far beyond the largest value of the {source} {what}, {top}, so that all values "
            f"are near 0. Give scale={top}",
        )
    elif source == "uint16" and dtype != "uint8" and (unit == 255).all():
        hint_once(
            "scale-255",
            f"scale=255 goes with uint8, but the {what} is uint16, with values up to {top}. Give scale={top}, or the "
            "largest value that its sensor makes",
        )
    elif scale is not None and (np.maximum(means, stds) * unit > 2 * top).any():
        hint_once(
            "scaled",
            f"with scale= mean and std are in units of it, but they are far beyond the {source} {what}'s "
            "largest value in that unit. Leave scale out, or divide both by it",
        )
    if source in TOPS and of_one:
        hint_once(
            "units",
            f"mean and std look as if they were in units of 1, but the {what} is {source}, and they are in units "
            f"of its values, 0 to {top}. Give scale={top} to use units of 1, or multiply both by {top}",
        )
    if dtype == "uint8" and top is not None and (gain * top < LEAST_LEVELS).all() and not (gain == 1).all():
        hint_once(
            "levels",
            f"a result of uint8 has whole numbers from 0 to 255, but these values lie between {bias.min() + 0:.3g} and "
            f"{(gain * top + bias).max():.3g}. Ask for another dtype, or leave out mean, std and scale",
        )
    if source == "uint16" and dtype in ("uint8", "float16") and std is None and scale is None:
        fate = "saturates at 255" if dtype == "uint8" else "overflows to infinity above 65504"
        hint_once(
            f"range-{dtype}",
            f"the {what} is uint16, with values up to {top}, and a result of {dtype} {fate}. Give scale= or "
            "std= to bring the values into its range",
        )
    return gain, bias


def boxes_view(boxes: Any, name: str = "boxes") -> ArrayView:
    """Boxes of any form as an array; what is empty holds no boxes. Torchvision's `BoundingBoxes` are converted by their
    format, on their side; all others are x1, y1, x2, y2: arrays (N, 4), lists, or an object that has such as `xyxy`."""
    if not isinstance(boxes, (np.ndarray, list, tuple, ArrayView)):
        if family(boxes) != "torch":
            boxes = getattr(boxes, "xyxy", boxes)
        elif type(boxes) is not sys.modules["torch"].Tensor and (layout := box_format(boxes)):
            return _converted(boxes, layout, name)
    found = view_of(boxes, name)
    if found.shape != (0,):
        return found
    if found.device == "cpu":
        return view(np.empty((0, 4), found.dtype), "boxes")
    return replace(found, shape=(0, 4), strides=c_strides((0, 4), found.dtype))


def box_format(array: Any) -> str:
    """The format of torchvision's `BoundingBoxes`, such as XYWH; "" for anything else."""
    layout = getattr(array, "format", None)
    return "" if layout is None or family(array) != "torch" else str(getattr(layout, "value", layout))


def _converted(boxes: Any, layout: str, name: str) -> ArrayView:
    """Torchvision's `BoundingBoxes` as x1, y1, x2, y2, known to be written on torch's current stream."""
    given, torch = view(boxes, name), sys.modules["torch"]
    if layout == "XYXY":
        return given
    tensor = boxes.as_subclass(torch.Tensor)
    first, sides = tensor[..., :2], tensor[..., 2:]
    if layout == "XYWH":
        corners = [first, first + sides]
    elif layout == "CXCYWH":
        corners = [first - sides / 2, first + sides / 2]
    else:
        raise InputError(
            f"{name} are BoundingBoxes of the format {layout}; only upright ones can be cut out: XYXY, XYWH, CXCYWH"
        )
    made = view(torch.cat(corners, -1), name)
    if made.device == "cpu":
        return made
    from octopus.arrays import streams

    return replace(made, after=streams.handle_of(streams.current_stream(made)))
