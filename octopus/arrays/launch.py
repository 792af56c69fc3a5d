"""Launches whose checks are done and whose arguments are written, but for the addresses of a call."""

from array import array
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from octopus.arrays.views import ArrayView, address_of
from octopus.backends.cpu import compile, threads
from octopus.backends.cuda.device import driver
from octopus.errors import InputError
from octopus.kernels import built
from octopus.kernels import launches as at

STACK_WORDS = 1024  # up to which a call's words are copied to the stack
INSIDE_WORDS = 480  # of boxes that travel among a call's words; more have memory of their own


class Boxes(NamedTuple):
    """Boxes from the host, array number `at`, which each call checks and copies; see `kernels.launches`."""

    at: int
    dtype: int
    number: int
    width: int
    height: int
    rule: int
    to: int = -1
    there: int = 0


class Cuda(NamedTuple):
    function: int
    geometry: tuple[int, ...]
    ordinal: int
    shared: int = 0


class PreparedLaunch:
    """A kernel and all of its arguments but the addresses of the arrays that a call works on. A call writes these into
    a copy of its words, in which machine code then does the rest, see `kernels.cpu.launches`: nothing is shared by
    calls, whatever threads or signals they come from."""

    def __init__(
        self,
        arguments: Sequence[int],  # a word each, see `kernels.arguments`; the addresses of arrays may be 0
        # In the order of a call's addresses, with the number of the argument that each address is, or -1. The first is
        # written and must lie apart from the others; None for one that may lie anywhere.
        arrays: Sequence[tuple[ArrayView | None, int]],
        # Of the CPU, from `compile.load`, whose first two arguments are the counter of its blocks and their number; or
        # of a GPU.
        kernel: Callable[[int], Any] | Cuda,
        *,
        boxes: Boxes | None = None,  # if the array number `boxes.at` holds boxes from the host
        threads: int = 1,  # of the CPU, at most
        tail_words: int = 0,  # length of a last argument that is an array by value: the boxes from the host
        # What each call has a copy of, of whose first `column` rows it writes the first word. On a GPU, at most 64 KiB,
        # it is copied to the address `there`; on a CPU argument number `table_to` is its address.
        table: np.ndarray | None = None,
        there: int = 0,
        table_to: int = -1,
        column: int = 0,
        held: Any = None,  # what the arguments are addresses of
    ) -> None:
        head = [0] * at.HEAD
        head[at.ARRAYS], head[at.BOXES], head[at.ROOM_TO] = len(arrays), -1, -1
        records = [0] * len(arrays) + [n for view, argument in arrays for n in (*_extent(view), argument)]
        head[at.FIRST], head[at.COUNT] = at.HEAD + len(records), len(arguments)
        self._kernel: Callable[[int], Any] | None = None
        self._threads = 1
        if isinstance(kernel, Cuda):
            from octopus.backends.cuda.compile import functions

            head[at.LAUNCH : at.UPLOAD + 1] = functions()
            head[at.ORDINAL], head[at.FUNCTION], head[at.SHARED] = (kernel.ordinal, kernel.function, kernel.shared)
            head[at.GRID_X : at.BLOCK_Z + 1] = kernel.geometry
        else:
            self._kernel, self._threads = kernel, threads
            head[at.KERNEL] = compile.address_of(kernel) if threads == 1 else 0
        self.words = array("q", [*head, *records, *arguments, *[0] * (len(arguments) + 1)])
        self._room, self._held, self._column = 0, held, slice(0)
        if boxes is not None:
            source = arrays[boxes.at][0]
            assert source is not None
            size, needed = 16 * boxes.number, tail_words or 2 * boxes.number
            given = (boxes.at, *source.strides, *boxes[1:6], 0, 0, boxes.to, boxes.there, size)
            self.words[at.BOXES : at.SCRATCH] = array("q", given)
            if needed <= INSIDE_WORDS:
                self.words[at.TAIL] = len(self.words)
                self.words.extend([0] * needed)
            else:
                self._room = needed
        if table is not None:
            tail, step = len(self.words), table.itemsize // 8
            self._column = slice(tail, tail + column * step, step)
            self.words[at.TAIL : at.SCRATCH] = array("q", (tail, table_to, there, table.nbytes))
            self.words.frombytes(table.tobytes())
        self.words[at.LENGTH] = len(self.words)
        self._address, self._call = self.words.buffer_info()[0], launcher()
        self._quick = not (self._threads > 1 or self._room) and len(self.words) <= STACK_WORDS

    def __call__(self, stream: int, addresses: Sequence[int], column: Sequence[int] = ()) -> int:
        """Launch for arrays at these addresses; returns 0, or the reason of `kernels.launches` why nothing was done."""
        if self._quick and not column:
            reason: int = self._call(self._address, stream, *addresses)
            return reason
        words = self.words[:]
        words[at.STREAM : at.HEAD + len(addresses)] = array("q", (stream, *addresses))
        if column:
            words[self._column] = array("q", column)
        if self._room:
            room = np.empty(self._room, np.int64)
            words[at.ROOM] = address_of(room)
        launcher()(words.buffer_info()[0])
        if self._kernel is not None and self._threads > 1 and not words[at.RESULT]:
            threads.start(self._kernel, words, words[at.FIRST], self._threads)
        return words[at.RESULT]

    @property
    def uploads(self) -> bool:
        """Whether boxes from the host are copied to memory on the GPU that other launches use, too."""
        return self.words[at.THERE] != 0


def launch(prepared: PreparedLaunch, addresses: Sequence[int], stream: Any = None) -> None:
    """Launch what has been checked, on a stream of cuda.core if that is a GPU's."""
    reason = prepared(0 if stream is None else int(stream.handle), addresses)
    if reason == at.NO_MEMORY:
        raise threads.refused(1)
    if reason == at.OVERLAP:
        raise InputError("the result lies in memory that is read while it is written; pass other memory")
    if reason:
        told = driver().CUresult(reason - at.DRIVER).name if reason >= at.DRIVER else f"reason {reason}"
        raise RuntimeError(f"the CUDA driver answers {told}")


def boxes_are_good(boxes: ArrayView, dtype: int, width: int, height: int, rule: int, result: np.ndarray) -> bool:
    """Check boxes (N, 4) on the host and copy them to `result`, (N, 4) float32; see `Boxes` for the numbers."""
    words = array("q", [0] * (at.HEAD + 2))
    given = (0, *boxes.strides, dtype, boxes.shape[0], width, height, rule, address_of(result), 0, -1, 0, 0)
    words[at.BOXES : at.SCRATCH] = array("q", given)
    words[at.HEAD], words[at.FIRST] = boxes.pointer, at.HEAD + 1
    launcher()(words.buffer_info()[0])
    return not words[at.RESULT]


def _extent(view: ArrayView | None) -> tuple[int, int]:
    if view is None:
        return 0, 0
    first, last = view.extent
    return first - view.pointer, last - view.pointer


@cache
def launcher() -> Callable[..., int]:
    """The kernel of `kernels.cpu.launches` as a function; Numba is needed only where the disk doesn't have it."""
    made: Callable[..., int] = compile.load(
        "launches", partial(built, "cpu.launches"), lambda: import_module("octopus.kernels.cpu.launches").ENTRY
    )
    return made
