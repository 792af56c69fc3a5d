"""Page-locked memory that the host writes and the GPU copies, and which stays as it is until it is copied."""

import weakref
from typing import Any

import numpy as np

from octopus.backends.cuda import memory
from octopus.backends.cuda.device import current

KEPT_BYTES = 1 << 26  # a larger slot is given back once much less is asked for
LEAST_BYTES = 1 << 14


class Slot:
    """A block of page-locked memory, `array` at `address`, which is given back once the copies from it are done."""

    def __init__(self, nbytes: int) -> None:
        self.array = memory.pinned((nbytes,), np.uint8)
        self.address = int(self.array.ctypes.data)
        self._copied = current().create_event()
        self._kept: tuple[Any, ...] = ()
        self._twin: memory.DeviceArray | None = None
        weakref.finalize(self, self._copied.sync).atexit = False

    def twin(self, queue: Any) -> int:
        """Address of device memory of the same size, free whenever this is: reserved once, on a stream of cuda.core. It
        is given back when all work on it is done, then on the default stream: the caller's may be gone by then."""
        if self._twin is None:
            self._twin = memory.DeviceArray((self.array.size,), np.uint8, stream=queue)
            self._twin.release_on(current().default_stream)
        return self._twin.pointer

    def wait(self) -> None:
        """Wait until what was written here before has been copied, and let go of what had to stay until then."""
        self._copied.sync()
        self._kept = ()

    def sent(self, queue: Any, *kept: Any) -> None:
        """Say that the work now on a stream is the last that reads this memory, and objects that it needs."""
        queue.record(self._copied)
        self._kept = kept


class Staging:
    """A few slots, used in turn, so that the host may write the next one while the GPU copies. After `slots` calls the
    host waits for the first of them. All are made now with `nbytes`, or each when it is taken."""

    def __init__(self, slots: int, nbytes: int = 0) -> None:
        self._slots: list[Slot | None] = [Slot(nbytes) if nbytes else None for _ in range(slots)]
        self._next, self._fixed = 0, bool(nbytes)

    def take(self, nbytes: int) -> Slot:
        """A slot of at least so many bytes, free to be written; the others let go of what was copied."""
        for other in self._slots:
            if other is not None and other._kept and other._copied.is_done:
                other._kept = ()
        number, self._next = self._next, (self._next + 1) % len(self._slots)
        slot = self._slots[number]
        if slot is not None:
            slot.wait()
            if self._fixed or nbytes <= slot.array.size <= max(KEPT_BYTES, 8 * nbytes):
                return slot
            self._slots[number] = None
        size = max(LEAST_BYTES, nbytes if nbytes > KEPT_BYTES else 1 << (nbytes - 1).bit_length())
        slot = self._slots[number] = Slot(size)
        return slot
