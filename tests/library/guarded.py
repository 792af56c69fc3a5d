"""Memory between two pages that nobody may touch: who reads or writes one byte too far dies of SIGSEGV."""

from __future__ import annotations

import ctypes
import math
import mmap

import numpy as np

PAGE = mmap.PAGESIZE
CANARY = 0xA5  # in the bytes between the array and the page boundary that it doesn't touch
NOTHING, READ, BOTH = 0, mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE


class Guard:
    """Pages to lay arrays in, one for each name at a time, always at one of their two ends."""

    last: Region  # that of the array made last

    def __init__(self) -> None:
        self._regions: dict[tuple[str, int], Region] = {}

    def lay(self, name: str, nbytes: int, at_end: bool) -> Region:
        """Room for so many bytes, which touches the forbidden page before it or the one after it."""
        pages = max(-(-nbytes // PAGE), 1)
        region = self._regions.get((name, pages))
        if region is None:
            region = self._regions[name, pages] = Region(pages)
        region.use(nbytes, at_end)
        self.last = region
        return region

    def array(self, name: str, shape, dtype, at_end: bool, off: int = 0) -> np.ndarray:
        """An array of the canary's bytes; `off` bytes away from its page boundary, to spoil its alignment."""
        dtype = np.dtype(dtype)
        region = self.lay(name, math.prod(shape) * dtype.itemsize + off, at_end)
        start = 0 if at_end else off
        return np.ndarray(shape, dtype, region.bytes, start)


class Region:
    """Some pages between two that nobody may touch."""

    def __init__(self, pages: int) -> None:
        self._map = mmap.mmap(-1, (pages + 2) * PAGE)
        self._size = pages * PAGE
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._map)) + PAGE
        self._all = np.frombuffer(self._map, np.uint8)[PAGE : PAGE + self._size]
        for address in (self._address - PAGE, self._address + self._size):
            _protect(address, PAGE, NOTHING)
        self.use(0, False)

    def use(self, nbytes: int, at_end: bool) -> None:
        """Fill all with the canary and choose the end."""
        self.allow(BOTH)
        start = self._size - nbytes if at_end else 0
        self._all[:] = CANARY
        self.bytes = self._all[start : start + nbytes]
        self._spare = self._all[:start], self._all[start + nbytes :]

    def allow(self, rights: int) -> None:
        """What may be done with the pages from now on."""
        _protect(self._address, self._size, rights)

    def is_intact(self) -> bool:
        """Whether the bytes beside the array are as they were."""
        return all((spare == CANARY).all() for spare in self._spare)


def _protect(address: int, size: int, rights: int) -> None:
    if _libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), rights):
        raise OSError(ctypes.get_errno(), "mprotect")


_libc = ctypes.CDLL(None, use_errno=True)
