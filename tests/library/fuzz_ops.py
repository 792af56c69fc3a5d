"""Random operations on ragged batches on the CPU, by every strategy, against the reference in float64."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from dice import Dice
from guarded import READ, Guard

from octopus import RaggedBatch, RaggedPlan, ops, set_num_threads
from octopus.kernels.operations import OPERATIONS, POINTWISE, result_dtype
from octopus.ragged.blockmap import STRATEGIES
from octopus_study.reference import ragged as ragged_reference

TOLERANCE = 1e-5  # of the largest value that a result may have
LARGEST = {
    "multiply": 2.0,
    "normalize": 4.0,
    "threshold": 1.0,
    "gamma": 1.0,
    "blur3x3": 1.0,
    "blur5x5_sobel": 2.5,
}
NUMBERS = {"multiply": 1, "normalize": 2, "threshold": 1, "gamma": 1}  # how many parameters


@dataclass
class Case:
    """An operation: the batch and its result in guarded memory, parameters, strategy, and by which door."""

    operation: str
    values: np.ndarray = field(repr=False)
    shapes: np.ndarray
    parameters: list[Any]
    options: dict[str, Any]
    door: str
    threads: int
    out: np.ndarray | None = field(repr=False)
    regions: list[Any] = field(repr=False)

    def __str__(self) -> str:
        into = "in place" if self.out is self.values else "out" if self.out is not None else "new memory"
        return (
            f"{self.operation} by {self.door} of {self.values.dtype}, {self.options}, {self.threads} threads, {into}\n"
            f"shapes {self.shapes.tolist()}\nparameters {self.parameters}"
        )

    def check(self) -> float:
        """Call, and compare with the reference."""
        set_num_threads(self.threads)
        dtype = np.dtype(result_dtype(self.operation, self.values.dtype))
        right = self._right()
        found = self._call()
        assert found.dtype == dtype and found.shape == right.shape, (found.dtype, found.shape)
        assert self.out is None or found is self.out
        assert all(region.is_intact() for region in self.regions), "something was written beside an array"
        if not found.size:
            return 0.0
        unit = 255.0 if self.values.dtype == np.uint8 else 1.0
        limit, rounding = TOLERANCE * LARGEST[self.operation] * unit, 0.0
        if dtype == np.uint8:
            right, rounding = right.clip(0, 255), 0.5
        worst = float(((np.abs(found - right) - rounding) / limit).max())
        assert worst <= 1, f"{worst} of the tolerance at element {np.abs(found - right).argmax()}"
        return max(worst, 0.0)

    def _call(self) -> np.ndarray:
        batch = self._batch()
        if self.door == "plan":
            plan = RaggedPlan(self.operation, batch, device="cpu", **self.options)
            given = list(self.parameters)
            if self.operation == "normalize":
                given[1] = np.float32(1) / np.asarray(given[1], np.float32)
            return plan.run(self._batch(), *given, out=self.out).values
        call = getattr(ops, self.operation)
        return call(batch, *self.parameters, out=self.out, device="cpu", **self.options).values

    def _batch(self) -> RaggedBatch:
        if self.shapes.shape[1] == 1:
            return RaggedBatch.from_offsets(self.values, np.cumsum([0, *self.shapes.ravel().tolist()]))
        return RaggedBatch.from_arrays(self.values, self.shapes.copy())

    def _right(self) -> np.ndarray:
        numbers = [np.broadcast_to(np.float32(given), len(self.shapes)) for given in self.parameters]
        if self.operation == "normalize":
            numbers[1] = np.float32(1) / numbers[1]
        parts, end = [np.empty(0)], 0
        for number, shape in enumerate(self.shapes.tolist()):
            begin, end = end, end + int(np.prod(shape))
            item = self.values[begin:end].reshape(shape)
            own = [float(values[number]) for values in numbers]
            parts.append(ragged_reference.apply(self.operation, item, *own).ravel())
        return np.concatenate(parts)


def warm_up() -> None:
    """Compile or load all kernels."""
    for operation, dtype, strategy in product(OPERATIONS, ("float32", "uint8"), STRATEGIES):
        batch = RaggedBatch.from_list([np.ones((1, 1), dtype)])
        RaggedPlan(operation, batch, strategy=strategy, device="cpu").run(
            batch, *[1.0] * NUMBERS.get(operation, 0)
        )


def make(dice: Dice, guard: Guard) -> Case:
    """Any call."""
    operation, dtype = dice.pick(*OPERATIONS), dice.pick("float32", "uint8")
    shapes = _shapes(dice, 2 if operation not in POINTWISE else int(dice.pick(1, 2, 2, 3)))
    total = int(shapes.prod(axis=1).sum())
    values = guard.array("values", (total,), dtype, dice.few(0.6))
    regions = [guard.last]
    values[:] = (
        dice.random.random(total, np.float32)
        if dtype == "float32"
        else dice.random.integers(0, 256, total, np.uint8)
    )
    out, kept = _out(dice, guard, operation, values), dice.few(0.3)
    if out is not None and out is not values:
        regions.append(guard.last)
    if kept and out is not values:
        values.flags.writeable = False
        regions[0].allow(READ)
    options: dict[str, Any] = {"strategy": dice.pick("auto", *STRATEGIES)}
    if options["strategy"] == "block_metadata" and dice.few(0.7):
        limit = dice.pick(3, 40, 2000, 100_000)
        options["threshold"] = (
            dice.pick(int, np.int32, np.int64)(dice.random.integers(1, limit))
            if dice.few(0.95)
            else 2**31 - 1
        )
    parameters = [_parameter(dice, len(shapes)) for _ in range(NUMBERS.get(operation, 0))]
    door, threads = dice.pick("call", "call", "plan"), int(dice.pick(1, 1, 2, 3))
    return Case(operation, values, shapes, parameters, options, door, threads, out, regions)


def _shapes(dice: Dice, dimensions: int) -> np.ndarray:
    """Sides of items, of which many are empty, long or thin, and a few larger than a part of the work."""
    count, most = int(dice.pick(0, 1, 2, 5, 12, 40)), int(dice.pick(2, 6, 13, 30))
    shapes = dice.random.integers(0 if dice.few(0.5) else 1, most + 1, (count, dimensions))
    if count and dice.few(0.2):
        shapes[dice.random.integers(count)] = 1
        shapes[dice.random.integers(count), dice.random.integers(dimensions)] = dice.random.integers(
            1, dice.pick(5000, 40_000)
        )
    if dimensions == 2 and count and dice.few(0.05):
        shapes[dice.random.integers(count)] = dice.random.integers(100, 200, 2)
    return shapes.astype(dice.pick(np.int64, np.int32, np.uint16))


def _out(dice: Dice, guard: Guard, operation: str, values: np.ndarray) -> np.ndarray | None:
    dtype = result_dtype(operation, values.dtype)
    kinds = ["new", "given"] + ["in place"] * (operation in POINTWISE and dtype == values.dtype)
    kind = dice.pick(*kinds)
    if kind == "given":
        return guard.array("out", values.shape, dtype, dice.few(0.6))
    return values if kind == "in place" else None


def _parameter(dice: Dice, count: int) -> Any:
    """A number, or one per item, in any form that holds it exactly enough."""
    values = (dice.random.random(count) + 0.3).astype(np.float32)
    kind = dice.pick("number", "list", "single", "double", "half")
    if kind == "number":
        return float(np.float32(dice.random.random() + 0.3))
    if kind == "list":
        return values.tolist()
    return values.astype({"single": np.float32, "double": np.float64, "half": np.float16}[kind])
