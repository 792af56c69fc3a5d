"""Stand-ins for PyTorch and deepinv: a network that splits as DRUNet does, on NumPy arrays that answer like tensors."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.machinery import ModuleSpec
from multiprocessing.connection import Client, Listener
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import tiny_torch

HOME = "fake_deepinv_drunet"


class Tensor(tiny_torch.Tensor):
    """Of images."""

    def relu_(self) -> Tensor:
        return tensor(np.maximum(self, 0))

    def split(self, count: int) -> list[Tensor]:
        return [self[start : start + count] for start in range(0, len(self), count)]


def tensor(array: Any) -> Tensor:
    return np.asarray(array, np.float32).view(Tensor)


def gpu() -> SimpleNamespace:
    """`torch.cuda` of one GPU: its allocator's peak is the values of the largest forward so far."""
    made = SimpleNamespace(
        peak=0, emptied=0, is_available=lambda: True, device_count=lambda: 1, synchronize=lambda: None,
        memory_allocated=lambda: 0, max_memory_allocated=lambda: made.peak, max_memory_reserved=lambda: 2 * made.peak,
        mem_get_info=lambda: (1_000_000 - 2 * made.peak, 1_000_000),
    )  # fmt: skip
    made.empty_cache = lambda: setattr(made, "emptied", made.emptied + 1)
    made.reset_peak_memory_stats = lambda: setattr(made, "peak", 0)
    return made


class Network:
    """Halves all values; its peak is what it has to hold at once."""

    def __init__(self, gpu: SimpleNamespace) -> None:
        self.gpu, self.training = gpu, True

    def eval(self) -> Network:
        self.training = False
        return self

    def to(self, device: str) -> Network:
        return self

    requires_grad_ = to

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


def connected(address: tuple[str, int]) -> Any:
    """The other process, which may begin later."""
    for _ in range(100):
        try:
            return Client(address)
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise TimeoutError


class Context:
    """deepinv's `DistributedContext`: a process of some, which its environment numbers."""

    def __enter__(self) -> Context:
        self.rank, self.count = (int(os.environ.get(name, other)) for name, other in (("RANK", 0), ("WORLD_SIZE", 1)))
        address = "127.0.0.1", int(os.environ.get("MASTER_PORT", 0))
        self.other = None
        if self.count > 1:
            self.other = connected(address) if self.rank else Listener(address).accept()
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left behind."""

    def all_reduce(self, values: np.ndarray) -> Tensor:
        if self.other is None:
            return tensor(values)
        self.other.send(np.asarray(values))
        return tensor(values + self.other.recv())


def distribute(network: Network, context: Context, max_batch_size: int, **tiling: object) -> Any:
    """Four strips, which processes take in turn: at once, or so many at a time."""
    assert tiling == {"patch_size": 448, "overlap": 32, "tiling_dims": (-2, -1)}

    def run(images: Tensor, sigma: float) -> Tensor:
        whole = np.zeros_like(images)
        strips = np.split(np.arange(images.shape[-1]), 4)[context.rank :: context.count]
        size = max_batch_size or len(strips)
        for some in (strips[start : start + size] for start in range(0, len(strips), size)):
            batch = network(tensor(np.concatenate([images[..., strip] for strip in some])), sigma)
            for strip, values in zip(some, batch, strict=True):
                whole[..., strip] = values
        return context.all_reduce(whole)

    return run


def share(*arguments: Any) -> Any:
    """What a process of `spread` does, by the stand-ins."""
    from octopus_study.studies.image_shape import denoisers, spread

    with packages() as found:
        denoisers.load = lambda device="cpu": found
        return spread.share(*arguments)


@contextmanager
def packages() -> Iterator[tuple[Any, Any]]:
    """A module torch and a module deepinv.models; the home of DRUNet's class can be imported meanwhile."""
    cuda = gpu()
    torch = SimpleNamespace(
        __version__="0", cuda=cuda, manual_seed=lambda seed: None, no_grad=nullcontext, from_numpy=tensor,
        random=SimpleNamespace(fork_rng=lambda devices: nullcontext()),
        full_like=lambda like, value: tensor(np.full_like(like, value)),
        cat=lambda parts, axis=0: tensor(np.concatenate(parts, axis)),
        nn=SimpleNamespace(functional=SimpleNamespace(pad=pad, conv2d=lambda images, weight, padding: images - 0.25)),
        backends=SimpleNamespace(cudnn=SimpleNamespace(enabled=True, benchmark=False, version=lambda: 90000)),
    )  # fmt: skip
    home = ModuleType(HOME)
    home.test_onesplit = onesplit
    parallel = ModuleType("deepinv.distributed")
    parallel.__spec__, parallel.__file__ = ModuleSpec("deepinv.distributed", None), __file__
    parallel.DistributedContext, parallel.distribute = Context, distribute
    stand_ins = {HOME: home, "deepinv.distributed": parallel}
    sys.modules.update(stand_ins)
    make = lambda *_, **__: Network(cuda)  # noqa: E731
    try:
        yield torch, SimpleNamespace(DRUNet=make, UNet=make, DnCNN=make)
    finally:
        for name in stand_ins:
            del sys.modules[name]
