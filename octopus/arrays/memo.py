"""How a call is entered: apart from what torch compiles, and by a key under which what was prepared is found again.

A key holds all that checks look at: of arrays everything but their values and addresses, of which only the last four
bits count, of options their values.
"""

from collections.abc import Callable, Hashable
from enum import Enum
from functools import wraps
from sys import modules
from typing import Any, TypeVar

import numpy as np

from octopus.arrays.views import ArrayView, address_of, host_numbers

Function = TypeVar("Function", bound=Callable[..., Any])


def dynamo_disabled(function: Function) -> Function:
    """Make torch.compile break its graph at calls of a function, instead of tracing what is inside. Costs a look into a
    dict where torch.compile was not used, and never imports torch. The marks are those that `torch.compiler.disable`
    leaves; it can't be applied here, since torch may be imported later than this."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return apart(function)(*args, **kwargs) if TRACER in modules else function(*args, **kwargs)

    return marked(call)  # type: ignore[return-value]


def marked(function: Function) -> Function:
    """The same for a function that looks for `TRACER` itself, which takes half a microsecond less."""
    function._torchdynamo_disable = True  # type: ignore[attr-defined]
    function._torchdynamo_disable_msg = (  # type: ignore[attr-defined]
        "Octopus works on memory, which torch.compile can't trace"
    )
    return function


TRACER = "torch._dynamo"
_known: dict[Callable[..., Any], Callable[..., Any]] = {}


@marked
def apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, during which nothing is traced, nor in what it calls."""
    known = _known.get(function)
    if known is None:
        disable = getattr(modules[TRACER], "disable", None)
        if disable is None:  # another thread is just importing it
            return function
        known = _known[function] = disable(function)
    return known


MOST = 512  # things that a memo keeps, the newest
ALIGNMENT = 15  # these bits of an address decide which kernel reads it

PLAIN = frozenset({str, int, float, bool, type(None), type})  # types of options that are their own key

_TORCH = ("torch", "dtype"), ("torch", "device")


class UnreadableError(Exception):
    """An argument that no key stands for, such as a tensor without values or an array of objects: nothing is kept."""


def keep(memo: dict[Any, Any], key: Any, value: Any, most: int = MOST) -> Any:
    """Put a value into a memo, whose oldest goes if there are too many, and return it."""
    if len(memo) >= most:
        memo.pop(next(iter(memo)), None)
    memo[key] = value
    return value


def read(array: Any, described: Callable[[Any], ArrayView], key: list[Any], addresses: list[int]) -> Any:
    """Add what an array looks like to a key, and its addresses to others; returns what keeps it alive. Arrays of NumPy
    and torch are read by their attributes; `described` makes the view of any other."""
    kind = type(array)
    if kind in _tensors:
        address = array.data_ptr()
        if not address:
            raise UnreadableError
        # Only values that lie apart, as an imaginary part does, can be such as are to be negated when read.
        whole = array.is_contiguous() or (array.stride(), array.is_neg())
        key += array.shape, whole, array.dtype, array.get_device(), array.requires_grad, address & ALIGNMENT
        addresses.append(address)
        return array
    if kind is np.ndarray:
        address = address_of(array)
        key += array.shape, array.strides, array.dtype, array.flags.writeable, address & ALIGNMENT
        addresses.append(address)
        return array
    if (torch := modules.get("torch")) is not None and kind is torch.Tensor:
        _tensors.add(kind)
        read_directly.add(kind)
        inner = getattr(torch, "_C", None)
        modes[:] = (getattr(inner, name, bool) for name in ("_len_torch_dispatch_stack", "_is_tracing"))
        return read(array, described, key, addresses)
    found = described(array)
    key += found.family, found.layout
    for plane in found.planes:
        key += plane.ordinal, plane.after, plane.pointer & ALIGNMENT
        addresses.append(plane.pointer)
    return found


_tensors: set[type] = set()  # torch's own, once there is one; what is derived from it may read otherwise
read_directly: set[type] = {np.ndarray}  # types of arrays that are no view's, nor an image of Pillow
modes: list[Callable[[], object]] = [bool, bool]  # torch's: true if it may record what is done to tensors


def frozen(name: str, value: Any) -> Hashable:
    """An option as something that stays what it is, whatever becomes of the array or list that it was."""
    kind = type(value)
    if kind in PLAIN:
        return kind, value
    if isinstance(value, (tuple, list)):
        kinds = tuple(map(type, value))
        simple = PLAIN.issuperset(kinds)
        return kind, kinds, tuple(value) if simple else tuple(frozen(name, part) for part in value)
    if isinstance(value, dict):
        return kind, *((key, frozen(key, part)) for key, part in value.items())
    if isinstance(value, (np.dtype, Enum)) or (kind.__module__, kind.__name__) in _TORCH:
        return kind, value
    found = value if kind is np.ndarray else host_numbers(value, name)
    if found.dtype.hasobject:
        raise UnreadableError
    return found.shape, found.dtype.str, found.tobytes()
