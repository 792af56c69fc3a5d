"""Kernels: the same operations for the GPU (`cuda`) and the CPU (`cpu`), over shared arithmetic (`geometry`)."""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def built(path: str, *given: Any) -> Callable[..., Any]:
    """What a module's `build`, or its function behind a colon, makes; imported only now, with the compiler."""
    module, _, function = path.partition(":")
    made: Callable[..., Any] = getattr(import_module(f"octopus.kernels.{module}"), function or "build")(*given)
    return made
