"""Probe this machine for the best strategy: who finds an element's item the fastest here?

The answer depends on the operation (does it wait for memory, or compute?) and on how large items are, so each group of
calls has a probe: on batches as uneven as a detector's boxes and as icons, or on the sizes of the user's own batch.
Every probe uses its item's parameter or shape, so that no lookup can be left out. A strategy costs its kernel, and what
must be built for it divided by how often a batch is used again.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus import backends
from octopus.arrays.checks import Device
from octopus.errors import InputError, shown
from octopus.ragged import blockmap
from octopus.ragged.batch import RaggedBatch
from octopus.ragged.check import whole
from octopus.ragged.plan import RaggedPlan

OPERATIONS = ("multiply", "blur3x3")  # one that waits for memory, and one that computes
ELEMENTS = {"cpu": 100_000, "cuda": 5_000_000}  # of a probe's batch: beyond launch latency, quickly done
ROUNDS, MIN_ROUNDS = 9, 3
SECONDS = 0.006  # of one probe, once it has the least rounds
AS_GOOD = 1.05  # within five per cent, which probes as short as these can't tell apart, what has less to build is taken
_WIDE = max(map(len, blockmap.GROUPS.values()))
ORDER = ("block_search", "thread_search", "block_metadata", "lookup")  # by what they need


class Evidence(NamedTuple):
    """One measured strategy."""

    group: str  # of `blockmap.GROUPS`
    strategy: str
    setup_ms: float  # its map is built on the host
    kernel_ms: float  # the least of the rounds, the data in place

    def cost(self, uses: int) -> float:
        """Milliseconds per use of a batch that is used so many times."""
        return self.kernel_ms + self.setup_ms / uses


class Tuning(NamedTuple):
    """What `tune` found."""

    device: str
    choice: dict[str, str]  # a strategy for each group that was probed, see `octopus.blockmap.GROUPS`
    uses: int  # how often a batch was taken to be used
    evidence: tuple[Evidence, ...]
    probe_ms: float  # what the probes took, without compiling

    def __repr__(self) -> str:
        shown = [f"{f'Tuning on {self.device}, ms':<{_WIDE}} {'strategy':<15} kernel   setup"]
        for row in self.evidence:
            chosen = "  <- chosen" if row.strategy == self.choice[row.group] else ""
            what = f"{blockmap.GROUPS[row.group]:<{_WIDE}} {row.strategy:<15}"
            shown.append(f"{what} {row.kernel_ms:6.3f}  {row.setup_ms:6.3f}{chosen}")
        return "\n".join([*shown, f"probes took {self.probe_ms:.1f} ms"])


def tune(device: Device = "auto", *, sizes: Any = None, uses: int = 1, keep: bool = True) -> Tuning:
    """Measure every strategy on this machine and remember the best for `strategy="auto"`.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}
        "auto": the GPU if there is one.
    sizes : array, (N, 2) or (N,), integer, optional
        Heights and widths of your images, or lengths of your sequences, 1 or more each: the probes work on these, the
        first ones that make 5 million elements (100,000 on a CPU), and the choice is kept for items of that size. By
        default there are probes for small items (4 to 16 pixels a side) and for those as large as the boxes of a
        drone's detector.
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
        For "cuda" without a usable GPU; if `uses` is no whole number from 1 on, or `sizes` are no sizes.
    """
    uses = whole("uses", uses)
    side = backends.resolve(device)
    shapes = [_icons(ELEMENTS[side]), _boxes(ELEMENTS[side])] if sizes is None else [_checked(sizes)]
    clock = _clock(side)
    probes: dict[str, dict[str, Callable[[], object]]] = {}
    setups: dict[str, dict[str, Callable[[], object]]] = {}
    for each in shapes:
        batch = probe_batch(each, ELEMENTS[side])
        for operation in OPERATIONS[: each.shape[1]]:  # sequences have no stencil
            group = blockmap.group_of(operation, batch.size, len(batch))
            probes[group] = {name: _probe(side, batch, operation, name) for name in blockmap.STRATEGIES}
            setups[group] = {name: partial(blockmap.build, name, batch.offsets) for name in blockmap.STRATEGIES}
    started = time.perf_counter()
    evidence = [row for group in probes for row in _measured(group, probes[group], setups[group], clock)]
    probe_ms = (time.perf_counter() - started) * 1e3
    choice = {group: _best(evidence, group, uses).strategy for group in probes}
    if keep:
        blockmap.store(side, choice)
    return Tuning(side, choice, uses, tuple(evidence), probe_ms)


def probe_batch(shapes: NDArray[np.int64], elements: int) -> RaggedBatch:
    """A batch of float32 on the host, seeded, of the first of these shapes, up to so many elements."""
    shapes = shapes[: max(int(np.searchsorted(np.cumsum(shapes.prod(axis=1)), elements)), 1)]
    values = np.random.RandomState(42).random_sample(int(shapes.prod(axis=1).sum())).astype(np.float32)
    return RaggedBatch.from_arrays(values, shapes)


def _boxes(elements: int) -> NDArray[np.int64]:
    """Images with the published long-tailed distribution of sides, of 6,600 elements on average."""
    random, count = np.random.RandomState(42), elements // 3000
    kind = random.choice(3, (count, 1), p=(0.80, 0.15, 0.05))
    return random.randint(np.array([16, 60, 150])[kind], np.array([61, 151, 401])[kind], (count, 2))


def _icons(elements: int) -> NDArray[np.int64]:
    return np.random.RandomState(42).randint(4, 17, (elements // 90, 2))


def _checked(sizes: Any) -> NDArray[np.int64]:
    found = np.asarray(sizes)
    if found.ndim == 1:
        found = found[:, None]
    if found.ndim != 2 or found.shape[1] not in (1, 2) or not len(found) or found.dtype.kind not in "iu":
        raise InputError(
            f"sizes must be heights and widths (N, 2) or lengths (N,) in whole numbers, found {shown(sizes)}"
        )
    if found.min() < 1:
        raise InputError(f"sizes must be 1 or more, found {found.min()}")
    return found.astype(np.int64)


def _probe(device: str, batch: RaggedBatch, operation: str, strategy: Any) -> Callable[[], object]:
    """The kernel alone, on data that are in place; run once, so that it is compiled. On a GPU it is only queued."""
    parameters: list[Any] = [np.linspace(0.5, 1.5, len(batch), dtype=np.float32)] * (operation == "multiply")
    out: Any = np.empty_like(batch.values) if device == "cpu" else None
    if device == "cuda":
        from octopus.backends.cuda import memory

        batch = RaggedBatch(memory.upload(batch.values), batch.offsets, batch.shapes)
        parameters = list(map(memory.upload, parameters))
        out = memory.DeviceArray((batch.size,), np.float32)
    plan = RaggedPlan(operation, batch, strategy=strategy, device=device)

    run = partial(plan.run, batch, *parameters, out=out)
    run()
    return run


def _clock(device: str) -> Callable[[Callable[[], object]], float]:
    """What tells the milliseconds of a kernel: the host's clock, or events around it on a GPU whose L2 is cold."""
    if device == "cpu":
        return _ms
    from cuda.core import EventOptions

    from octopus.backends.cuda import memory, stream_of
    from octopus.backends.cuda.device import current

    gpu, stream = current(), stream_of(None)
    first, last = (gpu.create_event(EventOptions(timing_enabled=True)) for _ in range(2))
    # Rewriting this takes longer than the host needs to queue the kernel: else events would time the host.
    cold = memory.DeviceArray((4 * gpu.properties.l2_cache_size,), np.uint8)

    def milliseconds(run: Callable[[], object]) -> float:
        cold.fill_bytes(0)
        stream.record(first)
        run()
        stream.record(last)
        last.sync()
        return float(last - first)

    return milliseconds


def _measured(group: str, runs: dict[str, Any], setups: dict[str, Any], clock: Any) -> list[Evidence]:
    rounds, since = list[dict[str, float]](), time.perf_counter()
    # In a round every strategy runs once: a slow moment of the machine meets them all.
    while len(rounds) < MIN_ROUNDS or (len(rounds) < ROUNDS and time.perf_counter() - since < SECONDS):
        rounds.append({name: clock(run) for name, run in runs.items()})
    return [Evidence(group, name, _ms(setups[name]), min(each[name] for each in rounds)) for name in runs]


def _ms(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return (time.perf_counter() - started) * 1e3


def _best(evidence: list[Evidence], group: str, uses: int) -> Evidence:
    rows = [row for row in evidence if row.group == group]
    limit = min(row.cost(uses) for row in rows) * AS_GOOD
    return min((row for row in rows if row.cost(uses) <= limit), key=lambda row: ORDER.index(row.strategy))
