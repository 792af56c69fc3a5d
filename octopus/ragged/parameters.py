"""The parameters of operations on ragged batches: one number, or one per item, checked before any work."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.checks import check_tensor
from octopus.arrays.views import ArrayView, dtype_name, view
from octopus.errors import InputError, shown, shown_type

NAMES = {"multiply": ("gain",), "normalize": ("mean", "1 / std"), "threshold": ("level",), "gamma": ("exponent",)}


def checked(operation: str, values: Sequence[Any], items: int, device: str) -> list[NDArray[np.float32] | ArrayView]:
    """All parameters of an operation that works on a device: one float32 per item, as an array or a view on the GPU."""
    names = NAMES.get(operation, ())
    if len(values) != len(names):
        told = f" ({', '.join(names)})" if names else ""
        raise InputError(f"{operation} takes {len(names)} parameters{told}, found {len(values)}")
    found = [_parameter(name, value, items) for name, value in zip(names, values, strict=True)]
    if device == "cpu" and any(isinstance(each, ArrayView) for each in found):
        raise InputError("a parameter is in GPU memory but the batch is on the CPU; copy it to the host")
    return found


def _parameter(name: str, value: Any, items: int) -> NDArray[np.float32] | ArrayView:
    found = _described(name, value)
    if found.device == "cuda":
        if found.shape != (items,) or dtype_name(found.dtype) != "float32" or not found.contiguous:
            raise InputError(
                f"the {name} in GPU memory must be {items} contiguous float32, one per item, found {found.dtype} of "
                f"shape {found.shape}"
            )
        return found
    # A copy: page-locked memory of the caller's would be read after the call has returned.
    return np.array(np.broadcast_to(_single(name, found, items), (items,)), order="C")


def _single(name: str, found: ArrayView, items: int) -> NDArray[np.float32]:
    """Numbers on the host in float32, one or one per item."""
    numbers = found.numpy()
    if numbers.shape not in ((), (items,)) or numbers.dtype.kind not in "biuf":
        raise InputError(
            f"the {name} must be one number or {items}, one per item, found {numbers.dtype} of shape {numbers.shape}"
        )
    _refuse(name, ~np.isfinite(numbers), "is not a finite number")
    with np.errstate(over="ignore"):
        single: NDArray[np.float32] = np.asarray(numbers.astype(np.float32))
    _refuse(name, ~np.isfinite(single), "leaves the range of float32")
    return single


def inverse_std(value: Any, items: int, stream: Any = None) -> Any:
    """1 / std as `normalize` wants it: on the host checked; on the GPU made there, on the stream if there is one."""
    found = _described("std", value)
    if found.device == "cuda":
        return _inverse_there(found, stream)
    single = _single("std", found, items)
    _refuse("std", single <= 0, "is not positive; leave constant items as they are by giving them 1")
    with np.errstate(over="ignore"):
        inverse = np.float32(1) / single
    _refuse("std", ~np.isfinite(inverse), "is too small for float32 to hold its inverse")
    return inverse


def _described(name: str, value: Any) -> ArrayView:
    """View of a parameter that may also be a number or a list."""
    if isinstance(value, (int, float, list, tuple, np.number)):
        try:
            value = np.asarray(value)
        except (ValueError, TypeError, RuntimeError) as error:
            raise InputError(f"the {name} must be one number, or one per item: {error}") from None
    if value is None or isinstance(value, (str, bytes, dict)):
        raise InputError(f"the {name} must be one number, or one per item, found {shown(value)}")
    check_tensor(value, f"the {name}")
    return view(value, f"the {name}")


def _refuse(name: str, wrong: NDArray[np.bool_], why: str) -> None:
    """Raise `InputError` if any is wrong, with the first item."""
    if wrong.any():
        where = f" of item {int(np.argmax(wrong))}" if wrong.ndim else ""
        raise InputError(f"the {name}{where} {why}")


def _inverse_there(found: ArrayView, stream: Any) -> Any:
    current: Any = nullcontext()  # else the library queues its work there, so that the kernel behind it needn't wait
    if stream is not None and found.family == "torch":
        import torch

        current = torch.cuda.stream(torch.cuda.ExternalStream(int(stream.handle), found.owner.device))
    elif stream is not None and found.family == "cupy":
        import cupy

        current = cupy.cuda.ExternalStream(int(stream.handle))
    with current:
        try:
            return 1.0 / found.owner
        except TypeError:
            raise InputError(
                f"std on the GPU is {shown_type(found.owner)}, which can't be inverted there; give a tensor of "
                "torch, an array of CuPy, or numbers on the host"
            ) from None
