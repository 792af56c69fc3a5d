"""Kernels: the same operations for the GPU (`cuda`) and the CPU (`cpu`), over shared arithmetic (`geometry`)."""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def built(module: str, *given: Any) -> Callable[..., Any]:
    """What a module's `build` makes, imported only now, with the compiler."""
    made: Callable[..., Any] = import_module(f"octopus.kernels.{module}").build(*given)
    return made
