"""What a process that measures for another one does at its beginning and at its end."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

_PR_SET_PDEATHSIG = 1  # of prctl(2)


def end_with_parent() -> None:
    """Have Linux kill this process when its parent ends, so that nobody keeps the GPU busy for a study that is over."""
    with suppress(OSError, AttributeError):  # elsewhere it goes on to its end
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def end_at_once() -> NoReturn:
    """End this process, whose answer is written, without what libraries do at an exit.

    Some of those that are measured abort there ("free(): invalid pointer", once in a few runs), and a study whose rows
    were complete would be lost.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)
