"""Methods on ragged sequences: strategies, padding to the longest one, and torch's nested tensors."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from octopus.ragged.plan import RaggedPlan
from octopus_study.baselines.availability import need_torch
from octopus_study.baselines.ragged_job import RaggedJob
from octopus_study.baselines.ragged_methods import STRATEGIES, StagedMethod, build_of, published_records

OWN = ("octopus", "block-metadata", "block-metadata-published", "lookup-vectorised", "lookup-published")
# Elements of a block at most in the published sequences: with 20 bytes per block it gives the printed gains in memory,
# where that of the images would give several times as much.
PUBLISHED_THRESHOLD = 1024
NAMES = (*OWN, "padded", "nested-jagged")


def make(name: str, job: RaggedJob) -> StagedMethod:
    """One method for a batch of sequences; `total` goes from flat values to flat results where they lie."""
    if name in OWN:
        return _strategy(name, job)
    if name == "nested-jagged":
        return _nested(job)
    return _padded_numpy(job) if job.device == "cpu" else _padded_torch(job)


def _strategy(name: str, job: RaggedJob) -> StagedMethod:
    build, strategy = build_of(name, job.offsets), STRATEGIES[name]
    if name == "block-metadata-published":
        build = partial(published_records, job.offsets, PUBLISHED_THRESHOLD)
    made = build()
    kernel = job.kernel(strategy, made.threshold or None)

    def total() -> None:
        plan = RaggedPlan(job.operation, job.batch, strategy=strategy, device=job.device, made=build())
        plan.run(job.batch, *job.given, out=job.out)

    return StagedMethod(name, made.nbytes, build, kernel, total)


def _padded_numpy(job: RaggedJob) -> StagedMethod:
    """Pad, operate on all of it, and take the values back, with whole-array operations of NumPy."""
    lengths = np.diff(job.offsets)
    longest = int(lengths.max())
    mean, inverse = (array[:, None] for array in job.parameters)

    def setup() -> tuple[np.ndarray, np.ndarray]:
        mask = np.arange(longest) < lengths[:, None]
        padded = np.zeros(mask.shape, np.float32)
        padded[mask] = job.values
        return padded, mask

    def work(padded: np.ndarray) -> np.ndarray:
        return (padded - mean) * inverse

    def total() -> None:
        padded, mask = setup()
        job.out[:] = work(padded)[mask]

    made = setup()[0]
    return StagedMethod("padded", made.nbytes - 4 * job.total, setup, lambda: work(made), total)


def _padded_torch(job: RaggedJob) -> StagedMethod:
    """As users do: `pad_sequence` over the items, the operation, and a mask to take the values back."""
    torch, values, out, work = _in_torch(job)
    lengths = np.diff(job.offsets)
    sizes, on_gpu = lengths.tolist(), torch.as_tensor(lengths, device="cuda")

    def setup() -> Any:
        return torch.nn.utils.rnn.pad_sequence(values.split(sizes), batch_first=True)

    def total() -> None:
        result = work(setup())
        mask = torch.arange(result.shape[1], device="cuda") < on_gpu[:, None]
        out.copy_(result[mask])

    made = setup()
    return StagedMethod("padded", 4 * (made.numel() - job.total), setup, lambda: work(made), total)


def _nested(job: RaggedJob) -> StagedMethod:
    """A nested tensor of the jagged layout shares the flat values; its operations broadcast over the items."""
    torch, values, out, work = _in_torch(job)
    offsets = torch.as_tensor(job.offsets)

    def setup() -> Any:
        return torch.nested.nested_tensor_from_jagged(values, offsets.to(job.device))

    def total() -> None:
        out.copy_(work(setup()).values())

    made = setup()
    total()  # an operation that torch doesn't have for nested tensors is told here
    return StagedMethod("nested-jagged", offsets.nbytes, setup, lambda: work(made), total)


def _in_torch(job: RaggedJob) -> tuple[Any, Any, Any, Callable[[Any], Any]]:
    """Torch, values and result as its tensors, and the operation on any tensor with an item per row."""
    torch = need_torch(job.device, "baselines")
    values, out = (torch.as_tensor(array, device=job.device) for array in (job.values, job.out))
    mean, inverse = (torch.as_tensor(array, device=job.device)[:, None] for array in job.parameters)
    return torch, values, out, lambda items: (items - mean) * inverse
