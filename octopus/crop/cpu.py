"""Checked crop-and-resize calls on the CPU."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from octopus.arrays.launch import PreparedLaunch, launch
from octopus.arrays.results import BFLOAT16, itemsize
from octopus.arrays.views import ArrayView
from octopus.backends.cpu import compile, threads
from octopus.crop.check import NOTHING, Call, HostItems
from octopus.crop.frame import VideoView
from octopus.crop.spec import PAD_MODES, CropSpec
from octopus.kernels import sampling
from octopus.kernels.geometry import NEAREST

ROWS = 56  # output rows per band where items alone can't fill the threads: one 224-row crop then feeds four
ITEMS_PER_THREAD = 4  # with so many items per thread or more, a band is a whole item and no row is read twice
FRAME, BOXES, OUT, TRANSFORM, CHROMA = (2, 9, 10, 11, 24)  # arguments of the kernels that are addresses, by number
ALONE_VALUES = 1 << 16  # a result of fewer values is made before a second thread would have woken up


class CpuEngine:
    """Runs a spec with the CPU kernels; holds no memory of its own. The kernel for a kind of boxes ("boxes", "maps",
    "quads") is loaded now, another one when it is first needed. With `varied` these are the kernels of `run_items`."""

    def __init__(self, spec: CropSpec, kind: str = "boxes", varied: bool = False) -> None:
        self.spec, self._varied = spec, varied
        options, frame = spec.options, spec.frame
        self._kernels: dict[str, Callable[[int], Any]] = {}
        self._kernel_for(kind)
        self._item_values = frame.channels * options.size[0] * options.size[1]
        # What stays alive beside their addresses.
        self._vectors = [np.ascontiguousarray(v, np.float32) for v in (spec.gain, spec.bias, spec.pad)]
        self._vectors.append(_stored(spec.pad, spec.dtype))
        outside = PAD_MODES.index(options.pad_mode) if options.outside == "pad" else -1
        self._planes = frame.channels if options.layout == "NCHW" else 1
        reach = sampling.REACH[options.filter] if options.edge == "image" else 0
        self._fixed = reach, options.letterbox
        self._outside = outside, NEAREST if outside < 0 else outside  # of boxes, and of maps

    def __reduce__(self) -> tuple[type[CpuEngine], tuple[CropSpec, str, bool]]:
        """A copy, or one in another process, makes its own vectors: addresses aren't the same there."""
        return CpuEngine, (self.spec, next(iter(self._kernels)), self._varied)

    def _kernel_for(self, kind: str) -> Callable[[int], Any]:
        if kind not in self._kernels:
            options, of = self.spec.options, self.spec.kernel
            optional = self._varied or options.letterbox or options.edge == "image" or options.outside == "pad"
            form = "antialias" if options.antialias else "options" if optional else "crop"
            if kind != "boxes" or options.filter != "bilinear":
                form = f"{kind}-{options.filter}" if kind != "boxes" else options.filter
            form = f"varied-{form}" if self._varied else form
            self._kernels[kind] = _load(form, of.frame.dtype, of.frame.order, self.spec.dtype)
        return self._kernels[kind]

    def prepare(self, call: Call, items: HostItems = NOTHING, *, checked: bool = False) -> PreparedLaunch:
        """The launch for a call; boxes that are not `checked` are so at each launch."""
        frame, boxes, transform = call.frame, call.boxes, call.transform
        count, (height, width), channels = boxes.shape[0], self.spec.options.size, self.spec.frame.channels
        item, (rows, columns) = frame.dtype.itemsize, frame.shape[-3:-1]
        index = np.zeros(count, np.int32) if items.frame_index is None else items.frame_index
        own = self._own(items)
        number = threads.get_num_threads() if count * self._item_values > ALONE_VALUES else 1
        band = height if count >= ITEMS_PER_THREAD * number or number == 1 else min(ROWS, height)
        kind = "maps" if len(boxes.shape) == 3 else "boxes"
        values = (
            0, count * -(-height // band),
            0, frame.strides[0] // item if self.spec.frame.indexed else 0, frame.strides[-3] // item,
            columns, rows, channels, index.ctypes.data, 0, 0, 0, width, height, self._planes, band,
            *(vector.ctypes.data for vector in own or self._vectors), *self._fixed, self._outside[kind != "boxes"],
            channels if own else 0,
        )  # fmt: skip
        if isinstance(frame, VideoView):
            values += 0, frame.chroma.strides[0] // item, frame.coding.coefficients.ctypes.data
        numbers = [OUT, *[TRANSFORM] * (transform is not None), FRAME, *[CHROMA] * (len(frame.planes) > 1)]
        arrays = zip(call.arrays, [*numbers, BOXES if checked else -1], strict=False)
        host = None if checked else call.host_boxes(self.spec.options.outside, BOXES)
        return PreparedLaunch(
            values, list(arrays), self._kernel_for(kind), boxes=host, threads=number, held=(self, index, own)
        )

    def run(self, call: Call, items: HostItems = NOTHING) -> None:
        """Do a call with checked float32 boxes or maps; what its items have of their own comes from `items` alone."""
        call = Call(call.frame, call.boxes, call.out, transform=call.transform)
        launch(self.prepare(call, items, checked=True), call.addresses)
        if items.flip is not None:
            self._flip(call.out.pointer, items.flip, call.transform)

    def run_items(
        self, table: np.ndarray, kind: str, boxes: np.ndarray, out: ArrayView, transform: ArrayView | None = None
    ) -> None:  # fmt: skip
        """Do items (N,) of `arguments.ITEM`, with checked float32 numbers of boxes, which may be quadrilaterals."""
        from octopus.ragged import blockmap

        rows = table["rows"].astype(np.int64)
        number = threads.get_num_threads() if math.prod(out.shape) > ALONE_VALUES else 1
        alone = len(table) >= ITEMS_PER_THREAD * number or number == 1
        band = int(rows.max()) if alone else min(ROWS, int(rows.max()))
        offsets = np.concatenate([[0], rows.cumsum()])
        owner, starts = blockmap.block_records(offsets, band)
        first = starts - offsets[owner]
        threads.launch(
            self._kernel_for(kind), len(owner), table.ctypes.data, owner.ctypes.data, first.ctypes.data, band,
            boxes.ctypes.data, out.pointer, 0 if transform is None else transform.pointer, self._planes,
            self.spec.frame.channels, *(vector.ctypes.data for vector in self._vectors), *self._fixed,
            self._outside[kind != "boxes"], threads=number,
        )  # fmt: skip

    def _own(self, items: HostItems) -> list[np.ndarray]:
        """Gains, biases and paddings, (N, C) each, of items that have a normalisation of their own; else none."""
        if items.mean is None or items.std is None:
            return []
        bias = -items.mean / items.std
        with np.errstate(over="ignore"):  # infinite, as on a GPU
            gain, pad = self.spec.gain / items.std, self.spec.pad / items.std + bias
        own = [np.ascontiguousarray(values, np.float32) for values in (gain, bias, pad)]
        return [*own, _stored(pad.ravel(), self.spec.dtype)]

    def _flip(self, out: int, flips: np.ndarray, transform: ArrayView | None) -> None:
        """Mirror finished items in place, and the ways back from them."""
        (height, width), channels = self.spec.options.size, self.spec.frame.channels
        pixel = itemsize(self.spec.dtype) * (channels // self._planes)
        made = _memory_at(out, (len(flips), self._planes, height, width), np.dtype((np.void, pixel)))
        for number in np.flatnonzero(flips):
            item, flip = made[number], flips[number]
            item[...] = item[:, :: -1 if flip & 2 else 1, :: -1 if flip & 1 else 1].copy()
            if transform is not None:
                back = _memory_at(transform.pointer + 16 * int(number), (2, 2), np.dtype(np.float32))
                turned = np.array([flip & 1, flip >> 1], bool)
                back[1, turned] += back[0, turned] * np.array([width, height], np.float32)[turned]
                back[0, turned] *= -1


def _memory_at(address: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    nbytes = math.prod(shape) * dtype.itemsize
    return np.ndarray(shape, dtype, memoryview((ctypes.c_char * nbytes).from_address(address)))


def _load(form: str, frame_dtype: str, order: str, out_dtype: str) -> Callable[[int], Any]:
    """The compiled kernel of a form: "crop", "options", "antialias", or a filter's, behind "maps-" of affine maps and
    "quads-" of quadrilaterals; before all of it "varied-", for items of which each has a record."""

    def build() -> Callable[..., None]:
        from octopus.kernels.cpu import bands

        plain = form.removeprefix("varied-")
        make, (kind, _, filter) = bands.kernel_of if plain == form else bands.varied_kernel_of, plain.rpartition("-")
        if plain == "antialias":
            from octopus.kernels.cpu import antialias

            return antialias.build(frame_dtype, out_dtype, order, make)
        if filter in sampling.TAPS:
            from octopus.kernels.cpu import sampled

            return sampled.build(frame_dtype, out_dtype, filter, kind or "boxes", order, make)
        from octopus.kernels.cpu import crop

        return crop.build(frame_dtype, out_dtype, plain == "options", order, make)

    ordered = "" if order == "RGB" else f"-{order.lower()}"
    return compile.load(f"{form}-{frame_dtype}{ordered}-{out_dtype}", build)


def _stored(values: np.ndarray, dtype: str) -> np.ndarray:
    """Float32 values as the CPU kernels store them: rounded and saturated to uint8, or the bits of small floats."""
    if dtype == "uint8":
        return np.rint(values).clip(0, 255).astype(np.uint8)  # type: ignore[no-any-return]
    if dtype == "float16":
        with np.errstate(over="ignore"):
            return values.astype(np.float16).view(np.uint16)
    if dtype == BFLOAT16:
        from octopus.kernels.images import bfloat16_bits

        bits_of: Callable[..., Any] = bfloat16_bits
        return np.array([bits_of(value) for value in values], np.uint16)
    return np.ascontiguousarray(values, np.float32)
