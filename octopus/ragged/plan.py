"""One operation on ragged batches, planned once and run on many that are cut alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.arrays import streams
from octopus.arrays.checks import INT32_MAX
from octopus.arrays.memory import PlanMemory, Stage, check_memory
from octopus.arrays.results import empty_like_family
from octopus.arrays.views import ArrayView, dtype_name, view
from octopus.errors import InputError
from octopus.kernels.operations import OPERATIONS, PARAMETERS, POINTWISE, STENCILS, result_dtype
from octopus.ragged import blockmap, tuned
from octopus.ragged.batch import RaggedBatch
from octopus.ragged.blockmap import BlockMap

DTYPES = ("float32", "uint8")
NEEDS_HOST = ("lookup", "block_metadata")


class RaggedPlan:
    """What depends on the sizes of a batch's items alone: the block map, on the device if that works there.

    Parameters
    ----------
    operation : str
        One of `octopus.ops.OPERATIONS`.
    batch : RaggedBatch
        Its sizes, dtype and side (host or GPU) are planned for; its values don't matter.
    strategy : {"auto", "lookup", "thread_search", "block_metadata", "block_search"}
        Who works on which element, see `octopus.blockmap`; "auto" takes what `octopus.tune` found, else
        "block_search".
    threshold : int, optional
        Elements per block of "block_metadata"; by default what `octopus.tune` found, else 16,384.
    device : {"auto", "cpu", "cuda"}
    made : BlockMap, optional
        The map of exactly these offsets, if it has been built before.
    stream
        Where the map is uploaded and, unless `run` says otherwise, kernels run.

    Raises
    ------
    InputError
        For unknown names, elements that are neither float32 nor uint8, images that are not two-dimensional or have
        more than 2**31 - 1 pixels, or offsets in GPU memory with a strategy that reads them on the host.
    OutOfMemoryError
        If the map doesn't fit on the GPU.
    """

    def __init__(
        self, operation: str, batch: RaggedBatch, *, strategy: str = "auto",
        threshold: int | None = None, device: str = "auto", stream: Any = None, made: BlockMap | None = None,
    ) -> None:  # fmt: skip
        self._values = _check(operation, batch)
        self.operation, self.items, self.total = operation, len(batch), batch.size
        self.device = streams.device_for(self._values, device)
        self.strategy = _resolve(strategy, operation, batch, self.device)
        self.out_dtype = np.dtype(result_dtype(operation, batch.dtype))
        self.map: BlockMap | None = None
        offsets = _host_offsets(operation, batch)
        if offsets is not None:
            threshold = tuned.threshold_for(self.device) if threshold is None else threshold
            self.map = made or blockmap.build(self.strategy, offsets, threshold=threshold)
            _check_map(self.map, self.strategy, offsets)
        self._sides = image_sides(operation, batch)
        if self.device == "cuda":
            self._plan_cuda(batch, stream)

    def _plan_cuda(self, batch: RaggedBatch, stream: Any) -> None:
        from octopus.backends.cuda import memory
        from octopus.ragged.cuda import Upload

        queue = streams.stream_for(self._values, None, stream)
        self._offsets = None if self.map else view(batch.offsets, "offsets")
        arrays = {**(self.map.arrays if self.map else {}), **self._sides}
        check_memory(sum(a.nbytes for a in arrays.values()), memory.free_bytes(), "the GPU")
        uploaded = Upload(arrays, queue)
        self.pointers = dict(uploaded.pointers)
        self._memory = PlanMemory(queue)
        self._memory.keep(uploaded.memory)
        if self._offsets is not None:
            self.pointers["offsets"] = self._offsets.pointer
        self._engines: dict[bool, Any] = {}

    def run(self, batch: RaggedBatch, *parameters: Any, out: Any = None, stream: Any = None) -> RaggedBatch:
        """Do the operation.

        Parameters
        ----------
        batch : RaggedBatch
            With the sizes that were planned for.
        *parameters : float or array (N,), float32
            One value, or one per item, of each of the operation's parameters; on the host or the GPU.
        out : array, (T,), optional
            Takes the result; the values themselves are allowed for pointwise operations that keep the dtype.
        stream
            As in `crop_resize`.

        Returns
        -------
        RaggedBatch
            With the offsets and shapes of `batch`, and values of the same library on the same side.

        Raises
        ------
        InputError
            If the batch is not the planned one, or parameters or `out` don't fit it.
        """
        source = view(batch.values, "values")
        self._check_run(batch, source)
        if len(parameters) != PARAMETERS[self.operation]:
            raise InputError(
                f"{self.operation} takes {PARAMETERS[self.operation]} parameters, found {len(parameters)}"
            )
        result = out
        if out is None:
            given_stream = self.device == "cuda" and stream is not None
            queue = streams.stream_for(source, None, stream) if given_stream else None
            result = empty_like_family(source, (self.total,), self.out_dtype, queue)
        target = view(result, "out")
        self._check_out(source, target)
        given = [_parameter(value, self.items, self.operation) for value in parameters]
        if self.total:
            (self._run_cpu if self.device == "cpu" else self._run_cuda)(source, target, given, stream)
        return batch.like(result)

    def _check_run(self, batch: RaggedBatch, source: ArrayView) -> None:
        found = (len(batch), batch.size, dtype_name(source.dtype), source.device)
        planned = (self.items, self.total, dtype_name(self._values.dtype), self._values.device)
        if found != planned:
            raise InputError(f"the plan is for (items, elements, dtype, side) {planned}, found {found}")

    def _check_out(self, source: ArrayView, out: ArrayView) -> None:
        found = (out.shape, out.dtype, out.device, out.contiguous)
        wanted = ((self.total,), self.out_dtype, source.device, True)
        if found != wanted:
            raise InputError(f"out must be (shape, dtype, side, contiguous) {wanted}, found {found}")
        overlap = out.pointer < source.pointer + source.nbytes and source.pointer < out.pointer + out.nbytes
        same = out.pointer == source.pointer and out.dtype == source.dtype and self.operation in POINTWISE
        if self.total and overlap and not same:
            raise InputError(
                f"out lies in the memory of the values, which {self.operation} reads while it writes"
            )

    def _run_cpu(self, source: ArrayView, out: ArrayView, given: list[Any], stream: Any) -> None:
        from octopus.ragged import cpu

        assert self.map is not None
        cpu.run(self.operation, source, out, self.map, [_on_host(value) for value in given], self._sides)

    def _run_cuda(self, source: ArrayView, out: ArrayView, given: list[Any], stream: Any) -> None:
        from octopus.backends.cuda.device import is_capturing
        from octopus.backends.cuda.memory import free_bytes
        from octopus.ragged.cuda import Upload

        parameters = dict(zip(("first", "second"), given, strict=False))
        on_gpu = {name: value for name, value in parameters.items() if isinstance(value, ArrayView)}
        from_host = {name: value for name, value in parameters.items() if name not in on_gpu}
        queue = self._memory.enter(stream, (source, out, *on_gpu.values()))
        if (from_host or source.device == "cpu") and is_capturing(queue):
            raise InputError("values and parameters must be on the GPU while a graph is captured")
        pointers = self.pointers | {name: value.pointer for name, value in on_gpu.items()}
        if from_host:
            uploaded = Upload(from_host, queue)
            pointers |= uploaded.pointers

        def submit(values: int, result: int) -> None:
            self.engine(values, result).launch(values, result, pointers, queue)

        if source.device == "cuda":
            submit(source.pointer, out.pointer)
            return
        check_memory(source.nbytes + out.nbytes, free_bytes(), "the GPU")
        Stage(source.nbytes, (out.nbytes,), queue).run(source, (out,), queue, submit)

    def engine(self, source: int, out: int) -> Any:
        """The launcher for these addresses: not all allow loads of 16 bytes."""
        from octopus.ragged.cuda import ALIGNMENT, CudaRagged

        aligned = not (source | out) % ALIGNMENT
        if aligned not in self._engines:
            offsets = self.map.offsets if self.map else self._offsets
            assert offsets is not None
            blocks, threshold = (self.map.blocks or 0, self.map.threshold) if self.map else (0, 0)
            self._engines[aligned] = CudaRagged(
                self.operation, self.strategy, dtype_name(self._values.dtype), self.out_dtype.name,
                dtype_name(offsets.dtype), self.total, self.items, aligned=aligned, blocks=blocks, threshold=threshold,
            )  # fmt: skip
        return self._engines[aligned]


def _check(operation: str, batch: RaggedBatch) -> ArrayView:
    if operation not in OPERATIONS:
        raise InputError(f"there is no operation {operation!r}; use one of {', '.join(OPERATIONS)}")
    if not isinstance(batch, RaggedBatch):
        raise InputError(
            f"{operation} works on a RaggedBatch, found {type(batch).__name__}; RaggedBatch.from_list makes one"
        )
    values = view(batch.values, "values")
    if dtype_name(values.dtype) not in DTYPES:
        raise InputError(f"the elements must be float32 or uint8, found {values.dtype}; convert them first")
    return values


def _resolve(strategy: str, operation: str, batch: RaggedBatch, device: str) -> str:
    if strategy == "auto":
        strategy = tuned.strategy_for(device, operation)
        return blockmap.DEFAULT if strategy in NEEDS_HOST and not batch.offsets_on_host else strategy
    if strategy not in blockmap.STRATEGIES:
        raise InputError(
            f"there is no strategy {strategy!r}; use auto or one of {', '.join(blockmap.STRATEGIES)}"
        )
    if strategy in NEEDS_HOST and not batch.offsets_on_host:
        raise InputError(
            f"{strategy} is built on the host but the offsets are in GPU memory; use block_search, or offsets_to_host()"
        )
    return strategy


def _host_offsets(operation: str, batch: RaggedBatch) -> NDArray[np.integer] | None:
    """Offsets that are known to fit the values; None if they are in GPU memory and may stay there.

    An operation that reads neighbours must not trust what nobody has checked: its offsets are made from the shapes.
    """
    if batch.offsets_on_host:
        on_host: NDArray[np.integer] = batch.offsets
        return on_host
    if operation not in STENCILS or batch.shapes is None:
        return None
    offsets = blockmap.offsets_of(batch.shapes)
    if offsets[-1] != batch.size:
        raise InputError(f"the shapes have {offsets[-1]} elements in all, the values {batch.size}")
    return offsets


def _check_map(found: BlockMap, strategy: str, offsets: NDArray[np.integer]) -> None:
    """A map that was made for other offsets would let the kernels read beyond the values."""
    if found.strategy != strategy or len(found.offsets) != len(offsets) or found.offsets[-1] != offsets[-1]:
        raise InputError(
            f"the map is of strategy {found.strategy} for {len(found.offsets) - 1} items and {found.offsets[-1]} "
            f"elements; {strategy} for {len(offsets) - 1} items and {offsets[-1]} elements was asked for"
        )


def image_sides(operation: str, batch: RaggedBatch) -> dict[str, NDArray[np.int32]]:
    """Widths and heights of the images that a stencil reads; nothing for other operations.

    Raises
    ------
    InputError
        If a stencil is to read sequences, or images larger than it can number.
    """
    if operation not in STENCILS:
        return {}
    if batch.shapes is None or batch.shapes.shape[1] != 2:
        found = "sequences" if batch.shapes is None else f"items of {batch.shapes.shape[1]} dimensions"
        raise InputError(f"{operation} works on images (height, width), found {found}")
    if len(batch) and batch.shapes.prod(axis=1).max() > INT32_MAX:
        raise InputError(f"{operation} takes images of up to 2**31 - 1 pixels; cut larger ones")
    if len(batch) and batch.shapes.max() > INT32_MAX:
        raise InputError(f"{operation} takes images with sides of up to 2**31 - 1 pixels")
    heights, widths = batch.shapes.T.astype(np.int32)
    return {"widths": np.ascontiguousarray(widths), "heights": np.ascontiguousarray(heights)}


def _parameter(value: Any, items: int, operation: str) -> NDArray[np.float32] | ArrayView:
    """One float32 per item, on the host or as given on the GPU."""
    array = np.asarray(value) if isinstance(value, (int, float, list, tuple, np.number)) else value
    found = view(array, "a parameter")
    if found.device == "cuda":
        if found.shape != (items,) or dtype_name(found.dtype) != "float32" or not found.contiguous:
            raise InputError(
                f"parameters of {operation} in GPU memory must be {items} contiguous float32, one per item, found "
                f"{found.dtype} of shape {found.shape}"
            )
        return found
    numbers = found.numpy()
    if numbers.shape not in ((), (items,)) or numbers.dtype.kind not in "biuf":
        raise InputError(
            f"parameters of {operation} must be one number or {items}, one per item, found {numbers.dtype} of shape "
            f"{numbers.shape}"
        )
    if not np.isfinite(numbers).all():
        where = "" if not numbers.shape else f" of item {int(np.argmin(np.isfinite(numbers)))}"
        raise InputError(f"the parameter of {operation}{where} is not a finite number")
    # A copy: page-locked memory of the caller's would be read after the call has returned.
    return np.array(np.broadcast_to(numbers, (items,)), np.float32, order="C")


def _on_host(value: Any) -> NDArray[np.float32]:
    if isinstance(value, ArrayView):
        raise InputError("a parameter is in GPU memory but the batch is on the CPU; copy it to the host")
    on_host: NDArray[np.float32] = value
    return on_host
