"""What all plans have in common: memory that their runs share, one thread at a time, and a memo of their runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from octopus.arrays import streams
from octopus.arrays.checks import OneAtATime, check_stream
from octopus.arrays.memory import PlanMemory
from octopus.arrays.results import result_memory
from octopus.arrays.views import ArrayView, head_of
from octopus.errors import InputError


class Plan:
    """Base of plans. A constructor calls `_begin`, reserves with `_new`, and ends with `_hold`; a run enters `_memory`.

    Attributes
    ----------
    device : {"cpu", "cuda"}
        Where it works.
    """

    device: str

    def _begin(self, model: ArrayView, device: str, stream: Any, beside: ArrayView | None = None) -> Any:
        """Say of which library and side results are, and where; returns the GPU's stream on which memory is reserved.

        `stream` is the caller's; without one it is the current one of the library of `model`, or else of `beside`.
        """
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
        """Look after more memory, and wait until all is there, unless the caller named a stream."""
        if self._queue is not None:
            self._memory.keep(*arrays)
            if self._waits:
                self._queue.sync()

    def _head(self, own: Any, count: int) -> Any:
        """The first items of memory from `_new`, without a copy."""
        if own is None:
            raise InputError("this plan was made with allocate=False and has no memory of its own; pass out=")
        return head_of(own, count)

    def __getstate__(self) -> dict[str, Any]:
        """All but the memo, which holds addresses that a copy in another process doesn't have."""
        return self.__dict__ | {"_memo": {}}
