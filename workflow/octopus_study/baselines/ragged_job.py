"""One operation on one ragged batch whose data are in place: each strategy's kernel, and whether its answer is right.

The batch may be too large to be drawn at random: its values repeat a random block, and answers are compared with the
reference for a sample of items; all elements of the strategies' results are compared bit for bit with one another.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.views import view
from octopus.backends.cuda import memory
from octopus.kernels.cuda.ragged_tiles import Shape
from octopus.kernels.operations import PARAMETERS, POINTWISE, result_dtype
from octopus.ragged.batch import RaggedBatch
from octopus.ragged.blockmap import BlockMap, offsets_of
from octopus.ragged.plan import RaggedPlan, image_sides, run_cpu
from octopus_study.baselines.ragged_methods import table_on_device
from octopus_study.measure import Method, check_answers
from octopus_study.reference import ragged as ragged_reference
from octopus_study.status import SAME, Answer, different

BLOCK = 1 << 24  # elements of the random block that a large batch repeats
SAMPLE = 40  # items whose answer is compared with the reference, beside the first and the last ones
ENDS = 4
LARGEST_COMPARED = 1 << 22  # elements of an item that is compared with the reference
SCALAR = Shape(1, 1, 256)  # one element per thread, as published
CHANGING = {"gamma": (0.5, 2.5), "threshold": (0.3, 0.7)}
BYTES = 255.0


def is_copy_like(operation: str, dtype: str) -> bool:
    """Whether an operation reads as many bytes as it writes, and nothing else, so that a copy bounds its time."""
    return operation in POINTWISE and result_dtype(operation, dtype) == dtype


class RaggedJob:
    """A batch of images, shapes (N, 2), or sequences, (N, 1), of float32 or uint8 on the side where it is processed, an
    operation, and room for the result."""

    def __init__(self, operation: str, shapes: NDArray[np.int64], dtype: str, device: str, seed: int) -> None:
        self.operation, self.shapes, self.dtype, self.device = operation, shapes, np.dtype(dtype), device
        self.offsets = offsets_of(shapes)
        self.total, self.items = int(self.offsets[-1]), len(shapes)
        random = np.random.default_rng(seed)
        self._block = self._draw(random, min(self.total, BLOCK))
        self.parameters = self._parameters(random)
        self.out_dtype = np.dtype(result_dtype(operation, dtype))
        self.values, self.out = self._place(), self._room()
        self.batch = RaggedBatch(self.values, self.offsets, shapes)
        self.given = [self._on_device(array) for array in self.parameters]

    def _draw(self, random: np.random.Generator, count: int) -> NDArray:
        if self.dtype == np.uint8:
            return random.integers(0, 256, count, dtype=np.uint8)
        return random.random(count, dtype=np.float32)

    def _parameters(self, random: np.random.Generator) -> list[NDArray[np.float32]]:
        low, high = CHANGING.get(self.operation, (0.5, 1.5))
        scale = BYTES if self.operation == "threshold" and self.dtype == np.uint8 else 1.0
        count = PARAMETERS[self.operation]
        return [np.float32(scale * (low + (high - low) * random.random(self.items))) for _ in range(count)]

    def _place(self) -> Any:
        if self.device == "cpu":
            return np.resize(self._block, self.total)
        values = memory.DeviceArray((self.total,), self.dtype)
        step = self._block.nbytes
        if self.total:
            first = values.head(len(self._block)).copy_from_host(self._block)
        for start in range(step, values.nbytes, step):
            memory.copy(values.pointer + start, first.pointer, min(step, values.nbytes - start))
        return values

    def _room(self) -> Any:
        if self.device == "cpu":
            return np.empty(self.total, self.out_dtype)
        return memory.DeviceArray((self.total,), self.out_dtype)

    def _on_device(self, array: NDArray) -> Any:
        return array if self.device == "cpu" else memory.upload(array)

    def poison(self) -> None:
        """Overwrite the result, so that a method that writes nothing can't pass with an old one."""
        if self.device == "cpu":
            self.out.view(np.uint8).fill(0xA5)
        else:
            self.out.fill_bytes(0xA5)

    def kernel(self, strategy: str, threshold: int | None = None, scalar: bool = False) -> Callable[[], object]:
        """The strategy's kernel alone; its map is built and in place."""
        # A lookup table of gigabytes is made faster on the device, from the offsets that every strategy has there.
        table_there = strategy == "lookup" and self.device == "cuda"
        planned = "block_search" if table_there else strategy
        plan = RaggedPlan(self.operation, self.batch, strategy=planned, threshold=threshold, device=self.device)
        if self.device == "cpu":
            return self._cpu_kernel(plan, scalar)
        return self._cuda_kernel(plan, strategy, scalar)

    def _table(self, plan: RaggedPlan) -> Any:
        assert plan.map is not None
        owner = memory.DeviceArray((self.total,), np.int32)
        offsets = plan.map.offsets
        there = memory.DeviceArray(offsets.shape, offsets.dtype, buffer=plan, pointer=plan.pointers["offsets"])
        if self.total:
            table_on_device(there, self.items, self.total, owner)()
        return owner

    def _cuda_kernel(self, plan: RaggedPlan, strategy: str, scalar: bool) -> Callable[[], object]:
        from octopus.backends.cuda import stream_of

        assert plan.map is not None
        engine = self.engine(strategy, plan.map, SCALAR if scalar else None)
        names = ("first", "second")
        pointers = plan.pointers | {n: v.pointer for n, v in zip(names, self.given, strict=False)}
        source, out, stream = self.values.pointer, self.out.pointer, stream_of(None)
        held: Any = plan  # owns the memory that the pointers name
        if strategy == "lookup":
            held = plan, (table := self._table(plan))
            pointers["owner"] = table.pointer
        return lambda held=held: engine.launch(source, out, pointers, stream)

    def engine(self, strategy: str, blockmap: BlockMap, shape: Shape | None = None) -> Any:
        """The launcher of a strategy's kernel; of the map only the dtype and the numbers count."""
        from octopus.ragged.plan import CudaRagged

        return CudaRagged(
            self.operation, strategy, self.dtype.name, self.out_dtype.name, blockmap.offsets.dtype.name,
            self.total, self.items, blocks=blockmap.blocks or 0, threshold=blockmap.threshold, shape=shape,
        )  # fmt: skip

    def _cpu_kernel(self, plan: RaggedPlan, scalar: bool) -> Callable[[], object]:
        if not scalar:
            return lambda: plan.run(self.batch, *self.given, out=self.out)
        assert plan.map is not None
        operation, sides = self.operation, image_sides(self.operation, self.batch)
        arrays = view(self.values, "values"), view(self.out, "out"), plan.map, self.given, sides
        return lambda: run_cpu(operation, *arrays, pack=1)

    def copy_bound(self) -> Callable[[], object]:
        """Read and write as many bytes as the operation does, by the fastest copy of this machine."""
        if self.device == "cuda":
            from octopus.backends.cuda import stream_of

            source, out, stream = self.values.pointer, self.out.pointer, stream_of(None)
            return lambda: memory.copy(out, source, self.out.nbytes, stream)
        from octopus_study.kernels.cpu import probes

        words = min(self.values.nbytes, self.out.nbytes) // 4
        source = self.values.view(np.uint8)[: 4 * words].view(np.float32)
        out = self.out.view(np.uint8)[: 4 * words].view(np.float32)
        return lambda: probes.copy(source, out)

    @cached_property
    def _sampled(self) -> NDArray[np.int64]:
        """Items whose answers are compared with the reference."""
        random = np.random.RandomState(1)
        some = random.randint(0, self.items, SAMPLE)
        # The largest ones would take the reference too long; the strategies are compared on all elements.
        chosen = np.unique([*range(min(ENDS, self.items)), *range(max(self.items - ENDS, 0), self.items), *some])
        lengths = np.diff(self.offsets)
        return chosen[lengths[chosen] <= LARGEST_COMPARED]

    @cached_property
    def expected(self) -> NDArray:
        """What the sampled items should be, one after the other, in the result's dtype."""
        return np.concatenate([self._expected_item(int(item)) for item in self._sampled])

    def _expected_item(self, item: int) -> NDArray:
        start, stop = self.offsets[item : item + 2]
        values = self._block[np.arange(start, stop) % len(self._block)].reshape(self.shapes[item])
        given = [float(array[item]) for array in self.parameters]
        result = ragged_reference.apply(self.operation, values, *given).ravel()
        if self.out_dtype == np.uint8:
            return np.rint(result).clip(0, BYTES).astype(np.uint8)
        return result.astype(np.float32)

    def result(self) -> NDArray:
        """The sampled items of the last result, on the host."""
        return np.concatenate([self._result_item(int(item)) for item in self._sampled])

    def _result_item(self, item: int) -> NDArray:
        start, stop = (int(edge) for edge in self.offsets[item : item + 2])
        if self.device == "cpu":
            return self.out[start:stop].copy()
        return self.out.part(start, (stop - start,)).copy_to_host()

    def method(self, name: str, run: Callable[[], object]) -> Method:
        """A method that writes the job's result."""
        return Method(name, run, self.result, self.tolerance)

    def check(self, methods: Sequence[Method]) -> dict[str, Answer]:
        """The answers of methods, each on poisoned memory: a sample against the reference, all of it bit for bit. The
        bits are those of the first method that is right. A method without a result has the answer ``n/a``."""
        answers: dict[str, Answer] = {}
        first = None
        for method in methods:
            self.poison()
            answers |= check_answers([method], self.expected if method.result else None)
            if answers[method.name] != SAME:
                continue
            if first is None:
                first = self.keep()
            elif not self.same_as(first):
                answers[method.name] = different("not the bits of the other strategies")
        return answers

    @property
    def tolerance(self) -> float:
        """Largest accepted difference: that of single precision. Bytes are rounded once more behind a product or a
        power in float32, where a tie may fall to the other level."""
        if self.out_dtype == np.uint8:
            return 1.0 if self.operation in ("gamma", "multiply") else 0.0
        return 1e-3 if self.dtype == np.uint8 else 1e-5

    def keep(self) -> Any:
        """A copy of the whole result."""
        if self.device == "cpu":
            return self.out.copy()
        held = self._room()
        memory.copy(held.pointer, self.out.pointer, self.out.nbytes)
        return held

    def same_as(self, kept: Any) -> bool:
        """Whether the whole result has the bits of an earlier one."""
        if self.device == "cpu":
            return bool(np.array_equal(self.out.view(np.uint8), kept.view(np.uint8)))
        return same_bits(self.out, kept)


def same_bits(left: Any, right: Any) -> bool:
    """Whether two device arrays have the same bytes."""
    from cuda.core import LaunchConfig, launch

    from octopus.backends.cuda import compile, stream_of
    from octopus_study.kernels.cuda import FOLDER
    from octopus_study.kernels.cuda.ragged_probes import kernel_of

    words, flag = left.nbytes // 4, memory.upload(np.zeros(1, np.int32))
    kernel = compile.load("ragged-probe-differ", lambda: kernel_of("differ"), FOLDER)
    config = LaunchConfig(grid=4096, block=256)
    launch(stream_of(None), config, kernel, left.pointer, right.pointer, np.int64(words), flag.pointer)
    compared = 4 * words // left.dtype.itemsize
    tails = [array.part(compared, (len(array) - compared,)).copy_to_host() for array in (left, right)]
    return not flag.copy_to_host()[0] and bool(np.array_equal(*tails))
