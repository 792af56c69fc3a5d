"""Probe this machine for the best strategy: who finds an element's item the fastest here?

Both probes work on a batch whose items are as different in size as those of a detector, and every operation uses its
item's parameter or shape, so that no lookup can be left out. A strategy costs its kernel, and what must be built for
it divided by how often a batch is used again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from octopus import backends
from octopus.arrays.checks import Device
from octopus.ragged import blockmap, tuned
from octopus.ragged.batch import RaggedBatch
from octopus.ragged.blockmap import Strategy
from octopus.ragged.check import whole
from octopus.ragged.plan import RaggedPlan

PROBES = {"pointwise": "multiply", "stencil": "blur3x3"}
ELEMENTS = {"cpu": 300_000, "cuda": 8_000_000}  # of a probe's batch: beyond launch latency, quickly done
THRESHOLDS = (4096, 16_384, 65_536)  # of block_metadata
ROUNDS, MIN_ROUNDS = 7, 3
SECONDS = 0.02  # of one probe, once it has the least rounds
AS_GOOD = 1.02  # within two per cent the strategy with less to build is taken
ORDER = ("block_search", "thread_search", "block_metadata", "lookup")  # by what they need


class Evidence(NamedTuple):
    """One measured strategy.

    Attributes
    ----------
    operation, strategy : str
    threshold : int
        Elements per block of `block_metadata`, else 0.
    setup_ms : float
        Building the map on the host; its upload is not in it.
    kernel_ms : float
        Median, the data wherever they happen to be in the caches.
    """

    operation: str
    strategy: str
    threshold: int
    setup_ms: float
    kernel_ms: float

    def cost(self, uses: int) -> float:
        """Milliseconds per use of a batch that is used so many times."""
        return self.kernel_ms + self.setup_ms / uses


class Tuning(NamedTuple):
    """What `tune` found.

    Attributes
    ----------
    device : {"cpu", "cuda"}
    choice : dict
        Strategy per group of operations, "pointwise" and "stencil".
    threshold : int
        Best number of elements per block of `block_metadata`.
    uses : int
        How often a batch was taken to be used.
    evidence : tuple of Evidence
    probe_ms : float
        What the probes took, without compiling.
    """

    device: str
    choice: dict[str, str]
    threshold: int
    uses: int
    evidence: tuple[Evidence, ...]
    probe_ms: float

    def lines(self) -> list[str]:
        """The evidence in words, one line per strategy."""
        found = []
        for group, operation in PROBES.items():
            for row in (row for row in self.evidence if row.operation == operation):
                name = row.strategy + (f" ({row.threshold} elements per block)" if row.threshold else "")
                mark = "  <- chosen" if row.strategy == self.choice[group] else ""
                found.append(f"{operation}: {name}: kernel {row.kernel_ms:.3f} ms, setup {row.setup_ms:.3f} ms{mark}")
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
    DeviceError
        For "cuda" without a usable GPU.
    InputError
        If `uses` is no whole number from 1 on.
    """
    uses = whole("uses", uses)
    side = backends.resolve(device)
    batch = probe_batch(ELEMENTS[side])
    plans = {key: _plan(side, batch, *key) for key in _candidates()}  # compiles
    started = time.perf_counter()
    evidence = tuple(row for operation in PROBES.values() for row in _probe(batch, _only(plans, operation)))
    probe_ms = (time.perf_counter() - started) * 1e3
    choice = {group: _best(evidence, operation, uses).strategy for group, operation in PROBES.items()}
    records = [row for row in evidence if row.strategy == "block_metadata" and row.operation == PROBES["pointwise"]]
    threshold = min(records, key=lambda row: row.cost(uses)).threshold
    if keep:
        tuned.keep(side, choice, threshold)
    return Tuning(side, choice, threshold, uses, evidence, probe_ms)


def probe_batch(elements: int) -> RaggedBatch:
    """Images with the published long-tailed distribution of sides, float32 on the host, seeded."""
    random = np.random.RandomState(42)
    mean = 6000  # elements of such an image, rounded down: the last ones are left out
    small, middle, large = (
        random.randint(*limits, (elements // mean + 1, 2)) for limits in ((16, 61), (60, 151), (150, 401))
    )
    draw = random.random_sample(len(small))[:, None]
    shapes = np.where(draw < 0.80, small, np.where(draw < 0.95, middle, large))
    shapes = shapes[: max(int(np.searchsorted(np.cumsum(shapes.prod(axis=1)), elements)), 1)]
    values = random.random_sample(int(shapes.prod(axis=1).sum())).astype(np.float32)
    return RaggedBatch.from_arrays(values, shapes)


_Key = tuple[str, Strategy, int]  # operation, strategy, threshold


def _candidates() -> list[_Key]:
    return [
        (operation, strategy, threshold)
        for operation in PROBES.values()
        for strategy in blockmap.STRATEGIES
        for threshold in _thresholds(operation, strategy)
    ]


def _thresholds(operation: str, strategy: str) -> tuple[int, ...]:
    """Those to try: only the first probe looks for the best one."""
    if strategy != "block_metadata":
        return (0,)
    return THRESHOLDS if operation == PROBES["pointwise"] else (blockmap.DEFAULT_THRESHOLD,)


class _Probe(NamedTuple):
    launch: Callable[[], object]
    wait: Callable[[], object]


def _plan(device: str, batch: RaggedBatch, operation: str, strategy: str, threshold: int) -> _Probe:
    """A launch of the kernel alone, on data that are in place; run once, so that it is compiled."""
    gains = np.linspace(0.5, 1.5, len(batch), dtype=np.float32)
    parameters = (gains,) if operation == "multiply" else ()
    options: dict[str, Any] = {"strategy": strategy, "device": device, "threshold": threshold or None}
    if device == "cpu":
        plan, out = RaggedPlan(operation, batch, **options), np.empty_like(batch.values)
        plan.run(batch, *parameters, out=out)
        return _Probe(lambda: plan.run(batch, *parameters, out=out), lambda: None)
    from octopus.backends.cuda import memory
    from octopus.backends.cuda.device import current

    on_gpu = RaggedBatch(memory.upload(batch.values), batch.offsets, batch.shapes)
    plan = RaggedPlan(operation, on_gpu, **options)
    result, given = memory.DeviceArray((batch.size,), np.float32), [memory.upload(gains)] * len(parameters)
    plan.run(on_gpu, *given, out=result)
    wait = current().sync
    wait()
    return _Probe(lambda: plan.run(on_gpu, *given, out=result), wait)


def _only(plans: dict[_Key, _Probe], operation: str) -> dict[_Key, _Probe]:
    return {key: plan for key, plan in plans.items() if key[0] == operation}


def _probe(batch: RaggedBatch, plans: dict[_Key, _Probe]) -> Iterator[Evidence]:
    """Medians of a few rounds in which every candidate runs once: a slow moment of the machine meets them all."""
    started = time.perf_counter()
    setup = {key: _setup_ms(batch, *key[1:]) for key in plans}
    rounds: list[dict[_Key, float]] = []
    while len(rounds) < ROUNDS and (len(rounds) < MIN_ROUNDS or time.perf_counter() - started < SECONDS):
        rounds.append({key: _run_ms(plan) for key, plan in plans.items()})
    for key in plans:
        yield Evidence(*key, setup[key], float(np.median([times[key] for times in rounds])))


def _run_ms(probe: _Probe) -> float:
    started = time.perf_counter()
    probe.launch()
    probe.wait()
    return (time.perf_counter() - started) * 1e3


def _setup_ms(batch: RaggedBatch, strategy: Strategy, threshold: int) -> float:
    started = time.perf_counter()
    blockmap.build(strategy, batch.offsets, threshold=threshold or blockmap.DEFAULT_THRESHOLD)
    return (time.perf_counter() - started) * 1e3


def _best(evidence: tuple[Evidence, ...], operation: str, uses: int) -> Any:
    rows = [row for row in evidence if row.operation == operation]
    limit = min(row.cost(uses) for row in rows) * AS_GOOD
    return min(
        (row for row in rows if row.cost(uses) <= limit), key=lambda row: (ORDER.index(row.strategy), row.cost(uses))
    )
