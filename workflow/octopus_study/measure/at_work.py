"""Which method is at work, written where another process can read it; and methods that may not work any more.

Methods are other people's code: one may end the process, or never return. Whoever started the process finds here whose
fault that was, see :mod:`octopus_study.cli.watch`.
"""

import json
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path

from octopus_study.errors import Unavailable

BOARD, REFUSED = ("OCTOPUS_AT_WORK", "OCTOPUS_REFUSED")  # variables of the environment: a file, and reasons by name
_BYTES = 256
_AGAIN = "-again"
_entries = count(1)


@contextmanager
def at_work(name: str) -> Iterator[None]:
    """Name a method while its code runs. One that asks Python to exit, or that ended a process of this study before, is
    `Unavailable`, and nothing else ends."""
    name = name.removesuffix(_AGAIN)
    if name in _refused():
        raise Unavailable(_refused()[name])
    board = _board()
    if board is not None:
        board[:] = f"{next(_entries)} {name}".encode()[:_BYTES].ljust(_BYTES)
    try:
        yield
    except SystemExit as error:
        raise Unavailable(f"it asked Python to exit with {error.code}") from None
    finally:
        if board is not None:
            board[:] = bytes(_BYTES)


def make_board(path: Path) -> None:
    """Create an empty board."""
    path.write_bytes(bytes(_BYTES))


def read_board(path: Path) -> tuple[str, str]:
    """Return what is written on a board, which is new for each entry, and the method that is named there."""
    entry = path.read_bytes().rstrip(b"\0 ").decode(errors="replace")
    return entry, entry.partition(" ")[2]


@cache
def _board() -> mmap.mmap | None:
    path = os.environ.get(BOARD)
    if not path:
        return None
    with open(path, "r+b") as file:
        return mmap.mmap(file.fileno(), _BYTES)


@cache
def _refused() -> dict[str, str]:
    return json.loads(os.environ.get(REFUSED, "{}"))
