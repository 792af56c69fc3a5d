"""What brings a call's table, and images on the host, to the GPU, and the launch behind it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from octopus.images.found import Columns
from octopus.images.launcher import Launch
from octopus.images.packing import ALIGNMENT, Packing
from octopus.images.sizes import way_back
from octopus.images.sources import Sources
from octopus.images.work import Job, PreparedImages, Results, write
from octopus.kernels.images import IMAGE
from octopus.ragged.batch import RaggedBatch

TRANSFORM_BYTES = 16
SHORT = 1 << 16  # bytes of a table that the driver copies out of any memory without waiting for the stream
MOST_STREAMS = 16  # per thread that have memory for such tables
STRETCH_BYTES = 1 << 21  # that are uploaded at a time, while what lies behind them is still being packed

_thread = threading.local()


class Upload:
    """What the jobs of one pattern bring to the GPU: their table, and behind it the pixels of images on the host.

    Attributes
    ----------
    launch : Launch
        Which reads the table.
    nbytes : int
        Of the upload.
    room : int
        Bytes of page-locked memory: behind what is uploaded to the kernel lies the transform of letterboxed items,
        which goes to the caller's memory.

    Parameters
    ----------
    job : Job
        The first of them.
    records : int, optional
        Of the table, if it has room for more images than there are: those behind the last are no images.
    like : Launch, optional
        See `Launcher.prepare`.
    """

    def __init__(self, job: Job, records: int | None = None, like: Launch | None = None) -> None:
        sources, self.count = job.sources, len(job.sources)
        self.records = records or self.count
        table_bytes = self.nbytes = self.records * IMAGE.itemsize
        self._packing: Packing | None = None
        if job.staged:
            self._packing = Packing(sources, as_they_lie=True, begin=_aligned(table_bytes))
            self.nbytes = self._packing.nbytes
            sources = replace(sources, pointers=self._packing.begins, geometry=self._packing.geometry)
        self._transform = _aligned(self.nbytes)
        self.room = self._transform + self.count * TRANSFORM_BYTES
        self._first, self._table = sources.geometry.first, np.zeros(table_bytes, np.uint8)
        self.launch, self._order = _fill(np.ndarray(self.records, IMAGE, self._table), sources, job, like)
        self._prepared = self.launch.kernel.prepared(self.launch, self.records)
        self._way = way_back(sources.sides, job.items) if job.options.boxed else None

    def write(
        self, job: Job, slot: Slot, device: int, told: Callable[[int], Any] = lambda end: None,
        pixels: bool = True,
    ) -> None:  # fmt: skip
        """Write all of a job, perhaps without `pixels`, into page-locked memory that goes to the address `device`.

        `told` is as of `Packing.copy`.
        """
        pointers = job.sources.pointers
        if self._packing is not None:
            pointers = self._packing.begins + device
        if self._first is not None:
            pointers = pointers + self._first
        slot.array[: self._table.size] = self._table
        column = np.ndarray((self.count,), np.int64, slot.array, strides=(IMAGE.itemsize,))
        column[:] = pointers if self._order is None else pointers[self._order]
        if self._way is not None:
            slot.array[self._transform : self.room].view(np.float32).reshape(-1, 4)[:] = self._way
        if pixels and self._packing is not None:
            self._packing.copy(job.sources, slot.array, told)

    def send(self, job: Job, slot: Slot, device: int, results: Results, queue: Any) -> None:
        """Write a job into a slot and queue it; the slot is free again behind what was queued, also if that fails.

        What is written is uploaded while the rest is. Images that are page-locked themselves are not written: they go
        as they are, and the call waits until they have gone, since their owner may change them behind it.
        """
        sent, packing = 0, self._packing
        locked = packing is not None and packing.page_locked(job.sources)

        def upload(end: int) -> None:
            nonlocal sent
            if end - sent >= STRETCH_BYTES or end == self.nbytes:
                memory.copy(device + sent, slot.address + sent, end - sent, queue)
                sent = end

        try:
            self.write(job, slot, device, upload, not locked)
            if packing is not None and locked:
                memory.copy(device, slot.address, self._table.size, queue)
                for begin, pointer, size in packing.places(job.sources):
                    memory.copy(device + begin, pointer, size, queue)
                slot.sent(queue)
            else:
                upload(self.nbytes)
            self.launch_on(job, slot, device, results, queue)
            if locked:
                slot.wait()
        finally:
            slot.sent(queue, *job.sources.views)

    def prepared(self, job: Job, memory_there: memory.DeviceArray) -> PreparedImages:
        """What does other jobs of this pattern on the stream of memory of `SHORT` bytes."""
        there = memory_there.pointer
        table = np.ndarray(self.records, IMAGE, self._table)
        launch = self.launch.kernel.prepared(
            self.launch, self.records, table=table, there=there, column=self.count, held=memory_there
        )
        new, where = (maker(job.model, job.items.shape, job.engine.spec.dtype), streams.where(job.model.unowned))
        return PreparedImages(launch, self._order, (there, there), new, where, Place(where()))

    def launch_on(self, job: Job, slot: Slot, device: int, results: Results, queue: Any) -> None:
        """Queue the launch that reads what was uploaded, and what comes behind it."""
        out = results.out.pointer
        job.engine.launch(self._prepared, device, out, queue)
        if results.transform is not None:
            size = self.count * TRANSFORM_BYTES
            memory.copy(results.transform.pointer, slot.address + self._transform, size, queue)
        if results.mask is not None:
            most = job.items.shape[1]
            job.engine.pad(device, self.records, most, out, results.mask.pointer, queue)


def _fill(table: NDArray[Any], sources: Sources, job: Job, like: Launch | None) -> tuple[Launch, Columns | None]:
    """Write the table of a job, and tell its launch, and of which image each record is unless they are in order."""
    count, begins = len(sources), job.items.out
    used = table[:count]
    write(used, sources, job.items)
    launch: Launch = job.engine.prepare(used, like)
    if len(table) > count:
        _close(table, count, launch.blocks)
    placed = used["out"]
    return launch, None if placed.tobytes() == begins.tobytes() else begins.searchsorted(placed)


def upload_of(job: Job) -> Upload:
    """The upload of a job's pattern, made once."""
    pattern = job.pattern
    if pattern.upload is None:
        pattern.upload = Upload(job)
    upload: Upload = pattern.upload
    return upload


class Graph:
    """What a captured run of a plan reads at each replay: its table, in memory that no other run writes.

    Attributes
    ----------
    table : DeviceArray
    launch : Launch or None
        What was captured; None until then.
    out : array
        Where that writes, as the run returned it.

    Parameters
    ----------
    images : int
        Most of a run.
    queue : cuda.core.Stream
        On which memory is reserved.
    """

    def __init__(self, images: int, queue: Any) -> None:
        self._records = images + 1
        size = room_for(self._records, 0)
        self._slot, self.table = Slot(size), memory.DeviceArray((size,), np.uint8, stream=queue)
        self.launch: Launch | None = None
        self.out: Any = None
        self._most = 0

    def capture(self, job: Job, results: Results, out: Any, queue: Any) -> None:
        """Queue a job for the graph that is being captured; `out` is the array of `results.out`.

        Raises
        ------
        InputError
            If there is a graph already, whose replays would read this job's table.
        """
        if self.launch is not None:
            raise InputError(
                "a run of this plan has been captured in a graph, which reads the plan's table at each replay; make "
                "another plan for another graph"
            )
        upload = Upload(job, self._records)
        upload.write(job, self._slot, self.table.pointer)
        memory.copy(self.table.pointer, self._slot.address, upload.nbytes, queue)
        upload.launch_on(job, self._slot, self.table.pointer, results, queue)
        self.launch, self.out, self._most = upload.launch, out, job.items.shape[0]

    def head(self, job: Job, cut: Callable[[Any, int], Any]) -> Any:
        """Where a replay leaves a job's result: the first part of what was captured, as `cut` makes it.

        Raises
        ------
        InputError
            If the result is larger than that of the captured run: a replay would write past its end.
        """
        count = job.items.shape[0]
        if count > self._most:
            unit = {"batch": "images", "each": "values"}.get(job.engine.spec.kind, "rows")
            unit = "images" if job.options.most else unit
            raise InputError(
                f"the captured run has room for {self._most:,} {unit}, found {count:,}; capture a run of the largest "
                "images and sizes to come"
            )
        return self.out if count == self._most else cut(self.out, count)

    def update(self, job: Job) -> None:
        """Write over what the captured launch reads; nothing is written if that can't do it."""
        upload = Upload(job, self._records, self.launch)
        upload.write(job, self._slot, self.table.pointer)


def room_for(images: int, nbytes: int) -> int:
    """Bytes that the uploads of a plan need at most: tables, images of `nbytes` together with gaps, transforms."""
    return _aligned(images * IMAGE.itemsize) + nbytes + images * (ALIGNMENT + TRANSFORM_BYTES) + ALIGNMENT


def run_on_gpu(job: Job, results: Results, queue: Any, given: bool) -> None:
    """Do a job on a stream, in memory that this thread's calls share.

    Parameters
    ----------
    queue : cuda.core.Stream
    given : bool
        Whether the caller named it; else it is the current one of the images' library. Where that has none, since they
        come from the host, the work is done on the current one of the library of `out`.

    Raises
    ------
    InputError
        While a graph is captured: its replays would read memory that others have since written.
    """
    reserved = queue
    if not given:
        queue = streams.stream_for(job.model, results.out, None)
    if is_capturing(queue):
        raise InputError(
            "a call can't be captured in a graph, since it reserves memory; make an ImagePlan and run that"
        )
    upload = upload_of(job)
    if job.plain and not given and queue is reserved and upload.nbytes <= SHORT:
        job.pattern.prepared = upload.prepared(job, _short(queue))
    _order(job, results, queue, given)
    if queue is not reserved:
        _hand_over(results, reserved, queue)
    slot = _staging(job.staged).take(upload.room)
    if job.staged:
        own = memory.DeviceArray((upload.nbytes,), np.uint8, stream=queue)
    device = own.pointer if job.staged else slot.twin(queue)
    upload.send(job, slot, device, results, queue)


def tell_torch(sources: Sources, out: ArrayView, queue: Any) -> None:
    """Let torch give memory of images and results to others behind the work on a stream that is not its current one."""
    images = sources.images
    images = [images.values] if isinstance(images, RaggedBatch) else images
    for model, arrays in ((sources.model, images), (out, [out.owner])):
        if model.family != "torch" or model.device == "cpu":
            continue
        if not streams.is_current(queue, model):
            for array in arrays:
                streams.used_on(array, queue)


def _order(job: Job, results: Results, queue: Any, given: bool) -> None:
    """Let a stream wait for whoever writes the images."""
    views = [job.model, results.out, *job.sources.views]
    streams.check_ordinals(*views)
    streams.wait_for_producers(queue, *views)
    if given:
        tell_torch(job.sources, results.out, queue)
    else:
        streams.wait_for_other_families(queue, *views)


def _hand_over(results: Results, reserved: Any, queue: Any) -> None:
    """Use transforms and masks, which were reserved on one stream, on another, and give them back behind that."""
    queue.wait(reserved)
    for array in (results.transform, results.mask):
        if array is not None and isinstance(array.owner, memory.DeviceArray):
            array.owner.release_on(queue)


def _staging(pixels: bool) -> Staging:
    """Page-locked memory of this thread, for tables alone or with images."""
    name = "pixels" if pixels else "tables"
    found = _thread.__dict__.get(name)
    if found is None:
        found = _thread.__dict__[name] = Staging(2 if pixels else 4)
    made: Staging = found
    return made


def _short(queue: Any) -> memory.DeviceArray:
    """Memory on the GPU for the tables of this thread's calls on a stream, one after the other."""
    known = _thread.__dict__.setdefault("short", {})
    made: memory.DeviceArray | None = known.get(queue)
    return made or keep(known, queue, memory.DeviceArray((SHORT,), np.uint8, stream=queue), MOST_STREAMS)


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def _close(table: NDArray[Any], count: int, blocks: int) -> None:
    """Make records from number `count` on such as are no image's, behind all blocks that have work."""
    table[count:] = np.zeros((), IMAGE)
    table["first_tile"][count:] = INT32_MAX
    table["first_tile"][count : count + 1] = blocks
