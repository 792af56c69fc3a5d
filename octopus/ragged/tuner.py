"""Probe this machine for the best strategy: who finds an element's item the fastest here?

Both probes work on a batch whose items are as different in size as those of a detector, and every operation uses its
item's parameter or shape, so that no lookup can be left out. A strategy costs its kernel, and what must be built for
it divided by how often a batch is used again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from octopus import backends
from octopus.arrays.checks import Device
from octopus.ragged import blockmap
from octopus.ragged.batch import RaggedBatch
from octopus.ragged.check import whole
from octopus.ragged.plan import RaggedPlan

PROBES = {"pointwise": "multiply", "stencil": "blur3x3"}  # those that wait for memory, and those that compute
ELEMENTS = {"cpu": 300_000, "cuda": 8_000_000}  # of a probe's batch: beyond launch latency, quickly done
THRESHOLDS = (4096, 16_384, 65_536)  # of block_metadata
ROUNDS, MIN_ROUNDS = 7, 3
SECONDS = 0.02  # of one probe, once it has the least rounds
AS_GOOD = 1.02  # within two per cent the strategy with less to build is taken
ORDER = ("block_search", "thread_search", "block_metadata", "lookup")  # by what they need


class Evidence(NamedTuple):
    """One measured strategy."""

    operation: str
    strategy: str
    threshold: int  # elements per block of "block_metadata", else 0
    setup_ms: float  # its map is built on the host
    kernel_ms: float  # median, the data in place

    def cost(self, uses: int) -> float:
        """Milliseconds per use of a batch that is used so many times."""
        return self.kernel_ms + self.setup_ms / uses


class Tuning(NamedTuple):
    """What `tune` found."""

    device: str
    choice: dict[str, str]  # a strategy for "pointwise" operations and one for "stencil"
    threshold: int  # best number of elements per block of `block_metadata`
    uses: int  # how often a batch was taken to be used
    evidence: tuple[Evidence, ...]
    probe_ms: float  # what the probes took, without compiling

    def lines(self) -> list[str]:
        """The evidence in words, one line per strategy."""
        chosen, found = {PROBES[group]: name for group, name in self.choice.items()}, []
        for row in self.evidence:
            name = row.strategy + (f" ({row.threshold} elements per block)" if row.threshold else "")
            mark = "  <- chosen" if row.strategy == chosen[row.operation] else ""
            found.append(f"{row.operation}: {name}: kernel {row.kernel_ms:.3f} ms, setup {row.setup_ms:.3f} ms{mark}")
        return found


def tune(device: Device = "auto", *, uses: int = 1, keep: bool = True) -> Tuning:
    """Measure every strategy on this machine and remember the best for `strategy="auto"`.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}
        "auto": the GPU if there is one.
    uses : int
        How often a batch of the same sizes is used: with many, what must be built counts less.
    keep : bool
        Keep the choice in the user's cache folder, for this device and this version of the kernels.

    Returns
    -------
    Tuning
        The choice, and the times in milliseconds from which it follows.

    Raises
    ------
    DeviceError, InputError
        For "cuda" without a usable GPU; if `uses` is no whole number from 1 on.
    """
    uses = whole("uses", uses)
    side = backends.resolve(device)
    batch = probe_batch(ELEMENTS[side])
    candidates = [
        (strategy, threshold)
        for strategy in blockmap.STRATEGIES
        for threshold in (THRESHOLDS if strategy == "block_metadata" else (0,))
    ]
    probes = {name: {key: _probe(side, batch, name, *key) for key in candidates} for name in PROBES.values()}
    started = time.perf_counter()
    setup = {key: _ms(partial(blockmap.build, key[0], batch.offsets, threshold=key[1] or 1)) for key in candidates}
    evidence: tuple[Evidence, ...] = ()
    for operation, runs in probes.items():
        rounds, since = list[dict[Any, float]](), time.perf_counter()
        # In a round every candidate runs once: a slow moment of the machine meets them all.
        while len(rounds) < MIN_ROUNDS or (len(rounds) < ROUNDS and time.perf_counter() - since < SECONDS):
            rounds.append({key: _ms(run) for key, run in runs.items()})
        kernel = {key: float(np.median([each[key] for each in rounds])) for key in candidates}
        evidence += tuple(Evidence(operation, *key, setup[key], kernel[key]) for key in candidates)
    probe_ms = (time.perf_counter() - started) * 1e3
    choice = {group: _best(evidence, operation, uses).strategy for group, operation in PROBES.items()}
    records = [row for row in evidence if row.strategy == "block_metadata" and row.operation == PROBES["pointwise"]]
    threshold = min(records, key=lambda row: row.cost(uses)).threshold
    if keep:
        blockmap.store(side, choice, threshold)
    return Tuning(side, choice, threshold, uses, evidence, probe_ms)


def probe_batch(elements: int) -> RaggedBatch:
    """Images with the published long-tailed distribution of sides, float32 on the host, seeded."""
    random = np.random.RandomState(42)
    count = elements // 6000 + 1  # elements of such an image, rounded down: the last ones are left out
    kind = random.choice(3, (count, 1), p=(0.80, 0.15, 0.05))
    shapes = random.randint(np.array([16, 60, 150])[kind], np.array([61, 151, 401])[kind], (count, 2))
    shapes = shapes[: max(int(np.searchsorted(np.cumsum(shapes.prod(axis=1)), elements)), 1)]
    values = random.random_sample(int(shapes.prod(axis=1).sum())).astype(np.float32)
    return RaggedBatch.from_arrays(values, shapes)


def _probe(device: str, batch: RaggedBatch, operation: str, strategy: str, threshold: int) -> Callable[[], object]:
    """The kernel alone, on data that are in place; run once, so that it is compiled."""
    parameters: list[Any] = [np.linspace(0.5, 1.5, len(batch), dtype=np.float32)] * (operation == "multiply")
    out: Any = np.empty_like(batch.values) if device == "cpu" else None
    wait: Callable[[], object] = bool
    if device == "cuda":
        from octopus.backends.cuda import memory
        from octopus.backends.cuda.device import current

        batch = RaggedBatch(memory.upload(batch.values), batch.offsets, batch.shapes)
        parameters, wait = list(map(memory.upload, parameters)), current().sync
        out = memory.DeviceArray((batch.size,), np.float32)
    options: dict[str, Any] = {"strategy": strategy, "device": device, "threshold": threshold or None}
    plan = RaggedPlan(operation, batch, **options)

    def run() -> None:
        plan.run(batch, *parameters, out=out)
        wait()

    run()
    return run


def _ms(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return (time.perf_counter() - started) * 1e3


def _best(evidence: tuple[Evidence, ...], operation: str, uses: int) -> Evidence:
    rows = [row for row in evidence if row.operation == operation]
    limit = min(row.cost(uses) for row in rows) * AS_GOOD
    good = (row for row in rows if row.cost(uses) <= limit)
    return min(good, key=lambda row: (ORDER.index(row.strategy), row.cost(uses)))
