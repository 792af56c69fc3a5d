"""What brings a call's table, and images on the host, to the GPU, and the launch behind it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from octopus.arrays import streams
from octopus.arrays.checks import INT32_MAX
from octopus.arrays.memo import keep
from octopus.arrays.plan import Place
from octopus.arrays.results import maker
from octopus.arrays.staging import Slot, Staging
from octopus.arrays.views import ArrayView
from octopus.backends.cuda import memory
from octopus.backends.cuda.device import is_capturing
from octopus.errors import InputError
from octopus.images.calls import Pattern, PreparedImages, Results, table_of
from octopus.images.cuda import Launch
from octopus.images.packing import ALIGNMENT, Packing
from octopus.images.sizes import way_back
from octopus.images.sources import Found
from octopus.kernels.images import IMAGE
from octopus.ragged.batch import RaggedBatch

TRANSFORM_BYTES = 16
SHORT = 1 << 16  # bytes of a table that the driver copies out of any memory without waiting for the stream
MOST_STREAMS = 16  # per thread that have memory for such tables
STRETCH_BYTES = 1 << 21  # that are uploaded at a time, while what lies behind them is still being packed

_thread = threading.local()


class Upload:
    """What the calls of one pattern bring to the GPU: their table, and behind it the pixels of images on the host.

    Behind what is uploaded (`nbytes`) page-locked memory (`room`) has the transforms of letterboxed items, which go to
    the caller's memory. The table may have room for more images (`records`); `launch` reads it, `like` one captured.
    """

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
        self._way = way_back(pattern.geometry.sides, pattern.items) if pattern.spec.letterbox else None

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
        as they are, and the call waits until they have gone, since their owner may change them behind it.
        """
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
    """The upload of a pattern, made once."""
    pattern.upload = pattern.upload or Upload(pattern, found)
    made: Upload = pattern.upload
    return made


def room_for(images: int, nbytes: int) -> int:
    """Bytes that the uploads of a plan need at most: tables, images of `nbytes` together with gaps, transforms."""
    return _aligned(images * IMAGE.itemsize) + nbytes + images * (ALIGNMENT + TRANSFORM_BYTES) + ALIGNMENT


def run_on_gpu(pattern: Pattern, found: Found, results: Results, reserved: Any, given: bool) -> None:
    """Do a call on a stream, in memory that this thread's calls share.

    The stream on which results were reserved is the caller's (`given`), or else the current one of the images' library.
    Where that has none, since they come from the host, the work is done on the current one of the library of `out`.
    """
    queue = reserved if given else streams.stream_for(pattern.model, results.out, None)
    if is_capturing(queue):  # replays would read memory that others have since written
        raise InputError(
            "a call can't be captured in a graph, since it reserves memory; make an ImagePlan and run that"
        )
    upload, kept = upload_of(pattern, found), _thread.__dict__
    if pattern.plain and not given and queue is reserved and upload.nbytes <= SHORT:
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
    name, turns = ("pixels", 2) if pattern.staged else ("tables", 4)
    slot = (kept.get(name) or kept.setdefault(name, Staging(turns))).take(upload.room)
    own = memory.DeviceArray((upload.nbytes,), np.uint8, stream=queue) if pattern.staged else None
    upload.send(pattern, found, slot, slot.twin(queue) if own is None else own.pointer, results, queue)


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
