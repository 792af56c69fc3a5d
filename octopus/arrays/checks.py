"""Checks that calls of all kinds share."""

from __future__ import annotations

import os
import sys
import warnings
import weakref
from collections.abc import Iterable
from difflib import get_close_matches
from types import TracebackType
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from octopus.arrays.views import ArrayView, dtype_name, family
from octopus.errors import InputError, shown


class TorchDevice(Protocol):
    """A `torch.device`, which need not be installed."""

    @property
    def type(self) -> str:
        """Such as "cuda"."""

    @property
    def index(self) -> int | None:
        """The GPU's number."""


Device: TypeAlias = Literal["auto", "cpu", "cuda"] | str | TorchDevice  # str: such as "cuda:0"

INT32_MAX = 2**31 - 1
MAX_SIDE = 2**24  # a float32 counts pixels exactly up to here


_hinted: set[str] = set()


def check_choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    """A word must be one of a few."""
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name}={shown(value)} is unknown; use one of {', '.join(allowed)}")


def check_known(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Keyword arguments must be those of a function; raises `TypeError`, as Python does."""
    for name in given:
        if name not in (names := tuple(known)):
            near = get_close_matches(name, names, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")


def checked_size(size: Any) -> tuple[int, int]:
    """Height and width of a result: a pair of positive integers, or one for a square."""
    sides = size.tolist() if isinstance(size, np.ndarray) else size
    if is_count(sides):
        sides = (sides, sides)
    good = isinstance(sides, (tuple, list)) and len(sides) == 2
    if not good or not all(is_count(side) and side > 0 for side in sides):
        raise InputError(f"size must be (height, width) in positive integers, or one for a square, found {shown(size)}")
    return int(sides[0]), int(sides[1])


def is_count(value: Any) -> bool:
    """Whether a value is one integer, of Python or NumPy."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def switch(name: str, value: Any) -> bool:
    """True or False, of Python or NumPy."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} must be True or False, found {shown(value)}")
    return bool(value)


def dtype_text(dtype: Any, dtypes: tuple[str, ...]) -> Any:
    """The name of a dtype of NumPy or torch, if it is one; to be checked. `dtypes` are known by their names."""
    text = str(dtype).removeprefix("torch.")
    if dtype is None or text in dtypes:  # NumPy takes None for float64
        return None if dtype is None else text
    try:
        return str(np.dtype(dtype).name)
    except TypeError:
        return text


def of_dtype(array: ArrayView, dtypes: tuple[str, ...]) -> bool:
    """Whether the elements are of one of a few dtypes, in the machine's byte order."""
    return dtype_name(array.dtype) in dtypes and array.dtype.isnative


def check_readable(array: ArrayView, name: str, dtypes: tuple[str, ...]) -> None:
    """An array that a kernel reads where it lies must be contiguous and of one of a few dtypes."""
    if not array.contiguous or not of_dtype(array, dtypes):
        raise InputError(
            f"{name} on the GPU must be contiguous and one of {', '.join(dtypes)}, "
            f"found {array.dtype} with strides {array.strides} bytes"
        )


def check_dense(array: Any, name: str) -> None:
    """A tensor of torch must be dense; anything else may pass."""
    if family(array) == "torch" and str(getattr(array, "layout", "torch.strided")) != "torch.strided":
        raise InputError(f"{name} is a sparse tensor ({array.layout}); make it dense first: .to_dense()")


def check_tensor(array: Any, name: str) -> None:
    """A tensor of torch must be dense and without a gradient; anything else may pass."""
    check_dense(array, name)
    if family(array) == "torch" and getattr(array, "requires_grad", False):
        raise InputError(f"no gradient passes through Octopus, but {name} requires one; pass it with .detach()")


def check_stream(stream: Any, device: str) -> None:
    """A stream belongs to a GPU; a call that works on the CPU would ignore it."""
    if stream is not None and device == "cpu":
        raise InputError("stream is of a GPU but this call works on the CPU; leave stream out")


def check_apart(out: ArrayView, name_of_out: str = "out", /, **others: ArrayView | None) -> None:
    """A result must not lie in memory that the call reads while it writes."""
    first, last = out.extent
    for name, array in others.items():
        if array is None or array.device != out.device:
            continue
        for plane in array.planes:
            begin, end = plane.extent
            if begin < last and first < end:
                raise InputError(
                    f"{name_of_out} lies in the memory of {name}, which is read while that is written; pass other "
                    "memory"
                )


def hint_once(name: str, message: str) -> None:
    """Warn of what is legal but seldom meant, once per process, at the line outside the library that caused it."""
    if name in _hinted:
        return
    _hinted.add(name)
    depth, caller = 1, sys._getframe()
    while caller is not None and caller.f_globals.get("__name__", "").partition(".")[0] in ("octopus", "torch"):
        depth, caller = depth + 1, caller.f_back  # type: ignore[assignment]
    warnings.warn(message, UserWarning, stacklevel=depth)


class OneAtATime:
    """`with` this, one thread uses what belongs to a plan; a second one is refused, since both would write there.

    Attributes
    ----------
    free : list
        Of one element while no thread is inside; to take it and to put it back are atomic.

    Raises
    ------
    InputError
        If another thread is inside.
    """

    def __init__(self) -> None:
        self.free = [True]
        _all.add(self)

    def __reduce__(self) -> tuple[type[OneAtATime], tuple[()]]:
        """In a copy no thread is inside."""
        return OneAtATime, ()

    def __enter__(self) -> None:
        try:
            self.free.pop()
        except IndexError:
            raise at_work() from None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.free.append(True)


def at_work() -> InputError:
    """What a second thread is told."""
    return InputError(
        "this plan is at work in another thread, and both would write to one memory; make a plan per thread"
    )


_all: weakref.WeakSet[OneAtATime] = weakref.WeakSet()


def _free_all() -> None:
    """In a child process: the threads that were at work stayed behind."""
    for alone in _all:
        alone.free[:] = [True]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
