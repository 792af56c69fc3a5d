"""Enough of torch, on NumPy, for a frame's way into a detector; `install` puts it in torch's place."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np


class Dtype:
    """Of a tensor; its text is what `octopus.interop` reads."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return f"torch.{self.name}"


class Tensor:
    """A tensor over an array, always in host memory."""

    is_cuda = False
    device = SimpleNamespace(type="cpu")

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)
        self.shape, self.dtype = self.array.shape, Dtype(self.array.dtype.name)

    def is_contiguous(self) -> bool:
        return self.array.flags.c_contiguous

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def detach(self) -> Tensor:
        return self

    cpu = detach

    def numpy(self) -> np.ndarray:
        return self.array

    def to(self, device: Any) -> Tensor:
        assert device.type == "cpu"
        return self

    def reshape(self, *shape: Any) -> Tensor:
        return Tensor(self.array.reshape(*shape))

    def __getitem__(self, index: Any) -> Tensor:
        return Tensor(self.array[index])

    def __mul__(self, other: Tensor) -> Tensor:
        return Tensor(self.array * other.array)

    def __add__(self, other: Tensor) -> Tensor:
        return Tensor(self.array + other.array)


def install(monkeypatch: Any, gpu: bool = False) -> ModuleType:
    """Let `import torch` give the stand-in, and return it."""
    torch = ModuleType("torch")
    torch.__spec__, torch.__file__ = ModuleSpec("torch", None), "fake"
    torch.__version__ = "0.fake"
    torch.Tensor, torch.from_numpy = Tensor, Tensor
    torch.float32, torch.uint8 = Dtype("float32"), Dtype("uint8")
    torch.device = lambda kind: SimpleNamespace(type=kind)
    torch.empty = lambda shape, dtype, device: Tensor(np.full(shape, 77, dtype.name))
    torch.addcmul = lambda start, one, other: Tensor(start.array + one.array * other.array)
    torch.cuda = SimpleNamespace(is_available=lambda: gpu)
    torch.threads = 0
    torch.set_num_threads = lambda count: setattr(torch, "threads", count)
    flags = {"benchmark": True, "deterministic": False, "allow_tf32": True}
    torch.backends = SimpleNamespace(cudnn=SimpleNamespace(**flags))
    monkeypatch.setitem(sys.modules, "torch", torch)
    return torch
