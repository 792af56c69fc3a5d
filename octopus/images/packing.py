"""Images on the host, copied to one place after the other: for an upload, or for a loader's batch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.views import family, view
from octopus.backends.cpu import compile
from octopus.backends.cpu.threads import launch_telling, share
from octopus.images.sources import Columns, Found, Geometry, by_axes, contiguous_strides, reach_of
from octopus.ragged.batch import RaggedBatch

ALIGNMENT = 128  # of images that are packed for an upload: a line of the cache
PIECE_BYTES = 1 << 19  # that a thread copies at a time
# To copy for each further thread: on an H200's host 6 MB take less time by two threads than by twelve, 25 MB by seven.
THREAD_BYTES = 1 << 22
MOST_COPYING = 12  # threads, which are enough for a host's memory


class Packing:
    """How images of one geometry are packed, wherever they lie: from byte `begin` to `nbytes`, each at one of `begins`.

    They become contiguous, without gaps between them. `as_they_lie` keeps the order of axes of those that take no more
    bytes than they have values, and aligns each; `geometry` is what they become.
    """

    def __init__(self, found: Found, shape: Geometry, as_they_lie: bool, begin: int = 0) -> None:
        count = len(found.pointers)
        whole, spread = np.full(count, True), np.full(count, False)
        below, lengths = shape.reach
        if not shape.dense:
            strides = contiguous_strides(shape.shapes, shape.item)
            # Three values in pixels of four bytes and nothing else, as Pillow stores RGB.
            spread = (shape.steps[:, 1:] == (4, 1)).all(axis=1) & (shape.steps[:, 0] == 4 * shape.sides[:, 1])
            spread &= shape.channels == 3 and shape.item == 1
            if as_they_lie:
                whole = (below == 0) & (lengths <= shape.shapes.prod(axis=1) * shape.item)
                closer = np.where(spread[:, None], np.maximum(shape.strides * 3 // 4, 1), strides)
                strides = np.where(whole[:, None], shape.strides, closer)
            else:
                whole = (shape.strides == strides).all(axis=1)
                spread = spread & shape.last & ~whole
            steps, reach = by_axes(strides, shape.last), reach_of(shape.shapes, strides, shape.item, False)
            shape = replace(shape, strides=strides, steps=steps, reach=reach)
        self.geometry, self._batch = shape, isinstance(found.images, RaggedBatch)
        sizes = shape.reach[1]
        if as_they_lie and not self._batch:
            sizes = -(-sizes // ALIGNMENT) * ALIGNMENT
        ends = np.cumsum(sizes) + begin
        self.begins, self.nbytes = ends - sizes, int(ends[-1])
        self._threads = min(MOST_COPYING, 1 + (self.nbytes - begin) // THREAD_BYTES)
        self._left, self._spread = np.flatnonzero(~(whole | spread)), spread
        numbers = np.flatnonzero(whole | spread)
        # The last of pixels that are spread has a fourth byte, too.
        spans = np.stack([numbers, self.begins[numbers], 0 * numbers, (lengths + spread)[numbers], spread[numbers]])
        if self._batch:  # one piece, here as there
            spans = spans[:, :1]
            spans[3] = sizes.sum()
        self._pieces, self._is_whole = _cut(spans), not len(self._left) and not spread.any()
        self._ends = self._pieces[1] + _made(self._pieces)

    def page_locked(self, found: Found) -> bool:
        """Whether a GPU can copy images from where they lie to what they are packed as."""
        if found.model.family != "torch" or not self._is_whole:
            return False
        images = [found.images.values] if self._batch else found.images
        return all(family(image) == "torch" and image.is_pinned() for image in images)

    def places(self, found: Found) -> Iterator[tuple[int, int, int]]:
        """Where each goes that is copied as it lies, its address, and its bytes."""
        sizes = self.geometry.reach[1]
        columns = self.begins, found.pointers, sizes.sum(keepdims=True) if self._batch else sizes
        return zip(*(column[: len(columns[2])].tolist() for column in columns), strict=True)

    def copy(self, found: Found, memory: NDArray[np.uint8], told: Callable[[int], Any] = lambda end: None) -> None:
        """Copy such images into bytes.

        Much of it by several threads: one alone is slower than the bus to a GPU. `told` is called now and then, in the
        calling thread, with the number of the first bytes that need not be waited for.
        """
        runs, pieces, ends = found.runs, self._pieces, self._ends
        if len(self._left):
            share(self._copies(found, memory), self._threads)
        if runs:
            pieces, addresses = self._of_runs(found, runs)
            ends = pieces[1] + _made(pieces)
        else:
            addresses = found.pointers[pieces[0]] + pieces[2]
        if self._threads == 1 and not pieces[4].any():
            goal = memory.ctypes.data
            for begin, address, size in zip(
                *(part.tolist() for part in (pieces[1], addresses, pieces[3])), strict=True
            ):
                ctypes.memmove(goal + begin, address, size)
            return
        goals = pieces[1] + memory.ctypes.data
        launch_telling(
            packing_kernel(), pieces.shape[1], *(row.ctypes.data for row in (goals, addresses, pieces[3], pieces[4])),
            threads=self._threads, told=lambda done: told(int(ends[done - 1])),
        )  # fmt: skip

    def _copies(self, found: Found, memory: NDArray[np.uint8]) -> Iterator[Callable[[], Any]]:
        """Copies of images whose values lie apart, by NumPy."""
        for number in self._left.tolist():
            pixels = view(found.images[number], "image").numpy()
            begin, shape = int(self.begins[number]), self.geometry.shapes[number].tolist()
            goal = memory[begin : begin + pixels.nbytes].view(pixels.dtype).reshape(shape[: pixels.ndim])
            yield partial(np.copyto, goal, pixels)

    def _of_runs(self, found: Found, runs: dict[int, Any]) -> tuple[Columns, Columns]:
        """The pieces, and their addresses, where some images lie in several runs of rows."""
        tables = [self._pieces[:, ~np.isin(self._pieces[0], list(runs))]]
        addresses = [found.pointers[tables[0][0]] + tables[0][2]]
        for number in runs.keys() - set(self._left.tolist()):
            pointers, sizes = runs[number]
            apart = np.full(len(sizes), self._spread[number])
            spans = np.stack([np.arange(len(sizes)), 0 * sizes, 0 * sizes, sizes, apart])
            made = _made(spans)
            spans[1] = self.begins[number] + made.cumsum() - made
            parts = _cut(spans)
            addresses.append(pointers[parts[0]] + parts[2])
            tables.append(parts)
        table, order = np.concatenate(tables, axis=1), np.concatenate(addresses)
        ascending = np.argsort(table[1], kind="stable")
        return np.ascontiguousarray(table[:, ascending]), order[ascending]


def _made(pieces: Columns) -> Columns:
    """Bytes that pieces become."""
    made: Columns = np.where(pieces[4], pieces[3] // 4 * 3, pieces[3])
    return made


def _cut(spans: Columns) -> Columns:
    """Spans as pieces of at most `PIECE_BYTES`, (5, P): image, goal, bytes behind its address, bytes, and if spread."""
    counts = -(-spans[3] // PIECE_BYTES)
    start = (np.arange(counts.sum()) - (np.cumsum(counts) - counts).repeat(counts)) * PIECE_BYTES
    pieces = spans.repeat(counts, axis=1)
    pieces[1] += np.where(pieces[4], start // 4 * 3, start)
    pieces[2] += start
    pieces[3] = np.minimum(pieces[3] - start, PIECE_BYTES)
    return pieces


def packing_kernel() -> Callable[[int], Any]:
    """What packs images; loaded, or compiled once per machine."""

    def build() -> Callable[..., None]:
        from octopus.kernels.cpu import copies

        return copies.build()

    return compile.load("copies", build)
