"""Enough of torch, on NumPy, for a frame's way into a detector; `install` puts it in torch's place."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[2] / "library"))
import fake_torch
from fake_torch import Dtype


class Tensor(fake_torch.Tensor):
    """A tensor in host memory that can be computed with."""

    def _made(self, array: np.ndarray) -> Tensor:
        return Tensor(array)

    def to(self, device: Any) -> Tensor:
        assert device.type == "cpu"
        return self

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
