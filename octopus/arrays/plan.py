"""What all plans have in common: memory that their runs share, one thread at a time, and a memo of their runs."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from octopus.arrays import streams
from octopus.arrays.checks import OneAtATime, check_stream
from octopus.arrays.results import result_memory
from octopus.arrays.views import ArrayView, head_of
from octopus.backends.cuda.device import current, is_capturing
from octopus.errors import InputError


class Place:
    """Where prepared calls work: the handle of a stream, or on a CPU a number of threads; None if none is prepared."""

    def __init__(self, handle: int | None = None) -> None:
        self.handle = handle


class PlanMemory(Place):
    """Device memory, allocated on `queue`, that the runs of a plan share, whichever stream each of them is on. It is
    given back behind the stream of the last run, should the plan go while work is under way."""

    def __init__(self, queue: Any) -> None:
        super().__init__()
        self.queue = queue
        self._ordinal = current().device_id
        self._arrays: list[Any] = []
        self.is_here = False  # whether the last run was on `queue`, as none is that a graph captures elsewhere

    def keep(self, *arrays: Any) -> None:
        """Look after arrays of this library and of others; None is nothing."""
        self._arrays += [array for array in arrays if array is not None]

    def enter(self, stream: Any, arrays: Sequence[ArrayView], beside: ArrayView | None = None) -> Any:
        """The stream on which a run works, ordered behind the plan's run before and behind whoever writes the arrays:
        the caller's, or the current one of the first array's library, or else of that of `beside`."""
        streams.check_ordinals(*arrays)
        if current().device_id != self._ordinal:
            raise InputError(
                f"the plan's memory lies on GPU {self._ordinal} but this thread works with GPU {current().device_id}; "
                "make a plan for each GPU, in the thread that uses it"
            )
        for array in arrays:  # reading others ends all work of the process on the GPU
            if array.pointer % (item := array.dtype.itemsize) and array.device == "cuda":
                raise InputError(
                    f"values of {array.dtype} on the GPU must lie at multiples of {item} bytes, found some at "
                    f"{array.pointer:#x}; pass a copy"
                )
        queue = streams.stream_for(arrays[0], beside, stream)
        if queue is not self.queue:
            self._move(queue)
        self.is_here = queue is self.queue
        streams.wait_for_producers(queue, *arrays)
        if stream is None:
            streams.wait_for_other_families(queue, *arrays)
        return queue

    def _move(self, queue: Any) -> None:
        if is_capturing(queue):  # a graph can't wait for what is not in it, and its work is done elsewhere
            return
        from octopus.backends.cuda.memory import DeviceArray

        queue.wait(self.queue)
        self.queue, self.handle = queue, None
        for array in self._arrays:
            if isinstance(array, DeviceArray):
                array.release_on(queue)
            else:
                streams.used_on(array, queue)


class Stage:
    """Device memory for an array from the host of up to `source_bytes`, and for what is made of it."""

    def __init__(self, source_bytes: int, result_bytes: Sequence[int], queue: Any) -> None:
        from octopus.backends.cuda import memory

        sizes = (source_bytes, *result_bytes)
        self._copy = memory.copy
        self.owned = [memory.DeviceArray((nbytes,), np.uint8, stream=queue) for nbytes in sizes]

    def run(
        self, planes: Sequence[ArrayView], results: Sequence[ArrayView | None], queue: Any, submit: Callable[..., None]
    ) -> None:
        """Bring planes to the GPU, `submit` work on the addresses there, and wait for the results to come back."""
        there, *made = self.owned
        pointer, elements = there.pointer, [np.ascontiguousarray(plane.numpy()) for plane in planes]
        for plane in elements:
            self._copy(pointer, plane.ctypes.data, plane.nbytes, queue)
            pointer += plane.nbytes
        submit(*(array.pointer for array in self.owned))
        for result, array in zip(results, made, strict=True):
            if result is not None:
                self._copy(result.pointer, array.pointer, result.nbytes, queue)
        queue.sync()


class Plan:
    """Base: a constructor calls `_begin`, reserves with `_new`, and ends with `_hold`; a run enters `_memory`."""

    device: str

    def _begin(self, model: ArrayView, device: str, stream: Any, beside: ArrayView | None = None) -> Any:
        """Say of which library and side results are, and where; returns the GPU's stream on which memory is reserved:
        the caller's, or the current one of the library of `model`, or else of `beside`."""
        check_stream(stream, device)
        self.device, self._waits = device, stream is None
        self._model = replace(model.unowned, after=None)  # results are written by the plan alone
        self._alone, self._memo = OneAtATime(), dict[Any, Any]()
        self._queue: Any = None
        if device == "cuda":
            self._queue = streams.stream_for(self._model, beside, stream)
            self._memory = PlanMemory(self._queue)
        return self._queue

    def _new(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Memory of the library of `model`, in the order of the caller's stream."""
        made = result_memory(self._model, shape, dtype, None if self._waits else self._queue)
        if self._queue is not None:
            self._memory.keep(made)
        return made

    def _hold(self, *arrays: Any) -> None:
        if self._queue is not None:
            self._memory.keep(*arrays)
            if self._waits:
                self._queue.sync()

    def _head(self, own: Any, count: int) -> Any:
        if own is None:
            raise InputError("this plan was made with allocate=False and has no memory of its own; pass out=")
        return head_of(own, count)

    def __getstate__(self) -> dict[str, Any]:
        """All but the memo, which holds addresses that a copy in another process doesn't have."""
        return self.__dict__ | {"_memo": {}}
