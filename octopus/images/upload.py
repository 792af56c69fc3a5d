"""What packs images on the host, and brings them and a call's table to the GPU, and the launch behind it."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.arrays import streams
from octopus.arrays.checks import INT32_MAX
from octopus.arrays.memo import keep
from octopus.arrays.plan import Place
from octopus.arrays.results import maker
from octopus.arrays.staging import Slot, Staging
from octopus.arrays.views import ArrayView, family, view
from octopus.backends.cpu import compile
from octopus.backends.cpu.threads import launch_telling, share
from octopus.backends.cuda import memory
from octopus.backends.cuda.device import is_capturing
from octopus.errors import InputError
from octopus.images.calls import Pattern, PreparedImages, Results, table_of, vertical_pass
from octopus.images.cuda import Launch
from octopus.images.sizes import way_back
from octopus.images.sources import Columns, Found, Geometry, by_axes, contiguous_strides, reach_of
from octopus.kernels import built
from octopus.kernels.images import IMAGE
from octopus.ragged.batch import RaggedBatch

ALIGNMENT = 128  # of images that are packed for an upload: a line of the cache
PIECE_BYTES = 1 << 19  # that a thread copies at a time
# To copy for each further thread: on an H200's host 6 MB take less time by two threads than by twelve, 25 MB by seven.
THREAD_BYTES = 1 << 22
MOST_COPYING = 12  # threads, which are enough for a host's memory
TRANSFORM_BYTES = 16
SHORT = 1 << 16  # bytes of a table that the driver copies out of any memory without waiting for the stream
MOST_STREAMS = 16  # per thread that have memory for such tables
STRETCH_BYTES = 1 << 21  # that are uploaded at a time, while what lies behind them is still being packed

_thread = threading.local()


class Packing:
    """How images of one geometry are packed, wherever they lie: from byte `begin` to `nbytes`, each at one of `begins`.
    They become contiguous, without gaps between them. `as_they_lie` keeps the order of axes of those that take no more
    bytes than they have values, and aligns each; `geometry` is what they become."""

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
        """Copy such images into bytes. Much of it by several threads: one alone is slower than the bus to a GPU. `told`
        is called now and then, in the calling thread, with the number of the first bytes that need not be waited
        for."""
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
    return compile.load("copies", partial(built, "cpu.copies"))


class Upload:
    """What the calls of one pattern bring to the GPU: their table, and behind it the pixels of images on the host.
    Behind what is uploaded (`nbytes`) page-locked memory (`room`) has the transforms of letterboxed items, which go to
    the caller's memory. The table may have room for more images (`records`); `launch` reads it, `like` one captured."""

    def __init__(self, pattern: Pattern, found: Found, records: int = 0, like: Launch | None = None) -> None:
        geometry, pointers, count = pattern.geometry, found.pointers, len(found.pointers)
        self.records = records or count
        table_bytes = self.nbytes = self.records * IMAGE.itemsize
        self._packing: Packing | None = None
        if pattern.staged:
            self._packing = Packing(found, geometry, as_they_lie=True, begin=_aligned(table_bytes))
            self.nbytes, geometry, pointers = self._packing.nbytes, self._packing.geometry, self._packing.begins
        self._transform = _aligned(self.nbytes)
        self.room = self._transform + count * TRANSFORM_BYTES
        self._geometry, self._table = geometry, table_of(geometry, pattern.items, pointers, records)
        self._bytes = self._table.view(np.uint8)
        self.launch: Launch = pattern.engine.prepare(self._table[:count], like)
        # Records that are no image's lie behind all blocks that have work.
        self._table["first_tile"][count:] = INT32_MAX
        self._table["first_tile"][count : count + 1] = self.launch.blocks
        placed, begins = self._table["out"][:count], pattern.items.out
        self._order = None if placed.tobytes() == begins.tobytes() else begins.searchsorted(placed)
        self._prepared = self.launch.kernel.prepared(self.launch, self.records)
        self._way = way_back(pattern.sides, pattern.items) if pattern.spec.return_transform else None

    def write(
        self, found: Found, slot: Slot, device: int, told: Callable[[int], Any] = lambda end: None, pixels: bool = True
    ) -> None:
        """Write all of a call, perhaps without `pixels`, into page-locked memory that goes to the address `device`."""
        packing, array = self._packing, slot.array
        pointers = self._geometry.firsts(found.pointers if packing is None else packing.begins + device)
        array[: self._bytes.size] = self._bytes
        column = np.ndarray((len(pointers),), np.int64, array, strides=(IMAGE.itemsize,))
        column[:] = pointers if self._order is None else pointers[self._order]
        if self._way is not None:
            array[self._transform : self.room].view(np.float32).reshape(-1, 4)[:] = self._way
        if pixels and packing is not None:
            packing.copy(found, array, told)

    def send(self, pattern: Pattern, found: Found, slot: Slot, device: int, results: Results, queue: Any) -> None:
        """Write a call into a slot and queue it; the slot is free again behind what was queued, also if that fails.
        What is written is uploaded while the rest is. Images that are page-locked themselves are not written: they go
        as they are, and the call waits until they have gone, since their owner may change them behind it."""
        sent, packing = 0, self._packing
        locked = packing is not None and packing.page_locked(found)

        def upload(end: int) -> None:
            nonlocal sent
            if end - sent >= STRETCH_BYTES or end == self.nbytes:
                memory.copy(device + sent, slot.address + sent, end - sent, queue)
                sent = end

        try:
            self.write(found, slot, device, upload, not locked)
            if packing is not None and locked:
                memory.copy(device, slot.address, self._bytes.size, queue)
                for begin, pointer, size in packing.places(found):
                    memory.copy(device + begin, pointer, size, queue)
                slot.sent(queue)
            else:
                upload(self.nbytes)
            self.launch_on(pattern, slot, device, results, queue)
            if locked:
                slot.wait()
        finally:
            slot.sent(queue, *found.views)

    def launch_on(self, pattern: Pattern, slot: Slot, device: int, results: Results, queue: Any) -> None:
        """Queue the launch that reads what was uploaded, and what comes behind it."""
        engine, out = pattern.engine, results.out.pointer
        engine.launch(self._prepared, device, out, queue)
        if results.transform is not None:
            memory.copy(results.transform.pointer, slot.address + self._transform, self.room - self._transform, queue)
        if results.mask is not None:
            engine.pad(device, self.records, out, results.mask.pointer, queue)

    def prepared(self, pattern: Pattern, short: memory.DeviceArray) -> PreparedImages:
        """What does other calls of this pattern on the stream of memory of `SHORT` bytes."""
        there, where = short.pointer, streams.where(pattern.model)
        launch = self.launch.kernel.prepared(
            self.launch, self.records, table=self._table, there=there, column=self.records, held=short
        )
        new = maker(pattern.model, pattern.items.shape, pattern.spec.dtype)
        return PreparedImages(launch, self._order, (there, there), new, where, Place(where()))


def upload_of(pattern: Pattern, found: Found) -> Upload:
    pattern.upload = pattern.upload or Upload(pattern, found)
    made: Upload = pattern.upload
    return made


def room_for(images: int, nbytes: int) -> int:
    """Bytes that the uploads of a plan need at most: tables, images of `nbytes` together with gaps, transforms."""
    return _aligned(images * IMAGE.itemsize) + nbytes + images * (ALIGNMENT + TRANSFORM_BYTES) + ALIGNMENT


def run_on_gpu(pattern: Pattern, found: Found, results: Results, reserved: Any, given: bool) -> None:
    """Do a call on a stream, in memory that this thread's calls share. The stream on which results were reserved is the
    caller's (`given`), or else the current one of the images' library. Where that has none, since they come from the
    host, the work is done on the current one of the library of `out`."""
    queue = reserved if given else streams.stream_for(pattern.model, results.out, None)
    if is_capturing(queue):  # replays would read memory that others have since written
        raise InputError(
            "a call can't be captured in a graph, since it reserves memory; make an ImagePlan and run that"
        )
    kept = _thread.__dict__
    if pattern.plain and not given and queue is reserved and (upload := upload_of(pattern, found)).nbytes <= SHORT:
        known = kept.setdefault("short", {})  # memory for tables, one after the other on each stream
        short = known.get(queue)
        if short is None:
            short = keep(known, queue, memory.DeviceArray((SHORT,), np.uint8, stream=queue), MOST_STREAMS)
        pattern.prepared = upload.prepared(pattern, short)
    views = pattern.model, results.out, *found.views
    streams.check_ordinals(*views)
    streams.wait_for_producers(queue, *views)
    if given:
        tell_torch(found, results.out, queue)
    else:
        streams.wait_for_other_families(queue, *views)
    if queue is not reserved:  # transforms and masks are given back behind the work
        queue.wait(reserved)
        for array in results[1:]:
            if array is not None and isinstance(array.owner, memory.DeviceArray):
                array.owner.release_on(queue)
    _send(*vertical_pass_on(queue, pattern, found), results, queue)


def _send(pattern: Pattern, found: Found, results: Results, queue: Any) -> None:
    upload, kept = upload_of(pattern, found), _thread.__dict__
    name, turns = ("pixels", 2) if pattern.staged else ("tables", 4)
    slot = (kept.get(name) or kept.setdefault(name, Staging(turns))).take(upload.room)
    own = memory.DeviceArray((upload.nbytes,), np.uint8, stream=queue) if pattern.staged else None
    upload.send(pattern, found, slot, slot.twin(queue) if own is None else own.pointer, results, queue)


def vertical_pass_on(queue: Any, pattern: Pattern, found: Found) -> tuple[Pattern, Found]:
    return vertical_pass(
        pattern, found, lambda first, part, made: _send(first, part, made, queue),
        lambda count: view(memory.DeviceArray((count,), np.uint8, stream=queue), "memory"),
    )  # fmt: skip


def tell_torch(found: Found, out: ArrayView, queue: Any) -> None:
    """Let torch give memory of images and results to others behind the work on a stream that is not its current one."""
    images: Sequence[Any] = [found.images.values] if isinstance(found.images, RaggedBatch) else found.images
    for model, arrays in ((found.model, images), (out, [out.owner])):
        if model.family != "torch" or model.device == "cpu":
            continue
        if not streams.is_current(queue, model):
            for array in arrays:
                streams.used_on(array, queue)


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
