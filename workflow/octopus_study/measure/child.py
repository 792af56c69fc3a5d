"""What a process that measures for another one does at its beginning."""

from __future__ import annotations

import ctypes
import signal
from contextlib import suppress

_PR_SET_PDEATHSIG = 1  # of prctl(2)


def end_with_parent() -> None:
    """Have Linux kill this process when its parent ends, so that nobody keeps the GPU busy for a study that is over."""
    with suppress(OSError, AttributeError):  # elsewhere it goes on to its end
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
