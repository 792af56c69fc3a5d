"""What a call on images of different size comes to, worked out once before any work."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, TypedDict, get_args

import numpy as np

from octopus.arrays import checks
from octopus.errors import InputError, shown
from octopus.ragged.check import whole

Filter: TypeAlias = Literal["nearest", "bilinear", "bicubic", "lanczos"]
Rounding: TypeAlias = Literal["none", "uint8", "pillow", "pillow12", "torch"]
Layout: TypeAlias = Literal["NCHW", "NHWC"]
Channels: TypeAlias = Literal["RGB", "BGR", "RGBA", "BGRA"]
Source: TypeAlias = Literal["HWC", "CHW"]
Order: TypeAlias = Literal["CTPP", "PPC"]
DtypeName: TypeAlias = Literal["float32", "float16", "bfloat16", "uint8", "int8"]

CHOICES = {"filter": Filter, "rounding": Rounding, "layout": Layout, "order": Order, "dtype": DtypeName}


class Options(TypedDict, total=False):
    """Keyword arguments that all operations have; their defaults are those of `OPTIONS`."""

    filter: Filter
    antialias: bool
    rounding: Rounding | None
    mean: Any
    std: Any
    scale: Any
    dtype: Any
    channels: Channels
    source: Source | None


class EachOptions(Options, total=False):
    layout: Layout


class ResizeOptions(EachOptions, total=False):
    letterbox: bool
    return_transform: bool
    pad_value: Any
    crop: Literal["center"] | None
    shortest: int | None


class RowOptions(Options, total=False):
    patch: int
    merge: int | None
    temporal: int | None
    order: Order
    max_rows: int | None
    row_multiple: int


# By operation: the kind of its spec, and its arguments but images, sizes and where it works, with their defaults.
KINDS = {"resize": "batch", "resize_each": "each", "patch_rows": "rows"}
_SHARED: dict[str, Any] = {
    "filter": "bilinear", "antialias": True, "rounding": "none", "mean": None, "std": None, "scale": None,
    "dtype": "float32", "channels": "RGB", "source": None,
}  # fmt: skip
OPTIONS: dict[str, dict[str, Any]] = {
    "resize": {
        **_SHARED, "size": None, "layout": "NCHW", "letterbox": False, "return_transform": False, "pad_value": None,
        "crop": None, "shortest": None,
    },
    "resize_each": {**_SHARED, "layout": "NCHW"},
    "patch_rows": {
        **_SHARED, "filter": "bicubic", "rounding": None, "patch": 14, "merge": None, "temporal": None,
        "order": "CTPP", "max_rows": None, "row_multiple": 1,
    },
}  # fmt: skip

FIXED = ("pillow", "pillow12", "torch")  # in fixed point
MAX_PATCH = 4096  # pixels of a patch's side, and of a merged block's


@dataclass(frozen=True, eq=False)
class ImageSpec:
    """Everything about a call but the images and the sizes that they become; see `octopus.images.resize`."""

    source: str  # dtype of the images
    channels: int  # 1, 3 or 4
    filter: str
    antialias: bool
    rounding: str  # of a launch: "pillow" is horizontal first, see `tall_first`
    gain: np.ndarray  # the normalisation as `value * gain + bias`, (C,), float32
    bias: np.ndarray
    pad: np.ndarray  # what an item has beyond the resized image, normalised
    dtype: str  # of the result
    kind: str  # "batch": items of one size; "each": of their own sizes, one after the other; "rows": patch rows
    layout: str  # order within an item, or within a row: "CTPP" or "PPC"
    item: tuple[int, int] = (0, 0)  # height and width of a batch's items in pixels
    letterbox: bool = False
    return_transform: bool = False
    shortest: int = 0  # what the shorter side of an image becomes whose middle is an item; 0 if nothing is cut
    patch: int = 1
    merge: int = 1
    temporal: int = 1
    max_rows: int | None = None  # of every image, if a mask says which of them are its own
    tall_first: bool = False  # whether tall images begin with the vertical pass, see `sizes.vertical_first`
    row_multiple: int = 1  # to which `values` of a row are rounded up, by zeros

    @cached_property
    def values(self) -> int:
        """Elements of an item of a batch, of a pixel of items of their own sizes, or of a row with its zeros."""
        if self.kind == "batch":
            return self.channels * self.item[0] * self.item[1]
        return -(-self.filled // self.row_multiple) * self.row_multiple

    @property
    def filled(self) -> int:
        """Elements of a row that hold pixels; the others, behind them, are zeros."""
        return self.channels * self.temporal * self.patch * self.patch

    @property
    def name(self) -> str:
        """As part of a compiled kernel's name: all that is not a number of the launch."""
        sharp = "" if self.antialias or self.filter == "nearest" else "-sharp"
        kind = f"{self.source}x{self.channels}-{self.filter}{sharp}-{self.rounding}-{self.dtype}-{self.kind}"
        return f"{kind}-{self.layout.lower()}"


def make_spec(source: str, channels: int, operation: str, /, **given: Any) -> ImageSpec:
    """Check the options of a call for images of a dtype and a number of channels, and add their defaults."""
    kind, asked = KINDS[operation], {**OPTIONS[operation], **given}
    own = _of_batch(asked) if kind == "batch" else _of_rows(asked) if kind == "rows" else {}
    dtype = asked["dtype"] = checks.dtype_text(asked["dtype"], get_args(DtypeName))
    if asked["rounding"] is None and kind == "rows":  # as these models' processors round
        asked["rounding"] = "torch" if asked["antialias"] else "uint8"
    for name in [name for name in CHOICES if name in asked]:
        checks.check_choice(name, asked[name], get_args(CHOICES[name]))
    if kind == "each" and dtype == "bfloat16":
        raise InputError("a RaggedBatch can't hold bfloat16; ask for float32 or float16, or for patch rows")
    if dtype == "int8" and (kind != "rows" or any(asked[name] is not None for name in ("mean", "std", "scale"))):
        raise InputError(
            "dtype=int8 holds bytes less 128, of patch rows that are not normalised; leave out mean, std and scale, or "
            "ask for another dtype"
        )
    antialias, filter, rounding = checks.switch("antialias", asked["antialias"]), asked["filter"], asked["rounding"]
    if rounding != "none" and source != "uint8":
        raise InputError(
            f'rounding="{rounding}" makes uint8 of what is resized, but the images are {source}; ask for '
            'rounding="none", or convert them to uint8'
        )
    if rounding in FIXED and not antialias and filter != "nearest":
        raise InputError(
            f'rounding="{rounding}" is of filters that antialias; ask for antialias=True, or rounding="uint8"'
        )
    item = own.get("item", (0, 0))
    if math.prod(item) * channels > checks.INT32_MAX:
        raise InputError(f"one item of {item[0]}x{item[1]}x{channels} has more than 2**31 - 1 values")
    gain, bias = checks.units("image", source, dtype, asked["mean"], asked["std"], asked["scale"], channels)
    pad = asked.get("pad_value")
    if pad is None and own.get("letterbox"):
        pad = checks.usual_padding("image", source, asked["scale"], channels)
    pad = checks.padding(pad, gain, bias)
    return ImageSpec(
        source, channels, filter, antialias, rounding.removesuffix("12"), gain, bias, pad, dtype, kind,
        asked["order" if kind == "rows" else "layout"], tall_first=rounding == "pillow" and filter != "nearest", **own,
    )  # fmt: skip


def _of_batch(asked: dict[str, Any]) -> dict[str, Any]:
    item = checks.checked_size(asked["size"])
    letterbox, back = (checks.switch(name, asked[name]) for name in ("letterbox", "return_transform"))
    checks.check_return_transform(letterbox, back)
    crop, shortest, pad = asked["crop"], asked["shortest"], asked["pad_value"]
    if crop is not None:
        checks.check_choice("crop", crop, ("center",))
    if letterbox and crop is not None:
        raise InputError("letterbox=True keeps all of an image and crop cuts it; ask for one of them")
    if shortest is None and crop is not None and item[0] != item[1]:
        raise InputError(
            f'crop="center" to {item[0]}x{item[1]} needs shortest=, the length of the shorter side before the cut'
        )
    if shortest is not None:
        shortest = whole("shortest", shortest)
        if crop is None:
            raise InputError(f'shortest={shown(shortest)} needs crop="center", which cuts what is longer')
    if pad is not None and not letterbox and crop is None:
        raise InputError(
            f"pad_value={shown(pad)} was given, but nothing is padded with it; leave it out, or ask for "
            'letterbox=True or crop="center"'
        )
    shortest = (shortest or item[0]) if crop else 0
    return {"item": item, "letterbox": letterbox, "return_transform": back, "shortest": shortest}


def _of_rows(asked: dict[str, Any]) -> dict[str, Any]:
    usual = 1 if asked["order"] == "PPC" else 2
    made = {"patch": asked["patch"], "row_multiple": asked["row_multiple"]}
    made |= {name: usual if asked[name] is None else asked[name] for name in ("merge", "temporal")}
    for name, side in made.items():
        if not checks.is_count(side) or not 1 <= side <= MAX_PATCH:
            raise InputError(f"{name} must be an integer from 1 to {MAX_PATCH}, found {shown(side)}")
    if asked["order"] == "PPC" and made["temporal"] != 1:
        raise InputError(f'order="PPC" has one copy of a patch in its row, found temporal={made["temporal"]}')
    most = asked["max_rows"]
    return {
        **{name: int(side) for name, side in made.items()},
        "max_rows": None if most is None else whole("max_rows", most),
    }


def capacity_of(operation: str, spec: ImageSpec, images: int, pixels: Any, rows: Any) -> tuple[int, ...]:
    """Shape of the largest result of a plan."""
    wanted = {"each": "result_pixels", "rows": "" if spec.max_rows else "result_rows"}.get(spec.kind, "")
    for name, value in (("result_pixels", pixels), ("result_rows", rows)):
        if (value is None) == (name == wanted):
            verb = "needs" if name == wanted else "doesn't take"
            raise InputError(f"a plan of {operation} with these options {verb} {name}")
    if spec.kind == "each":
        return (whole(wanted, pixels) * spec.channels,)
    if spec.kind == "rows":
        return (images, spec.max_rows, spec.values) if spec.max_rows else (whole(wanted, rows), spec.values)
    return (images, *item_shape(spec))


def item_shape(spec: ImageSpec) -> tuple[int, int, int]:
    return (spec.channels, *spec.item) if spec.layout == "NCHW" else (*spec.item, spec.channels)
