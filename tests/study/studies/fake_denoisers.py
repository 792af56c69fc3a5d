"""Stand-ins for PyTorch and deepinv: a network that splits as DRUNet does, on NumPy arrays that answer like tensors."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

HOME = "fake_deepinv_drunet"


class Tensor(np.ndarray):
    """An array with the few methods of a tensor that are called."""

    def to(self, device: str) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> np.ndarray:
        return np.asarray(self)

    def split(self, count: int) -> list[Tensor]:
        return [self[start : start + count] for start in range(0, len(self), count)]


def tensor(array: Any) -> Tensor:
    return np.asarray(array, np.float32).view(Tensor)


class Gpu:
    """Its allocator's peak is the values of the largest forward so far."""

    def __init__(self) -> None:
        self.peak = 0
        self.emptied = 0

    def is_available(self) -> bool:
        return True

    def synchronize(self) -> None:
        """Nothing runs beside the host."""

    def empty_cache(self) -> None:
        self.emptied += 1

    def reset_peak_memory_stats(self) -> None:
        self.peak = 0

    def mem_get_info(self) -> tuple[int, int]:
        return 1_000_000 - 2 * self.peak, 1_000_000

    def memory_allocated(self) -> int:
        return 0

    def max_memory_allocated(self) -> int:
        return self.peak

    def max_memory_reserved(self) -> int:
        return 2 * self.peak


class Network:
    """Halves all values; its peak is what it has to hold at once."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu, self.training = gpu, True

    def eval(self) -> Network:
        self.training = False
        return self

    def requires_grad_(self, wanted: bool) -> Network:
        return self

    def to(self, device: str) -> Network:
        return self

    def forward_unet(self, images: Tensor) -> Tensor:
        self.gpu.peak = max(self.gpu.peak, images.size)
        return images[:, :3] / 2

    def __call__(self, images: Tensor, sigma: float) -> Tensor:
        assert not self.training
        if any(side % 8 for side in images.shape[2:]):
            return sys.modules[HOME].test_onesplit(self.forward_unet, images, refield=64)
        return self.forward_unet(images)


Network.__module__ = HOME


def onesplit(model: Any, images: Tensor, refield: int) -> Tensor:
    """Halves instead of quadrants, which don't overlap."""
    middle = images.shape[-1] // 2
    return tensor(np.concatenate([model(images[..., :middle]), model(images[..., middle:])], -1))


def pad(images: Tensor, margins: tuple[int, int, int, int], mode: str) -> Tensor:
    left, right, top, bottom = margins
    return tensor(np.pad(images, ((0, 0), (0, 0), (top, bottom), (left, right)), mode="edge"))


@contextmanager
def packages() -> Iterator[tuple[Any, Any]]:
    """A module torch and a module deepinv.models; the home of DRUNet's class can be imported meanwhile."""
    gpu = Gpu()
    torch = SimpleNamespace(
        __version__="0",
        cuda=gpu,
        random=SimpleNamespace(fork_rng=lambda devices: nullcontext()),
        manual_seed=lambda seed: None,
        no_grad=nullcontext,
        from_numpy=tensor,
        full_like=lambda like, value: tensor(np.full_like(like, value)),
        cat=lambda parts, axis=0: tensor(np.concatenate(parts, axis)),
        nn=SimpleNamespace(functional=SimpleNamespace(pad=pad)),
        backends=SimpleNamespace(cudnn=SimpleNamespace(enabled=True, benchmark=False, version=lambda: 90000)),
    )
    home = ModuleType(HOME)
    home.test_onesplit = onesplit
    sys.modules[HOME] = home
    make = lambda *_, **__: Network(gpu)  # noqa: E731
    try:
        yield torch, SimpleNamespace(DRUNet=make, UNet=make, DnCNN=make)
    finally:
        del sys.modules[HOME]
