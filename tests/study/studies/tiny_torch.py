"""Enough of torch to let the methods of two models run where it isn't installed: arrays that are called tensors."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np

from octopus_study.studies.concurrency.models import NAMES, Pipeline, Stage


class Tensor(np.ndarray):
    """An array with the few methods of a tensor that are called."""

    clone = np.ndarray.copy

    def to(self, device: str = "cpu") -> Tensor:
        return self

    cpu = to

    def copy_(self, other: Tensor, non_blocking: bool = False) -> None:
        self[...] = other

    def fill_(self, value: float) -> None:
        self.fill(value)

    def is_floating_point(self) -> bool:
        return self.dtype.kind == "f"

    def numpy(self) -> np.ndarray:
        return np.asarray(self)


torch = SimpleNamespace(
    empty=lambda shape, dtype: np.full(shape, 7, dtype).view(Tensor),
    empty_like=lambda tensor, device: np.full_like(tensor, 7),
    no_grad=nullcontext,
)
# The host in a `Device`'s place: everything is done at once, in order, so that an event is reached when it is recorded.
DEVICE: Any = SimpleNamespace(
    name="cpu", torch=torch, event=MagicMock, stream=object, default_stream=lambda: None, synchronize=lambda: None,
    use=nullcontext, page_locked=Tensor.clone,
)  # fmt: skip


def pipelines(log: list[str] | None = None) -> dict[str, Pipeline]:
    """Two pipelines of two stages; the second stage of each uses what the first has made."""
    log = [] if log is None else log

    def stage(name: str, takes: tuple[str, ...], gives: str, factor: float) -> Stage:
        def run(*given: Tensor) -> tuple[Tensor]:
            log.append(name)
            return (sum(given) * np.float32(factor),)

        return Stage(name, takes, (gives,), run)

    made = {}
    for number, name in enumerate(NAMES):
        image = (np.arange(6, dtype=np.float32) + number).view(Tensor)
        stages = (stage(f"{name}-1", ("image",), "features", 2), stage(f"{name}-2", ("image", "features"), "points", 3))
        made[name] = Pipeline(
            name, {"image": image}, stages, ("points",), lambda found: np.median(found["points"], keepdims=True)
        )
    return made
