"""Ragged sequences by each way: strategies, padding to the longest one, and torch's nested tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from octopus.peers.availability import need
from octopus.peers.mapping import Arena, build_of
from octopus.peers.mapping_cost import Run
from octopus.raggedplan import RaggedPlan

STRATEGIES = {
    "octopus": "block_search",
    "block-metadata": "block_metadata",
    "lookup-vectorised": "lookup",
    "lookup-published": "lookup",
}
OTHERS = ("padded", "nested-jagged")
NAMES = (*STRATEGIES, *OTHERS)


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


def make(name: str, arena: Arena) -> Way:
    """One way for a batch of sequences.

    Raises
    ------
    MissingPackageError
        If torch is needed and not installed.
    """
    if name in STRATEGIES:
        return _strategy(name, arena)
    return (_padded if name == "padded" else _nested)(arena)


def _strategy(name: str, arena: Arena) -> Way:
    build, strategy = build_of(name, arena.offsets), STRATEGIES[name]
    made = build()
    kernel = arena.kernel(strategy, made.threshold or None)

    def total() -> None:
        plan = RaggedPlan(arena.operation, arena.batch, strategy=strategy, device=arena.device, made=build())
        plan.run(arena.batch, *arena.given, out=arena.out)

    return Way(name, build, kernel, total, made.nbytes)


def _padded(arena: Arena) -> Way:
    return _padded_numpy(arena) if arena.device == "cpu" else _padded_torch(arena)


def _padded_numpy(arena: Arena) -> Way:
    """Pad, operate on all of it, and take the values back, with whole-array operations of NumPy."""
    lengths = np.diff(arena.offsets)
    longest = int(lengths.max())
    mean, inverse = (array[:, None] for array in arena.parameters)

    def setup() -> tuple[np.ndarray, np.ndarray]:
        mask = np.arange(longest) < lengths[:, None]
        padded = np.zeros(mask.shape, np.float32)
        padded[mask] = arena.values
        return padded, mask

    def work(padded: np.ndarray) -> np.ndarray:
        return (padded - mean) * inverse

    def total() -> None:
        padded, mask = setup()
        arena.out[:] = work(padded)[mask]

    made = setup()[0]
    return Way("padded", setup, lambda: work(made), total, made.nbytes - 4 * arena.total)


def _padded_torch(arena: Arena) -> Way:
    """As users do: `pad_sequence` over the items, the operation, and a mask to take the values back."""
    torch = need("torch", "PyTorch")
    values, out = (torch.as_tensor(array, device="cuda") for array in (arena.values, arena.out))
    lengths = np.diff(arena.offsets)
    sizes, on_gpu = lengths.tolist(), torch.as_tensor(lengths, device="cuda")
    mean, inverse = (torch.as_tensor(array, device="cuda")[:, None] for array in arena.parameters)

    def setup() -> Any:
        return torch.nn.utils.rnn.pad_sequence(values.split(sizes), batch_first=True)

    def work(padded: Any) -> Any:
        return (padded - mean) * inverse

    def total() -> None:
        result = work(setup())
        mask = torch.arange(result.shape[1], device="cuda") < on_gpu[:, None]
        out.copy_(result[mask])

    made = setup()
    return Way("padded", setup, lambda: work(made), total, 4 * (made.numel() - arena.total))


def _nested(arena: Arena) -> Way:
    """A nested tensor of the jagged layout shares the flat values; its operations broadcast over the items."""
    torch = need("torch", "PyTorch")
    device = "cuda" if arena.device == "cuda" else "cpu"
    values, out = (torch.as_tensor(array, device=device) for array in (arena.values, arena.out))
    offsets = torch.as_tensor(arena.offsets)
    mean, inverse = (torch.as_tensor(array, device=device)[:, None] for array in arena.parameters)

    def setup() -> Any:
        return torch.nested.nested_tensor_from_jagged(values, offsets.to(device))

    def work(nested: Any) -> Any:
        return (nested - mean) * inverse

    def total() -> None:
        out.copy_(work(setup()).values())

    made = setup()
    total()  # an operation that torch doesn't have for nested tensors is told here
    return Way("nested-jagged", setup, lambda: work(made), total, offsets.nbytes)
