"""Ragged sequences by each way: strategies, padding to the longest one, and torch's nested tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from octopus.ragged.plan import RaggedPlan
from octopus_study.peers.availability import need
from octopus_study.peers.ragged_cost import Run
from octopus_study.peers.ragged_job import RaggedJob
from octopus_study.peers.ragged_maps import STRATEGIES, build_of

OWN = ("octopus", "block-metadata", "lookup-vectorised", "lookup-published")
OTHERS = ("padded", "nested-jagged")
NAMES = (*OWN, *OTHERS)


@dataclass(frozen=True)
class Way:
    """A method's parts: what must be made per batch, the operation on it, and all of it.

    Attributes
    ----------
    setup : callable
        Make the map, the padded batch or the nested tensor.
    kernel : callable
        The operation, on what `setup` made before.
    total : callable
        From the flat values to the flat result, on the device where the values are.
    bytes : int
        Of the map, or of the padding.
    """

    name: str
    setup: Run
    kernel: Run
    total: Run
    bytes: int


def make(name: str, job: RaggedJob) -> Way:
    """One way for a batch of sequences.

    Raises
    ------
    MissingPackageError
        If torch is needed and not installed.
    """
    if name in OWN:
        return _strategy(name, job)
    return (_padded if name == "padded" else _nested)(job)


def _strategy(name: str, job: RaggedJob) -> Way:
    build, strategy = build_of(name, job.offsets), STRATEGIES[name]
    made = build()
    kernel = job.kernel(strategy, made.threshold or None)

    def total() -> None:
        plan = RaggedPlan(job.operation, job.batch, strategy=strategy, device=job.device, made=build())
        plan.run(job.batch, *job.given, out=job.out)

    return Way(name, build, kernel, total, made.nbytes)


def _padded(job: RaggedJob) -> Way:
    return _padded_numpy(job) if job.device == "cpu" else _padded_torch(job)


def _padded_numpy(job: RaggedJob) -> Way:
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
    return Way("padded", setup, lambda: work(made), total, made.nbytes - 4 * job.total)


def _padded_torch(job: RaggedJob) -> Way:
    """As users do: `pad_sequence` over the items, the operation, and a mask to take the values back."""
    torch = need("torch", "PyTorch")
    values, out = (torch.as_tensor(array, device="cuda") for array in (job.values, job.out))
    lengths = np.diff(job.offsets)
    sizes, on_gpu = lengths.tolist(), torch.as_tensor(lengths, device="cuda")
    mean, inverse = (torch.as_tensor(array, device="cuda")[:, None] for array in job.parameters)

    def setup() -> Any:
        return torch.nn.utils.rnn.pad_sequence(values.split(sizes), batch_first=True)

    def work(padded: Any) -> Any:
        return (padded - mean) * inverse

    def total() -> None:
        result = work(setup())
        mask = torch.arange(result.shape[1], device="cuda") < on_gpu[:, None]
        out.copy_(result[mask])

    made = setup()
    return Way("padded", setup, lambda: work(made), total, 4 * (made.numel() - job.total))


def _nested(job: RaggedJob) -> Way:
    """A nested tensor of the jagged layout shares the flat values; its operations broadcast over the items."""
    torch = need("torch", "PyTorch")
    device = "cuda" if job.device == "cuda" else "cpu"
    values, out = (torch.as_tensor(array, device=device) for array in (job.values, job.out))
    offsets = torch.as_tensor(job.offsets)
    mean, inverse = (torch.as_tensor(array, device=device)[:, None] for array in job.parameters)

    def setup() -> Any:
        return torch.nested.nested_tensor_from_jagged(values, offsets.to(device))

    def work(nested: Any) -> Any:
        return (nested - mean) * inverse

    def total() -> None:
        out.copy_(work(setup()).values())

    made = setup()
    total()  # an operation that torch doesn't have for nested tensors is told here
    return Way("nested-jagged", setup, lambda: work(made), total, offsets.nbytes)
