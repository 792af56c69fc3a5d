"""What the kernels on ragged batches do with a pack of elements, and with one: see `Work`, made by `work_of`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from octopus.backends.cuda.language import device
from octopus.kernels import pixelwise
from octopus.kernels.cuda import ptx, ragged_power
from octopus.kernels.cuda.ragged_stencil import FUNCTIONS
from octopus.kernels.cuda.ragged_tiles import Kind

QUAD = 4  # elements


class Work(NamedTuple):
    """Device functions of an operation.

    Attributes
    ----------
    fetch : callable
        What a pack needs before its owner is known.
    pack : callable
        Do a pack of one item.
    one : callable
        Do one element.
    quad : callable or None
        Of packs of sixteen elements, do four, fetched again.
    """

    fetch: Callable
    pack: Callable
    one: Callable
    quad: Callable | None = None


def work_of(kind: Kind) -> Work:
    """The device functions of a kind's operation."""
    return _stencil_work(kind) if kind.operation in FUNCTIONS else _pointwise_work(kind)


def _arithmetic(kind: Kind) -> tuple[Callable, Callable]:
    """Device functions that do one element, and four of one item."""
    if kind.operation == "gamma":
        if kind.dtype == "uint8":
            return ragged_power.gamma_of_bytes, ragged_power.gamma_of_four_bytes
        return ragged_power.gamma, ragged_power.gamma_four
    apply = device(getattr(pixelwise, kind.operation))

    @device
    def apply_four(held, a, b):
        return apply(held[0], a, b), apply(held[1], a, b), apply(held[2], a, b), apply(held[3], a, b)

    return apply, apply_four


def _quad_access(dtype: str) -> Callable:
    """`load(source, index)`: four elements as float32, from an index that is a multiple of four."""
    if dtype == "float32":
        return ptx.load_floats
    byte0, byte1, byte2, byte3 = ptx.byte0, ptx.byte1, ptx.byte2, ptx.byte3
    magic = ptx.MAGIC_VALUE
    load_word = ptx.load_word

    @device
    def load(source, index):
        word = load_word(source, index)
        return byte0(word) - magic, byte1(word) - magic, byte2(word) - magic, byte3(word) - magic

    return load


def _pointwise_work(kind: Kind) -> Work:
    apply, apply_four = _arithmetic(kind)
    load, store = _quad_access(kind.dtype), ptx.streaming_store(kind.out_dtype, QUAD, True, False)
    store_one = ptx.streaming_store(kind.out_dtype, 1, True, False)

    @device
    def fetch(source, at):
        return load(source, at)

    @device
    def pack(source, out, at, held, item, offsets, first, second, widths, heights):
        store(out, at, apply_four(held, first[item], second[item]))

    @device
    def one(source, out, at, item, offsets, first, second, widths, heights):
        store_one(out, at, (apply(np.float32(source[at]), first[item], second[item]),))

    return Work(fetch, pack, one) if kind.values <= QUAD else _wide_work(kind, apply, pack, one)


def _wide_work(kind: Kind, apply: Callable, quad: Callable, one: Callable) -> Work:
    """Sixteen bytes per load and store: the same for four quads, taken apart only when they are needed."""
    store, load_words = ptx.streaming_store("uint8", 16, True, False), ptx.load_words
    load_quad = _quad_access(kind.dtype)
    byte0, byte1, byte2, byte3, magic = ptx.byte0, ptx.byte1, ptx.byte2, ptx.byte3, ptx.MAGIC_VALUE

    @device
    def fetch(source, at):
        return load_words(source, at)

    @device
    def apply_word(word, a, b):
        return (
            apply(byte0(word) - magic, a, b), apply(byte1(word) - magic, a, b),
            apply(byte2(word) - magic, a, b), apply(byte3(word) - magic, a, b),
        )  # fmt: skip

    @device
    def pack(source, out, at, held, item, offsets, first, second, widths, heights):
        a, b = first[item], second[item]
        p, q = apply_word(held[0], a, b), apply_word(held[1], a, b)
        r, s = apply_word(held[2], a, b), apply_word(held[3], a, b)
        store(out, at, p + q + r + s)

    @device
    def quad_at(source, out, at, item, offsets, first, second, widths, heights):
        quad(source, out, at, load_quad(source, at), item, offsets, first, second, widths, heights)

    return Work(fetch, pack, one, quad_at)


def _stencil_work(kind: Kind) -> Work:
    """Operations that read an image's neighbouring pixels; there is nothing to fetch before the owner is known."""
    four, single = FUNCTIONS[kind.operation]
    store = ptx.streaming_store(kind.out_dtype, QUAD, True, False)
    store_one = ptx.streaming_store(kind.out_dtype, 1, True, False)

    @device
    def fetch(source, at):
        return at

    @device
    def one(source, out, at, item, offsets, first, second, widths, heights):
        begin, width = np.int64(offsets[item]), widths[item]
        inside = np.uint32(at - begin)
        row = np.int32(inside // np.uint32(width))
        column = np.int32(inside - np.uint32(row) * np.uint32(width))
        store_one(out, at, (single(source, begin, row, column, width, heights[item]),))

    @device
    def pack(source, out, at, held, item, offsets, first, second, widths, heights):
        begin, width = np.int64(offsets[item]), widths[item]
        inside = np.uint32(at - begin)
        row = np.int32(inside // np.uint32(width))
        column = np.int32(inside - np.uint32(row) * np.uint32(width))
        height = heights[item]
        if column + QUAD <= width:
            store(out, at, four(source, begin, row, column, width, height))
        else:
            for j in range(QUAD):
                store_one(out, at + j, (single(source, begin, row, column, width, height),))
                column += np.int32(1)
                if column == width:
                    column = np.int32(0)
                    row += np.int32(1)

    return Work(fetch, pack, one)
