"""Makes Numba's simulator wait for the threads of a block instead of asking them all the time; see `simulate`."""

from __future__ import annotations

import threading

from numba.cuda.simulator.kernel import BlockThread


def is_alive(thread: BlockThread) -> bool:
    """Whether a thread of a block is at work still, after waiting a little for its end.

    The simulator asks all threads in turn until they have ended or wait for each other. Without a pause that takes up
    to five times as long as all that the threads do.
    """
    if not thread.syncthreads_blocked:
        thread.join(2e-4)
    return threading.Thread.is_alive(thread)


def install() -> None:
    """Let the simulator of this process wait so."""
    BlockThread.is_alive = is_alive


def start(thread: BlockThread) -> None:
    """Start a thread of a block and wait for its end."""
    threading.Thread.start(thread)
    thread.join()


def one_by_one() -> None:
    """Let threads of this process's simulator run one after the other, for kernels in which none waits for another:
    hundreds at once take turns for most of the time."""
    BlockThread.start = start
