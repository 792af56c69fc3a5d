"""The arguments of the GPU kernels: one table, from which follow their signatures and the words of their launches.

Read by both sides, so it imports no compiler.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

# One item of a call whose items differ: 64 bytes, so that a table of them is one upload. `frame` is where its frame's
# first pixel lies: an address on the CPU, on the GPU the element counted from that of the lowest address. `box` is the
# first of its box's numbers, `out` of its own elements, `pitch` from row to row in elements. Of the item's rows and
# columns the first inner ones are the crop, others padding.
_LONGS = ("frame", "box", "out", "pitch")
_INTS = ("width", "height", "columns", "rows", "inner_columns", "inner_rows", "spare", "unused")
ITEM = np.dtype([(name, "i8") for name in _LONGS] + [(name, "i4") for name in _INTS])
# dtypes whose memory a kernel sees as another's
SEEN = {"bfloat16": "uint16", "int8": "uint8", "nv12": "uint8", "p010": "uint16"}
_FORMS = {"float32": "<fi", "float64": "<d"}  # of numbers that are no integers


class Arguments(NamedTuple):
    """Names and kinds, in order: a kind is a dtype, `*dtype` for a pointer, `*name` for one whose dtype is to come."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]

    @classmethod
    def table(cls, *lines: str) -> Arguments:
        """From lines of a kind and the names that have it."""
        pairs = [(name, kind) for line in lines for kind, *names in [line.split()] for name in names]
        return cls(tuple(name for name, _ in pairs), tuple(kind for _, kind in pairs))

    def of(self, **dtypes: str) -> Arguments:
        """The same with the dtypes that were to come."""
        seen = {f"*{name}": f"*{SEEN.get(dtype, dtype)}" for name, dtype in dtypes.items()}
        return self._replace(kinds=tuple(seen.get(kind, kind) for kind in self.kinds))

    def place(self, name: str) -> int:
        return self.names.index(name)

    def words(self, values: Mapping[str, float]) -> list[int]:
        """A 64-bit word for each; 0 for those that are not among the values."""
        if unknown := set(values) - set(self.names):
            raise KeyError(f"no arguments of this kernel: {', '.join(sorted(unknown))}")
        return [_word(kind, values.get(name, 0)) for name, kind in zip(self.names, self.kinds, strict=True)]


def _word(kind: str, value: float) -> int:
    form = _FORMS.get(kind)
    if form is None:
        return int(value)
    word: int = struct.unpack("<q", struct.pack(form, *(value, 0)[: len(form) - 1]))[0]
    return word


def _four(*names: str) -> list[str]:
    return [f"float32 {name}{channel}" for name in names for channel in range(4)]


# Frames and boxes: `pitch` is the frame's row length in elements, `boxes` holds `x1, y1, x2, y2` per item.
_FRAME = ("*frame frame", "int32 pitch width height", "*box boxes", "*out out", "int32 out_width out_height")
# Of several frames, with their step in elements; then the way back of each item (`scale_x, scale_y, shift_x, shift_y`).
_OPTIONS = ("int32 frames", "int64 frame_step", "*index frame_index", "*float32 transform")
# How many items there are, how each is mirrored (bytes so far apart), what each is normalised by; video's second plane
# and the coefficients of `rows.converter`.
_ITEMS = (
    "*int32 count", "*uint8 flips", "int32 flip_step", "*float32 means stds", "*frame chroma", "int32 chroma_pitch",
    "float32 yg rv r0 gu gv g0 bu b0",
)  # fmt: skip
# The inverses are those of the result's sides, `rows` a thread's share, `lines` the frame's cache lines to prefetch.
STREAM = Arguments.table(
    *_FRAME, "float32 inverse_width inverse_height", "int32 rows lines", *_four("gain", "bias"), *_OPTIONS,
    *_four("pad"), *_ITEMS,
)  # fmt: skip
PLAIN = Arguments.table(*_FRAME, "int32 tiles_x tiles_y", *_four("gain", "bias"), *_OPTIONS, *_four("pad"), *_ITEMS)
# More than `tiles.SCALAR_CHANNELS` have their gains, biases and padding in memory.
PLAIN_MANY = Arguments.table(*_FRAME, "int32 tiles_x tiles_y", "*float32 gain bias", *_OPTIONS, "*float32 pad", *_ITEMS)

# `table` and `sides` are one table of `ITEM`; a unit is a column of a `band` of rows, `offsets` has each item's first.
_VARIED = (
    "*frame frame", "*int64 table", "*int32 sides", "*box boxes", "*out out", "*float32 transform", "*int32 offsets",
    "int32 items units band", "*int32 owner", "*int64 starts",
)  # fmt: skip
VARIED = Arguments.table(*_VARIED, *_four("gain", "bias", "pad"))
VARIED_MANY = Arguments.table(*_VARIED, "*float32 gain bias pad")

# `table` and `words` are one table of `kernels.images.IMAGE`, as int64 and as int32.
IMAGES = Arguments.table(
    "*int64 table", "*int32 words", "int32 count", "*out out", "int32 item_height item_width patch merge temporal",
    "int64 row_values", *_four("gain", "bias", "pad"),
)  # fmt: skip
IMAGE_TILES = Arguments.table(
    "*int64 table", "int32 count", "*out out", "int32 item_height item_width bands steps row_steps slots",
    *_four("gain", "bias"),
)  # fmt: skip
PADDING = Arguments.table("*int64 table", "*int32 words", "int32 most area", "int64 values", "*out out", "*int32 mask")

RAGGED = Arguments.table(
    "*source source", "*out out", "int64 total", "*offset offsets", "int32 items", "*float32 first second",
    "*int32 widths heights owner", "*int64 starts", "int64 threshold",
)  # fmt: skip
TILES = Arguments.table(
    "*uint8 source", "int64 head pitch", "int32 width height pixel", "*tile tiles", "*int32 work", "int32 listed share",
    "*int64 words absent", "uint32 nodata", "float64 scale threshold", "*float64 means", "*uint8 flags",
)  # fmt: skip
BEST = Arguments.table("*float32 scores", "int32 count", "*int32 places", "*float32 values")
