"""What a call on images of different size comes to, worked out once before any work."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from octopus.arrays.checks import (
    INT32_MAX,
    check_choice,
    checked_size,
    dtype_text,
    hint_at_units,
    normalisation,
    padding,
    switch,
)
from octopus.arrays.results import itemsize
from octopus.errors import InputError, shown
from octopus.kernels.images import FILTERS

KINDS = ("batch", "each", "rows")
LAYOUTS, ORDERS = ("NCHW", "NHWC"), ("CTPP", "PPC")
FIXED = ("pillow", "torch")  # in fixed point
ROUNDINGS = ("none", "uint8", *FIXED)
DTYPES = ("float32", "float16", "bfloat16", "uint8")
MAX_PATCH = 4096  # pixels of a patch's side, and of a merged block's


@dataclass(frozen=True, eq=False)
class ImageSpec:
    """Everything about a call but the images and the sizes that they become.

    Attributes
    ----------
    source : {"uint8", "uint16", "float32"}
        Dtype of the images.
    channels : {1, 3, 4}
    filter : {"nearest", "bilinear", "bicubic", "lanczos"}
    antialias : bool
    rounding : {"none", "uint8", "pillow", "torch"}
        See `octopus.images.resize`; other than "none" for images of uint8 alone.
    gain, bias : ndarray, (C,), float32
        The normalisation as `value * gain + bias`.
    pad : ndarray, (C,), float32
        What an item has beyond the resized image, normalised.
    dtype : {"float32", "float16", "bfloat16", "uint8"}
        Of the result.
    kind : {"batch", "each", "rows"}
        Items of one size; items of their own sizes, one after the other; patch rows.
    layout : {"NCHW", "NHWC"}, or for rows {"CTPP", "PPC"}
        Order within an item, or within a row.
    item : (int, int)
        Height and width of a batch's items in pixels; (0, 0) for other kinds.
    patch, merge, temporal : int
        Of rows: pixels of a patch's side, patches of a merged block's side, copies of each patch in its row.
    """

    source: str
    channels: int
    filter: str
    antialias: bool
    rounding: str
    gain: np.ndarray
    bias: np.ndarray
    pad: np.ndarray
    dtype: str
    kind: str
    layout: str
    item: tuple[int, int] = (0, 0)
    patch: int = 1
    merge: int = 1
    temporal: int = 1

    @cached_property
    def values(self) -> int:
        """Elements of an item of a batch, of a pixel of items of their own sizes, or of a row."""
        if self.kind == "batch":
            return self.channels * self.item[0] * self.item[1]
        return self.channels * self.temporal * self.patch * self.patch

    @cached_property
    def value_bytes(self) -> int:
        """The same in bytes of the result."""
        return self.values * itemsize(self.dtype)

    @property
    def factor(self) -> int:
        """What the sizes of rows must be multiples of, in pixels."""
        return self.patch * self.merge

    @property
    def name(self) -> str:
        """As part of a compiled kernel's name: all that is not a number of the launch."""
        sharp = "" if self.antialias or self.filter == "nearest" else "-sharp"
        kind = f"{self.source}x{self.channels}-{self.filter}{sharp}-{self.rounding}-{self.dtype}-{self.kind}"
        return f"{kind}-{self.layout.lower()}"


def make_spec(
    source: str, channels: int, kind: str, *, filter: Any, antialias: Any, rounding: Any, mean: Any, std: Any,
    scale: Any, dtype: Any, layout: Any, pad_value: Any = None, size: Any = None, patch: Any = 1, merge: Any = 1,
    temporal: Any = 1,
) -> ImageSpec:  # fmt: skip
    """Check the options of a call for images of a dtype and a number of channels.

    Raises
    ------
    InputError
        Says which option is wrong, what it is, and what it may be.
    """
    dtype = dtype_text(dtype, DTYPES)
    check_choice("dtype", dtype, DTYPES)
    check_choice("order" if kind == "rows" else "layout", layout, ORDERS if kind == "rows" else LAYOUTS)
    antialias = switch("antialias", antialias)
    _check_filter(filter, antialias, rounding, source)
    item = (0, 0) if size is None else checked_size(size)
    if math.prod(item) * channels > INT32_MAX:
        raise InputError(f"one item of {item[0]}x{item[1]}x{channels} has more than 2**31 - 1 values")
    sides = {"patch": patch, "merge": merge, "temporal": temporal}
    _check_rows(layout, **sides)
    hint_at_units("image", source, dtype, mean, std, scale, channels)
    gain, bias = normalisation(mean, std, scale, channels)
    pad = padding(pad_value, gain, bias)
    return ImageSpec(
        source, channels, filter, antialias, rounding, gain, bias, pad, dtype, kind, layout, item,
        **{name: int(side) for name, side in sides.items()},
    )  # fmt: skip


def _check_filter(filter: Any, antialias: bool, rounding: Any, source: str) -> None:
    check_choice("filter", filter, tuple(FILTERS))
    check_choice("rounding", rounding, ROUNDINGS)
    if rounding != "none" and source != "uint8":
        raise InputError(
            f'rounding="{rounding}" makes uint8 of what is resized, but the images are {source}; ask for '
            'rounding="none", or convert them to uint8'
        )
    if rounding in FIXED and not antialias and filter != "nearest":
        raise InputError(
            f'rounding="{rounding}" is of filters that antialias; ask for antialias=True, or rounding="uint8"'
        )


def _check_rows(layout: str, **sides: Any) -> None:
    for name, side in sides.items():
        whole = isinstance(side, (int, np.integer)) and not isinstance(side, bool)
        if not whole or not 1 <= side <= MAX_PATCH:
            raise InputError(f"{name} must be an integer from 1 to {MAX_PATCH}, found {shown(side)}")
    if layout == "PPC" and sides["temporal"] != 1:
        raise InputError(f'order="PPC" has one copy of a patch in its row, found temporal={sides["temporal"]}')
