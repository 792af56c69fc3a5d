"""Enough of torch to let the methods of two models run where it isn't installed: arrays that are called tensors."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np

from octopus_study.studies.concurrency.models import NAMES, Pipeline, Stage


class Tensor:
    """An array."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    def clone(self) -> Tensor:
        return Tensor(self.array.copy())

    def copy_(self, other: Tensor, non_blocking: bool = False) -> None:
        self.array[...] = other.array

    def fill_(self, value: float) -> None:
        self.array.fill(value)

    def is_floating_point(self) -> bool:
        return self.array.dtype.kind == "f"

    def numpy(self) -> np.ndarray:
        return self.array


def _empty(shape: tuple[int, ...], dtype: Any) -> Tensor:
    return Tensor(np.full(shape, 7, dtype))


torch = SimpleNamespace(
    empty=lambda shape, dtype: _empty(shape, dtype),
    empty_like=lambda tensor, device: _empty(tensor.shape, tensor.dtype),
    no_grad=nullcontext,
)


class Done:
    """An event: nothing is under way, so that it is reached when it is recorded."""

    def record(self, stream: Any = None) -> None:
        pass

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass


class Cpu:
    """The host in a `Device`'s place: everything is done at once, in order."""

    name, torch, event = "cpu", torch, Done

    def stream(self) -> Any:
        return object()

    def default_stream(self) -> Any:
        return None

    def use(self, stream: Any) -> Any:
        return nullcontext()

    def page_locked(self, tensor: Tensor) -> Tensor:
        return tensor.clone()

    def synchronize(self) -> None:
        pass


def device() -> Cpu:
    """A host that works with these tensors."""
    return Cpu()


def pipelines(log: list[str] | None = None) -> dict[str, Pipeline]:
    """Two pipelines of two stages; the second stage of each uses what the first has made."""
    log = [] if log is None else log

    def stage(name: str, takes: tuple[str, ...], gives: str, factor: float) -> Stage:
        def run(*given: Tensor) -> tuple[Tensor]:
            log.append(name)
            return (Tensor(sum(each.array for each in given) * np.float32(factor)),)

        return Stage(name, takes, (gives,), run)

    made = {}
    for number, name in enumerate(NAMES):
        values = np.arange(6, dtype=np.float32) + number
        stages = (stage(f"{name}-1", ("image",), "features", 2), stage(f"{name}-2", ("image", "features"), "points", 3))
        made[name] = Pipeline(name, {"image": Tensor(values)}, stages, ("points",), _finish)
    return made


def _finish(found: Any) -> np.ndarray:
    return np.median(found["points"], keepdims=True)
