"""Threads that share the blocks of a CPU kernel.

A kernel counts its blocks in memory that all threads share: each takes the next one, so that no thread waits for one
that the machine keeps from running. The caller works, too, and is done when all blocks are; a helper that wakes up too
late finds nothing to do. Helpers sleep while there is no work, and a child process, which inherits none, starts its
own: a fork at any time is safe.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from array import array
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from octopus.errors import InputError, OutOfMemoryError, shown

log = logging.getLogger(__name__)

MAX_THREADS = 1024
TOLD = 256  # times that somebody is told of finished blocks, at most
QUOTA = Path("/sys/fs/cgroup/cpu.max")
_SETTINGS = ("OCTOPUS_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS")


class _Job:
    """A call that helpers may join until it is closed."""

    __slots__ = ("_arguments", "_done", "_helpers", "_kernel", "_lock", "_open", "over")

    def __init__(self, kernel: Callable[[int], Any], arguments: int) -> None:
        self._kernel, self._arguments = kernel, arguments
        self._lock, self._done = threading.Lock(), threading.Lock()
        self._done.acquire()
        self._open, self._helpers = True, 0
        self.over = False  # whether no thread works on it any more, nor will

    def join(self) -> None:
        with self._lock:
            if not self._open:
                return
            self._helpers += 1
        self._kernel(self._arguments)
        with self._lock:
            self._helpers -= 1
            if not self._open and not self._helpers:
                self._done.release()

    def close(self) -> None:
        """Close it to others, and wait for those who have joined, in the caller's memory; Ctrl-C may end it before."""
        with self._lock:
            self._open = False
            waits = self._helpers > 0
        if waits:
            self._done.acquire()
        self.over, self._kernel = True, _nothing  # helpers may find this job in the queue much later


def _nothing(_: int) -> None:
    """What is left of a call that is over, so that nothing it held stays with it."""


class _Pool:
    """Helpers of this process, started when they are first needed."""

    def __init__(self, wanted: int | None = None) -> None:
        self.wanted = wanted  # what somebody asked for, in this process or before it was forked
        self._count: int | None = None
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._helpers = 0
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """Threads of a call at most; found when first asked for, since a process learns late that it is a worker."""
        if self._count is None:
            self._count = default_threads() if self.wanted is None or _is_worker() else self.wanted
        return self._count

    @count.setter
    def count(self, count: int) -> None:
        self._count = self.wanted = count

    def run(self, kernel: Callable[[int], Any], arguments: int, threads: int) -> None:
        """Run a kernel on so many threads, the caller's among them, or on as many as the system allows."""
        if threads < 2:
            kernel(arguments)
            return
        if self._helpers < threads - 1:
            self._start(threads - 1)
        job = _Job(kernel, arguments)
        stopped: BaseException | None = None
        try:
            for _ in range(threads - 1):
                self._jobs.put(job)
            kernel(arguments)
        except BaseException as error:  # Ctrl-C
            stopped = error
        while not job.over:
            try:
                job.close()
            except BaseException as error:  # Ctrl-C again: the memory must stay until the helpers have left it
                stopped = error
        if stopped is not None:
            raise stopped

    def _start(self, helpers: int) -> None:
        with self._lock:
            while self._helpers < helpers:
                name = f"octopus-{self._helpers}"
                try:
                    threading.Thread(target=self._help, name=name, daemon=True).start()
                except RuntimeError:  # no more of them in this container, or while Python ends
                    return
                self._helpers += 1

    def _help(self) -> None:
        while True:
            self._jobs.get().join()


def launch(kernel: Callable[[int], Any], blocks: int, *values: int, threads: int | None = None) -> None:
    """Run a kernel from `compile.load` on up to so many of this process's threads, as far as there are blocks for them.
    Its arguments are the address of the counter of its blocks, their number, and `values`: sizes, switches, and
    addresses of what the caller keeps alive. `OutOfMemoryError` if it makes the number of blocks negative."""
    words = array("q", (0, blocks, *values, 0))
    words[0] = words.buffer_info()[0] + 8 * (len(words) - 1)
    start(kernel, words, 0, threads or _pool.count)


def start(kernel: Callable[[int], Any], words: array[int], first: int, threads: int) -> None:
    """As `launch`, of arguments that are written: those from the word numbered `first` on."""
    threads = min(threads, words[first + 1])
    _pool.run(kernel, words.buffer_info()[0] + 8 * first, threads)
    if words[first + 1] < 0:
        raise refused(threads)


def refused(threads: int) -> OutOfMemoryError:
    return OutOfMemoryError(
        f"a kernel was refused memory to work in, while {threads} threads were at work; use fewer threads, or ask "
        "for results with shorter rows"
    )


def launch_telling(
    kernel: Callable[[int], Any], blocks: int, *values: int, threads: int, told: Callable[[int], Any]
) -> None:
    """As `launch`; in between `told` is called, in this thread, with how many of the first blocks are done. Behind
    `values` the kernel gets the address of a byte for each block, which it makes 1 when that is done, and after how
    many blocks it returns: the caller's thread does few at a time, the others all that are left."""
    done, caller, first = array("B", bytes(blocks)), threading.get_ident(), 0
    everything = array("q", (0, blocks, *values, done.buffer_info()[0], blocks, 0))
    everything[0] = everything.buffer_info()[0] + 8 * (len(everything) - 1)
    few = everything[:]
    few[-2] = -(-blocks // TOLD)

    def work(_: int) -> None:
        nonlocal first
        if threading.get_ident() != caller:
            kernel(everything.buffer_info()[0])
            return
        while everything[-1] < blocks:
            kernel(few.buffer_info()[0])
            before = first
            with suppress(ValueError):  # all are done
                first = done.index(0, first)
            if before < first:
                told(first)

    _pool.run(work, 0, min(threads, _pool.count, blocks))


def share(work: Iterable[Callable[[], Any]], most: int) -> None:
    """Do work that releases Python's lock on up to `most` threads; the first error ends all and is raised."""
    left, errors = deque(work), list[BaseException]()

    def do(_: int) -> None:
        while not errors:
            try:
                piece = left.popleft()
            except IndexError:
                return
            try:
                piece()
            except BaseException as error:
                errors.append(error)

    _pool.run(do, 0, min(most, _pool.count, len(left)))
    if errors:
        raise errors[0]


def set_num_threads(count: int) -> int:
    """Make calls on the CPU use up to `count` threads of this process.

    A process that is forked from this one keeps the number, unless it is a worker.

    The default is what `OCTOPUS_NUM_THREADS` says, else `NUMBA_NUM_THREADS`, else `OMP_NUM_THREADS`, else the number of
    cores that this process may use; in a worker of `multiprocessing` (such as a `DataLoader`'s) it is 1, since there
    are as many workers as cores.

    Parameters
    ----------
    count : int
        1 to 1024; 1 works in the calling thread alone.

    Returns
    -------
    int
        The number before.

    Raises
    ------
    InputError
        For any other number.
    """
    whole = isinstance(count, int) or hasattr(count, "__index__")
    if isinstance(count, bool) or not whole or not 1 <= int(count) <= MAX_THREADS:
        raise InputError(f"the number of threads must be an integer from 1 to {MAX_THREADS}, found {shown(count)}")
    before = _pool.count
    _pool.count = int(count)
    return before


def get_num_threads() -> int:
    """How many threads of this process a call on the CPU uses at most; see `set_num_threads`.

    Returns
    -------
    int
        What `set_num_threads` set, or its default. A call with little to do uses fewer.

    Examples
    --------
    >>> before = set_num_threads(2)
    >>> get_num_threads()
    2
    >>> set_num_threads(before)
    2
    """
    return _pool.count


def default_threads() -> int:
    """Threads that are used unless somebody sets another number; see `set_num_threads`."""
    if _is_worker():
        return 1
    for name in _SETTINGS:
        text = os.environ.get(name, "")
        if text.isdigit() and 1 <= int(text) <= MAX_THREADS:
            return int(text)
        if text and name == _SETTINGS[0]:
            log.warning("%s=%s is not a number from 1 to %d and is ignored", name, shown(text), MAX_THREADS)
    return cores()


def _is_worker() -> bool:
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.parent_process() is not None


def cores() -> int:
    """Cores that this process may use, by its affinity and its container's quota."""
    allowed = getattr(os, "sched_getaffinity", None)
    count = len(allowed(0)) if allowed else os.cpu_count() or 1
    return min(count, quota() or count)


def quota() -> int | None:
    """Whole cores that the container may use in the mean, None without a quota."""
    try:
        parts = QUOTA.read_text(encoding="ascii").split()
    except OSError:
        return None
    limited = len(parts) == 2 and parts[0].isdigit()
    return max(1, int(parts[0]) // int(parts[1])) if limited else None


def _renew() -> None:
    """In a child process: the helpers stayed behind."""
    global _pool
    _pool = _Pool(_pool.wanted)


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
