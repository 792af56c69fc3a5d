"""Checks that calls of all kinds share."""

from __future__ import annotations

from octopus.arrays.views import ArrayView, dtype_name
from octopus.errors import InputError

INT32_MAX = 2**31 - 1
MAX_SIDE = 2**24  # a float32 counts pixels exactly up to here


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """A word must be one of a few."""
    if value not in allowed:
        raise InputError(f"{name}={value!r} is unknown; use one of {', '.join(allowed)}")


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
