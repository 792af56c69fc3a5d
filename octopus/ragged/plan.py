"""One operation on ragged batches, planned once and run on many that are cut alike."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from octopus.arrays import streams
from octopus.arrays.checks import INT32_MAX, Device, check_stream, check_tensor
from octopus.arrays.launch import Cuda, PreparedLaunch, launch
from octopus.arrays.memo import dynamo_disabled
from octopus.arrays.plan import Plan, Stage
from octopus.arrays.results import check_memory, result_memory
from octopus.arrays.views import ArrayView, dtype_name, view
from octopus.backends.cpu import compile, threads
from octopus.backends.cuda import compile as cuda_compile
from octopus.backends.cuda import memory
from octopus.backends.cuda.compile import function_of
from octopus.backends.cuda.device import compute_capability, current, is_capturing
from octopus.backends.cuda.memory import DeviceArray, copy
from octopus.errors import InputError, shown
from octopus.kernels import built
from octopus.kernels.arguments import RAGGED
from octopus.kernels.cuda.ragged_tiles import Kind, Shape, shape_for
from octopus.kernels.operations import OPERATIONS, POINTWISE, STENCILS, result_dtype
from octopus.ragged import blockmap
from octopus.ragged.batch import RaggedBatch
from octopus.ragged.blockmap import BlockMap, Strategy
from octopus.ragged.check import checked_parameters, whole

DTYPES = ("float32", "uint8")
NEEDS_HOST = ("lookup", "block_metadata")
ALIGNMENT = 16
STAGED_BYTES = 1 << 20  # up to here a copy on the host costs less than a second transfer
POINTERS = ("offsets", "first", "second", "widths", "heights", "owner", "starts")
PACK = 4  # elements for which a thread of the CPU searches once in `thread_search`
PART = 1 << 14  # elements of a part, of which a thread of the CPU takes one after the other


class Options(TypedDict, total=False):
    strategy: Strategy | Literal["auto"]
    threshold: int | None
    device: Device
    stream: Any


class RaggedPlan(Plan):
    """What depends on the sizes of a batch's items alone: the block map, on the device if that works there.

    On the CPU several threads may run one plan at once: runs share nothing that they write. On the GPU they share the
    arguments of launches, and a second thread is refused.

    Parameters
    ----------
    operation : {"multiply", "normalize", "threshold", "gamma", "blur3x3", "blur5x5_sobel"}
    batch : RaggedBatch
        Its sizes, dtype (float32 or uint8) and side (host or GPU) are planned for; its values don't matter.
    strategy : {"auto", "lookup", "thread_search", "block_metadata", "block_search"}
        Who works on which element, see `octopus.blockmap`; "auto" takes what `octopus.tune` found, else
        "block_search".
    threshold : int, optional
        Elements per block of "block_metadata", 1 to 2**31 - 1; by default what `octopus.tune` found, else 16,384.
    device : {"auto", "cpu", "cuda"}
        "auto" works where the values lie; for values on the host, on the GPU if there is one.
    made : BlockMap, optional
        The map of exactly these offsets, if it has been built before; compared with them.
    stream : optional
        A CUDA stream of any library, where the map is uploaded and, unless `run` says otherwise, kernels run. For work
        on a GPU only.

    Attributes
    ----------
    operation, strategy, device : str
        As asked for; instead of "auto" what was taken.
    items, total : int
        N, and the number of elements T.
    out_dtype : numpy.dtype
        Of the result.
    map : BlockMap or None
        What was built, or given as `made`; None with offsets in GPU memory, which are read at each run.

    Raises
    ------
    InputError
        For unknown names, another threshold, elements that are neither float32 nor uint8, images that are not
        two-dimensional or have more than 2**31 - 1 pixels, offsets in GPU memory with a strategy that reads them on
        the host, or a map of other offsets.
    DeviceError, OutOfMemoryError
        If no GPU is usable for "cuda", or the map doesn't fit on it.

    Examples
    --------
    >>> import numpy as np
    >>> batch = RaggedBatch.from_offsets(np.arange(4, dtype=np.float32), [0, 1, 4])
    >>> plan = RaggedPlan("multiply", batch, device="cpu")
    >>> plan.run(batch, [10, 2]).values.tolist(), plan.run(batch, 3).values.tolist()
    ([0.0, 2.0, 4.0, 6.0], [0.0, 3.0, 6.0, 9.0])
    """

    @dynamo_disabled
    def __init__(
        self, operation: str, batch: RaggedBatch, *, strategy: Strategy | Literal["auto"] = "auto",
        threshold: int | None = None, device: Device = "auto", stream: Any = None, made: BlockMap | None = None,
    ) -> None:  # fmt: skip
        if threshold is not None:
            threshold = whole("threshold", threshold)
            if isinstance(strategy, str) and strategy in {"auto", *blockmap.STRATEGIES} - {"block_metadata"}:
                raise InputError(
                    f'threshold={threshold} is for strategy="block_metadata" alone, found {shown(strategy)}; leave it '
                    "out, or name that strategy"
                )
        values = _checked_values(operation, batch)
        self.operation, self.items, self.total = operation, len(batch), batch.size
        queue = self._begin(values, streams.device_for(values, device, "the batch"), stream)
        self.strategy = _resolve(strategy, operation, batch, self.device)
        self.out_dtype = np.dtype(result_dtype(operation, batch.dtype))
        self._sides = image_sides(operation, batch)
        # Those of the images of a stencil, which must not trust unchecked offsets.
        self._shapes = batch.shapes if operation in STENCILS else None
        self._offsets: NDArray[np.int64] | None = batch.offsets if batch.offsets_on_host else None
        if self._offsets is None and self._shapes is not None:
            self._offsets = blockmap.offsets_of(self._shapes)
        self.map: BlockMap | None = None
        if made is not None:
            self.map = _checked_map(made, self.strategy, self._offsets)
        elif self._offsets is not None:
            self.map = blockmap.build(self.strategy, self._offsets, threshold=threshold or blockmap.DEFAULT_THRESHOLD)
        if queue is None:
            return
        self._offset_dtype = self.map.offsets.dtype if self.map else view(batch.offsets, "offsets").dtype
        arrays = {**(self.map.arrays if self.map else {}), **self._sides}
        check_memory(sum(a.nbytes for a in arrays.values()), memory.free_bytes(), "the GPU")
        uploaded = Upload(arrays, queue)
        self.pointers = dict(uploaded.pointers)
        self._memory.keep(uploaded.memory)
        self._engines: dict[bool, CudaRagged] = {}

    @dynamo_disabled
    def run(self, batch: RaggedBatch, *values: Any, out: Any = None, stream: Any = None) -> RaggedBatch:
        """Do the operation.

        Parameters
        ----------
        batch : RaggedBatch
            With the dtype, the side and the sizes that were planned for. Offsets in GPU memory are not compared but
            read anew; they may be others, of as many items.
        *values : float or array (N,)
            One finite number, or one per item, of each of the operation's parameters: on the host, or float32 on the
            GPU with the batch. Those of "normalize" are the mean and the inverse of the standard deviation.
        out : array, (T,), optional
            Takes the result; the values themselves are allowed for pointwise operations that keep the dtype.
        stream
            As in `crop_resize`; for work on a GPU only.

        Returns
        -------
        RaggedBatch
            With the offsets and shapes of `batch`, and values of the same library on the same side.

        Raises
        ------
        InputError
            If anything doesn't fit the plan, or it is at work in another thread.
        """
        source = self._checked_source(batch)
        check_stream(stream, self.device)
        given = checked_parameters(self.operation, values, self.items, self.device)
        check_tensor(out, "out")
        result = out
        if out is None:
            queue = streams.stream_for(source, None, stream) if stream is not None else None
            result = result_memory(source, (self.total,), self.out_dtype.name, queue)
        target = view(result, "out")
        self._check_out(source, target, given)
        if self.device == "cpu":
            if self.total:
                assert self.map is not None
                run_cpu(self.operation, source, target, self.map, given, self._sides)
            return batch.like(result)
        with self._alone:
            if self.total:
                self._run_cuda(batch, source, target, given, stream)
        return batch.like(result)

    def _checked_source(self, batch: RaggedBatch) -> ArrayView:
        """View of the values, which may have changed their form since the batch was made."""
        _check_kind(self.operation, batch)
        source = view(batch.values, "values")
        found = (len(batch), source.shape, dtype_name(source.dtype), source.device)
        planned = (self.items, (self.total,), dtype_name(self._model.dtype), self._model.device)
        if found != planned or not source.contiguous:
            raise InputError(f"the plan is for (items, elements, dtype, side) {planned}, found {found}")
        if self._shapes is not None and batch.shapes is not self._shapes:
            _check_shapes(batch, self._shapes)
        if batch.offsets is self._offsets or (self._shapes is not None and not batch.offsets_on_host):
            return source  # from the same batch, or made from the same shapes
        if (self._offsets is not None) != batch.offsets_on_host:
            sides = {True: "on the host", False: "in GPU memory"}
            raise InputError(
                f"the plan is for offsets {sides[self._offsets is not None]}, those of the batch are "
                f"{sides[batch.offsets_on_host]}; plan for such a batch, or use offsets_to_host()"
            )
        if self._offsets is not None:
            _check_offsets(batch.offsets, self._offsets, "the batch")
        return source

    def _check_out(self, source: ArrayView, out: ArrayView, given: list[Any]) -> None:
        found = (out.shape, out.dtype, out.device, out.contiguous)
        wanted = ((self.total,), self.out_dtype, source.device, True)
        if found != wanted:
            raise InputError(f"out must be (shape, dtype, side, contiguous) {wanted}, found {found}")
        if out.device == "cpu" and not out.numpy().flags.writeable:
            raise InputError("out is read-only; pass an array that can be written, or no out at all")
        same = out.pointer == source.pointer and out.dtype == source.dtype and self.operation in POINTWISE
        others = [value for value in given if isinstance(value, ArrayView)] + ([] if same else [source])
        begin, end = out.extent
        if self.total and any(begin < other.extent[1] and other.extent[0] < end for other in others):
            raise InputError(
                f"out lies in the memory of the values or parameters, which {self.operation} reads while it writes"
            )

    def _run_cuda(self, batch: RaggedBatch, source: ArrayView, out: ArrayView, given: list[Any], stream: Any) -> None:
        read = dict(zip(("first", "second"), given, strict=False))
        if self.map is None:
            read["offsets"] = view(batch.offsets, "offsets")
            if read["offsets"].dtype != self._offset_dtype:
                raise InputError(f"the plan is for offsets of {self._offset_dtype}, found {read['offsets'].dtype}")
        on_gpu = {name: value for name, value in read.items() if isinstance(value, ArrayView)}
        from_host = {name: value for name, value in read.items() if name not in on_gpu}
        queue = self._memory.enter(stream, (source, out, *on_gpu.values()))
        if (from_host or source.device == "cpu") and is_capturing(queue):
            raise InputError("values and parameters must be on the GPU while a graph is captured")
        pointers = self.pointers | {name: value.pointer for name, value in on_gpu.items()}
        if from_host:
            uploaded = Upload(from_host, queue)
            pointers |= uploaded.pointers

        def submit(values: int, result: int) -> None:
            self._engine(values, result).launch(values, result, pointers, queue)

        if source.device == "cuda":
            submit(source.pointer, out.pointer)
            return
        check_memory(source.nbytes + out.nbytes, memory.free_bytes(), "the GPU")
        Stage(source.nbytes, (out.nbytes,), queue).run(source.planes, (out,), queue, submit)

    def _engine(self, source: int, out: int) -> CudaRagged:
        """The launcher for these addresses: loads of 16 bytes need addresses that are multiples of 16."""
        aligned = not (source | out) % ALIGNMENT
        if aligned not in self._engines:
            blocks, threshold = (self.map.blocks or 0, self.map.threshold) if self.map else (0, 0)
            self._engines[aligned] = CudaRagged(
                self.operation, self.strategy, dtype_name(self._model.dtype), self.out_dtype.name,
                dtype_name(self._offset_dtype), self.total, self.items, aligned=aligned, blocks=blocks,
                threshold=threshold,
            )  # fmt: skip
        return self._engines[aligned]


class CudaRagged:
    """Launches one operation on batches of one layout; `blocks` and `threshold` are those of `block_metadata`."""

    def __init__(
        self, operation: str, strategy: str, dtype: str, out_dtype: str, offset_dtype: str, total: int, items: int,
        *, aligned: bool = True, blocks: int = 0, threshold: int = 0, shape: Shape | None = None,
    ) -> None:  # fmt: skip
        processors = current().properties.multiprocessor_count
        self.shape = shape or shape_for(operation, strategy, dtype, total, items, processors, aligned)
        self._blocks = blocks if strategy == "block_metadata" else self.shape.blocks(total)
        kind = Kind(operation, strategy, dtype, out_dtype, offset_dtype, *self.shape)
        function = function_of(_cuda_kernel(kind, compute_capability()))
        cuda = Cuda(function, (self._blocks, 1, 1, self.shape.threads, 1, 1), current().device_id)
        words = RAGGED.words({"total": total, "items": items, "threshold": threshold})
        addresses = [(None, RAGGED.place(name)) for name in ("source", "out", *POINTERS)]
        self._prepared = PreparedLaunch(words, addresses, cuda)

    def launch(self, source: int, out: int, pointers: dict[str, int], stream: Any) -> None:
        """Queue the kernel; addresses are in device memory, those that its kind doesn't read may be missing."""
        launch(self._prepared, (source, out, *(pointers.get(name, 0) for name in POINTERS)), stream)


class Upload:
    """Host arrays in one block of device memory: small ones are brought there by one copy, large ones as they are."""

    def __init__(self, arrays: dict[str, np.ndarray], stream: Any) -> None:
        flat = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        starts, end, staged_end = {}, 0, 0
        for name in sorted(flat, key=lambda name: flat[name].nbytes > STAGED_BYTES):  # the small ones first
            starts[name] = end
            end += -(-flat[name].nbytes // ALIGNMENT) * ALIGNMENT
            staged_end = end if flat[name].nbytes <= STAGED_BYTES else staged_end
        self.memory = DeviceArray((end,), np.uint8, stream=stream)
        self.pointers = {name: self.memory.pointer + start for name, start in starts.items()}
        staged = np.empty(staged_end, np.uint8)
        for name, array in flat.items():
            if array.nbytes <= STAGED_BYTES:
                staged[starts[name] : starts[name] + array.nbytes] = array.view(np.uint8)
            else:
                copy(self.pointers[name], array.ctypes.data, array.nbytes, stream)
        copy(self.memory.pointer, staged.ctypes.data, staged_end, stream)


@cache
def _cuda_kernel(kind: Kind, capability: tuple[int, int]) -> Any:
    return cuda_compile.load(kind.name, partial(built, "cuda.ragged", kind))


def run_cpu(
    operation: str, source: ArrayView, out: ArrayView, made: BlockMap, parameters: Sequence[Any],
    sides: dict[str, NDArray[np.int32]], *, pack: int = PACK,
) -> None:  # fmt: skip
    """Do an operation on checked arrays (T,) of the host; `sides` are "widths" and "heights" of a stencil's images."""
    stencil, dtypes = operation in STENCILS, [dtype_name(each.dtype) for each in (source, out, made.offsets)]
    name = f"ragged-{'stencil-' * stencil}{'-'.join([made.strategy, *dtypes])}"
    kernel = compile.load(name, partial(built, "cpu.ragged", made.strategy, stencil, *dtypes))
    total, items = source.shape[0], len(made.offsets) - 1
    blocks, size = -(-total // PART), PART
    if made.starts is not None:
        blocks, size = len(made.starts), made.threshold
    zeros = np.zeros(items, np.float32)  # operations read both parameters, whether they use them or not
    first, second = (*parameters, zeros, zeros)[:2]
    arrays = (first, second, sides.get("widths"), sides.get("heights"), made.owner, made.starts)
    threads.launch(
        kernel, blocks, OPERATIONS.index(operation), source.pointer, out.pointer, total, made.offsets.ctypes.data,
        items, *(0 if array is None else array.ctypes.data for array in arrays), size, pack,
        threads=None if total > PART else 1,
    )  # fmt: skip


def image_sides(operation: str, batch: RaggedBatch) -> dict[str, NDArray[np.int32]]:
    """Widths and heights of the images that a stencil reads, checked; nothing for other operations."""
    if operation not in STENCILS:
        return {}
    if batch.shapes is None or batch.shapes.shape[1] != 2:
        found = "sequences" if batch.shapes is None else f"items of {batch.shapes.shape[1]} dimensions"
        raise InputError(f"{operation} works on images (height, width), found {found}")
    if len(batch) and max(batch.shapes.prod(axis=1).max(), batch.shapes.max()) > INT32_MAX:
        raise InputError(f"{operation} takes images of up to 2**31 - 1 pixels, and such sides; cut larger ones")
    heights, widths = batch.shapes.T.astype(np.int32)
    return {"widths": np.ascontiguousarray(widths), "heights": np.ascontiguousarray(heights)}


def _check_kind(operation: str, batch: Any) -> None:
    if not isinstance(batch, RaggedBatch):
        raise InputError(
            f"{operation} works on a RaggedBatch, found {type(batch).__name__}; RaggedBatch.from_list makes one"
        )


def _checked_values(operation: str, batch: RaggedBatch) -> ArrayView:
    if not isinstance(operation, str) or operation not in OPERATIONS:
        raise InputError(f"there is no operation {shown(operation)}; use one of {', '.join(OPERATIONS)}")
    _check_kind(operation, batch)
    values = view(batch.values, "values")
    if dtype_name(values.dtype) not in DTYPES:
        raise InputError(f"the elements must be float32 or uint8, found {values.dtype}; convert them first")
    return values


def _resolve(strategy: str, operation: str, batch: RaggedBatch, device: str) -> Strategy:
    if isinstance(strategy, str) and strategy == "auto":
        found = blockmap.tuned(device)[blockmap.group_of(operation, batch.size, len(batch))]
        return blockmap.DEFAULT if found in NEEDS_HOST and not batch.offsets_on_host else found
    if not blockmap.is_strategy(strategy):
        raise InputError(f"there is no strategy {shown(strategy)}; use auto or one of {', '.join(blockmap.STRATEGIES)}")
    if strategy in NEEDS_HOST and not batch.offsets_on_host:
        raise InputError(
            f"{strategy} is built on the host but the offsets are in GPU memory; use block_search, or offsets_to_host()"
        )
    return strategy


def _checked_map(found: Any, strategy: str, offsets: NDArray[np.int64] | None) -> BlockMap:
    """The map, if it follows from these offsets: another would let the kernels read beyond the values."""
    if not isinstance(found, BlockMap) or found.strategy != strategy:
        told = f"of strategy {found.strategy}" if isinstance(found, BlockMap) else type(found).__name__
        raise InputError(f"made must be a BlockMap of strategy {strategy}, found one {told}")
    if offsets is None:
        raise InputError("the offsets are in GPU memory, so that made can't be checked against them; leave it out")
    if len(found.offsets) != len(offsets) or found.offsets[-1] != offsets[-1]:
        raise InputError(
            f"the map is for {len(found.offsets) - 1} items and {found.offsets[-1]} elements; "
            f"{len(offsets) - 1} items and {offsets[-1]} elements was asked for"
        )
    _check_offsets(found.offsets, offsets, "the map")
    if found.checked:
        return found
    right = blockmap.build(found.strategy, offsets, threshold=found.threshold or 1)
    for name, array in right.arrays.items():
        given = found.arrays.get(name)
        if given is None or not np.array_equal(given, array):
            raise InputError(f"{name} of the map doesn't follow from its offsets; blockmap.build makes it")
    return right


def _check_offsets(found: NDArray[np.integer], planned: NDArray[np.integer], whose: str) -> None:
    if not np.array_equal(found, planned):
        item = int(np.argmax(found[1:] != planned[1:]))
        lengths = [int(offsets[item + 1] - offsets[item]) for offsets in (found, planned)]
        raise InputError(f"item {item} of {whose} has {lengths[0]} elements, the plan is for {lengths[1]}")


def _check_shapes(batch: RaggedBatch, planned: NDArray[np.int64]) -> None:
    if batch.shapes is None or batch.shapes.shape != planned.shape:
        raise InputError("the plan is for images (height, width), the batch has items of other dimensions")
    if not np.array_equal(batch.shapes, planned):
        item = int(np.argmax((batch.shapes != planned).any(axis=1)))
        found, right = (tuple(shapes[item].tolist()) for shapes in (batch.shapes, planned))
        raise InputError(f"item {item} of the batch has shape {found}, the plan is for {right}")
