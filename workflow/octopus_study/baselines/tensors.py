"""Inputs and outputs of a graph: a name, and memory on the host or on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from octopus.arrays.views import view


@dataclass(frozen=True)
class Tensor:
    """Memory that a graph reads or writes."""

    name: str  # in the graph
    pointer: int
    shape: tuple[int, ...]
    dtype: np.dtype
    owner: Any  # keeps the memory alive


def tensor(name: str, array: Any) -> Tensor:
    """Describe an array under a graph's name for it."""
    described = view(array, name)
    return Tensor(name, described.pointer, described.shape, described.dtype, array)


class Staged:
    """An array on the host and, for a GPU, its copy there; on a CPU both are the same.

    Parameters
    ----------
    host : ndarray
        Page-locked if a GPU is to read it.
    """

    def __init__(self, host: np.ndarray, on_gpu: bool) -> None:
        self.host = host
        self._on_gpu = on_gpu
        self.device: Any = host
        if on_gpu:
            from octopus.backends.cuda.memory import DeviceArray

            self.device = DeviceArray(host.shape, host.dtype)

    def send(self) -> None:
        """Queue the copy to the device on the default stream."""
        if self._on_gpu:
            self.device.copy_from_host(self.host)


def staging(shape: tuple[int, ...], dtype: Any, on_gpu: bool) -> Staged:
    """Uninitialised memory for an input, allocated once."""
    if not on_gpu:
        return Staged(np.empty(shape, dtype), on_gpu)
    from octopus.backends.cuda.memory import pinned

    return Staged(pinned(shape, dtype), on_gpu)
