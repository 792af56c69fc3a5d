"""Arguments as keys: what a call was asked for, so that the next one like it finds what was made for it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

import numpy as np

from octopus.arrays.views import host_numbers

_TORCH = ("torch", "dtype"), ("torch", "device")
_FIXED = {str, bool, type(None), type}
_SIMPLE = {int, float, *_FIXED}


class UnreadableError(Exception):
    """An argument is nothing whose values are known."""


def reading(named: Iterable[tuple[str, Any]]) -> list[Any]:
    """Arguments as something that stays what it is, whatever becomes of the arrays or lists that they were.

    Raises
    ------
    UnreadableError
        For an array of objects; `InputError` for one on the GPU.
    """
    return [value if type(value) in _FIXED else _read(name, value) for name, value in named]


def _read(name: str, value: Any) -> Any:
    kind = type(value)
    if kind in _SIMPLE:
        return kind, value
    if isinstance(value, (tuple, list)):
        kinds = tuple(map(type, value))
        simple = _SIMPLE.issuperset(kinds)
        return kinds, tuple(value) if simple else tuple(_read(name, part) for part in value)
    if isinstance(value, dict):
        return kind, *value, *reading(value.items())
    if isinstance(value, (np.dtype, Enum)) or (kind.__module__, kind.__name__) in _TORCH:
        return kind, value
    found = value if kind is np.ndarray else host_numbers(value, name)
    if found.dtype.hasobject:
        raise UnreadableError
    return found.shape, found.dtype.str, found.tobytes()
