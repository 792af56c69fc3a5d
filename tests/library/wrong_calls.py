"""How the tables of wrong calls are written: a line per value of an argument, and what must come of it."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

from octopus import DeviceError, InputError, OutOfMemoryError, RaggedBatch


class Later(NamedTuple):
    """A value that is made when it is needed, since it takes a package."""

    make: Callable[..., Any]
    package: str = ""
    name: str = ""

    def made(self) -> Any:
        return self.make(*([pytest.importorskip(self.package)] if self.package else []))

    def __repr__(self) -> str:
        return self.name


class Error(NamedTuple):
    """The call is refused, by an error of this kind with these words in its message."""

    kind: type[Exception]
    words: str


NO_GPU = Error(DeviceError, "device='cuda' was asked for")  # what a machine without one says
TOO_MUCH = Error(OutOfMemoryError, "bytes are needed on the host")
python = partial(Error, TypeError)  # Python's own, about a keyword or a number of arguments


class Same(NamedTuple):
    """The call is accepted, and answers like the one that has these arguments instead, up to a difference."""

    given: dict[str, Any]
    within: float = 0.0


class Equal(NamedTuple):
    """The call is accepted, and this is its answer."""

    answer: Any


class Row(NamedTuple):
    """A call and what must come of it."""

    name: str
    call: Callable[..., Any]
    given: dict[str, Any]
    expected: Any


def rows(name: str, call: Callable[..., Any], argument: str, *table: tuple[Any, Any]) -> list[Row]:
    """A row per value of one argument; if that is "**", the values are dicts of several arguments. What is expected is
    an `Error`, `Same` or `Equal`; mere words stand for an `InputError`."""
    found = []
    for value, expected in table:
        given = value if argument == "**" else {argument: value}
        shown = ",".join(f"{key}={_shown(one)}" for key, one in given.items())
        wanted = Error(InputError, expected) if isinstance(expected, str) else expected
        found.append(Row(f"{name}({shown})", call, given, wanted))
    return found


def torch(make: Callable[[Any], Any], name: str) -> Later:
    """Something made of torch."""
    return Later(make, "torch", name)


def same(**given: Any) -> Same:
    return Same(given)


def read_only(array):
    """A copy that may not be written."""
    array = array.copy()
    array.flags.writeable = False
    return array


def ready(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments, those made that need a package."""
    return {name: value.made() if isinstance(value, Later) else value for name, value in given.items()}


def equal(found: Any, right: Any, within: float = 0.0) -> bool:
    """Whether two answers are the same, of whatever library; floats up to a difference."""
    if isinstance(found, tuple):
        return len(found) == len(right) and all(map(equal, found, right))
    if isinstance(found, RaggedBatch):
        return found.offsets.tolist() == right.offsets.tolist() and equal(found.values, right.values)
    found, right = np.asarray(found), np.asarray(right)
    if found.shape != right.shape or found.dtype != right.dtype:
        return False
    return np.allclose(found, right, 0, within) if within else np.array_equal(found, right, found.dtype.kind == "f")


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 4:
        return f"{type(value).__name__}-{value.dtype}{value.shape}".replace(" ", "")
    text = re.sub(r" at 0x\w+", "", repr(value))  # each of the processes that share the tests has another address
    return " ".join(text.split())[:40]
