"""Operations on ragged batches and what they must answer: by the reference in float64, and a table for all devices."""

from itertools import starmap
from typing import Any, NamedTuple

import numpy as np

from cases.crops import pairs
from octopus import RaggedBatch, RaggedPlan, ops
from octopus.kernels.operations import OPERATIONS, PARAMETERS, result_dtype
from octopus.ragged.blockmap import STRATEGIES
from octopus_study.reference import ragged as reference

TOLERANCE = 1e-5  # of the largest value that a result may have
LARGEST = {"multiply": 2.0, "normalize": 4.0, "threshold": 1.0, "gamma": 1.0, "blur3x3": 1.0, "blur5x5_sobel": 2.5}


class Operation(NamedTuple):
    """A call: values of items one after the other, their shapes, parameters and options."""

    operation: str
    values: np.ndarray
    shapes: np.ndarray
    parameters: list[Any]
    options: dict[str, Any]

    @property
    def batch(self) -> RaggedBatch:
        """On the host."""
        if self.shapes.shape[1] == 1:
            return RaggedBatch.from_offsets(self.values, np.cumsum([0, *self.shapes.ravel().tolist()]))
        return RaggedBatch.from_arrays(self.values, self.shapes.copy())

    def call(self, batch: RaggedBatch, planned: bool, **more: Any) -> Any:
        """The values of the answer, by the function or by a plan."""
        given, out = list(self.parameters), more.pop("out", None)
        if not planned:
            return getattr(ops, self.operation)(batch, *given, out=out, **self.options, **more).values
        plan = RaggedPlan(self.operation, batch, **self.options, **more)
        if self.operation == "normalize":
            given[1] = np.float32(1) / np.asarray(given[1], np.float32)
        return plan.run(batch, *given, out=out).values

    def right(self) -> np.ndarray:
        """In float64, not rounded."""
        numbers = [np.broadcast_to(np.float32(given), len(self.shapes)) for given in self.parameters]
        if self.operation == "normalize":
            numbers[1] = np.float32(1) / numbers[1]
        parts, end = [np.empty(0)], 0
        for number, shape in enumerate(self.shapes.tolist()):
            begin, end = end, end + int(np.prod(shape))
            own = [float(values[number]) for values in numbers]
            parts.append(reference.apply(self.operation, self.values[begin:end].reshape(shape), *own).ravel())
        return np.concatenate(parts)

    def check(self, found: np.ndarray, right: np.ndarray | None = None) -> float:
        """The largest error as a part of the tolerance, which must not be above 1; `right` if values were changed."""
        dtype, right = result_dtype(self.operation, self.values.dtype), self.right() if right is None else right
        assert found.dtype == dtype and found.shape == right.shape, (found.dtype, found.shape)
        if not found.size:
            return 0.0
        limit, rounding = TOLERANCE * LARGEST[self.operation] * (255.0 if self.values.dtype == np.uint8 else 1.0), 0.0
        if dtype == np.uint8:
            right, rounding = right.clip(0, 255), 0.5
        worst = float(((np.abs(found - right) - rounding) / limit).max())
        assert worst <= 1, f"{worst} of the tolerance at element {np.abs(found - right).argmax()}"
        return max(worst, 0.0)


SHAPES = {
    "small": [(1, 1), (3, 5), (0, 0), (7, 4), (1, 9), (0, 0), (9, 1), (2, 2), (6, 11), (1, 1), (0, 0)],
    "large": [(300, 400), *[(1, 1)] * 100, (1, 70_000), (70_000, 1), *[(0, 3)] * 50, (129, 130), (33, 41), (1, 5)],
}


class Case(NamedTuple):
    """A row of the table."""

    operation: str
    dtype: str
    strategy: str

    @property
    def name(self) -> str:
        return "-".join(self)

    def check(self, scene: str, runner: Any) -> None:
        """Make the call by a runner, by the function and by a plan; all strategies give the same bits."""
        shapes, random = np.array(SHAPES[scene]), np.random.default_rng(1)
        total = int(shapes.prod(axis=1).sum())
        floats = self.dtype == "float32"
        values = random.random(total, np.float32) if floats else random.integers(0, 256, total, np.uint8)
        numbers = [np.linspace(*ends, len(shapes)).astype(np.float32) for ends in ((0.3, 0.9), (2.0, 0.5))]
        options = {"strategy": self.strategy} | ({"threshold": 10} if self.strategy == "block_metadata" else {})
        call = Operation(self.operation, values, shapes, numbers[: PARAMETERS[self.operation]], options)
        answers = [runner.ragged(call, planned) for planned in (False, True)]
        call.check(answers[0])
        assert np.array_equal(*answers)
        usual = call._replace(options={"strategy": "block_search"}).call(call.batch, False, device="cpu")
        # The GPU's powers have an arithmetic of their own.
        assert np.array_equal(answers[0], usual) or (self.operation == "gamma" and runner.device == "cuda")


CASES = {case.name: case for case in starmap(Case, pairs([list(OPERATIONS), ("float32", "uint8"), STRATEGIES]))}
