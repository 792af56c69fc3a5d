"""Functions that torch.compile calls as they are: what they do with memory is no graph of torch's operations."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from sys import modules
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def dynamo_disabled(function: Function) -> Function:
    """Make torch.compile break its graph at calls of a function, instead of tracing what is inside.

    Costs a look into a dict where torch.compile was not used, and never imports torch. The marks are those that
    `torch.compiler.disable` leaves; it can't be applied here, since torch may be imported later than this.
    """

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
