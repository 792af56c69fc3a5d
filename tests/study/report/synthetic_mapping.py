"""Made-up rows of the studies `mapping`, `total_cost` and `sequences`. No value here was measured.

Times are memory traffic or searches, whichever takes longer, so that the tests know what the report must find.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from synthetic_blocks import again, timed

from octopus_study.measure.rows import Case, Row, unavailable
from octopus_study.status import NO_ANSWER

OPERATIONS = {"multiply": 1.0, "normalize": 1.02, "threshold": 1.0, "gamma": 1.3, "blur3x3": 2.4, "blur5x5-sobel": 4.1}
POINTWISE = ("multiply", "normalize", "threshold", "gamma")
MEAN_ELEMENTS = {"tiny": 100, "visdrone": 3600, "large": 93_600}
ITEMS = (10_000, 100_000)


class Pretended(NamedTuple):
    """What a pretended machine can do; a step of a search takes `step_ns` with so many threads in flight."""

    gigabytes: float
    threads: int
    launch_ms: float
    layer: str
    step_ns: float
    memory: float


MACHINES = {
    "gpu": Pretended(4200.0, 270_336, 0.003, "device", 40.0, 60e9),
    "cpu": Pretended(14.0, 2, 0.001, "host", 3.0, 2e9),
}


def mapping(kind: str, dataset: str) -> Iterator[Row]:
    """Yield the rows of the mapping study."""
    rng, machine = np.random.default_rng(5), MACHINES[kind]
    for distribution, mean in MEAN_ELEMENTS.items():
        name = dataset if distribution == "visdrone" else "synthetic"
        for n in ITEMS:
            elements, case = n * mean, Case("mapping", name, distribution, n)
            yield case.row("batch", "deterministic", "elements", "count", elements)
            yield case.row("lookup", "deterministic", "map_bytes", "bytes", 4 * elements)
            for operation, weight in OPERATIONS.items():
                case = Case("mapping", name, f"{distribution}-{operation}", n)
                if 8 * elements > machine.memory:
                    why = f"needs {8 * elements / 2**30:.1f} GiB of memory"
                    for method in ("octopus", "thread-search", "lookup", "block-metadata"):
                        yield unavailable(case, method, machine.layer, "kernel", "ms", why)
                    continue
                times = kernels(machine, elements, n, weight)
                yield from timed(rng, case, machine.layer, "kernel", times)
                if operation in POINTWISE:
                    bound = {"copy-bound": 8.0 * elements / machine.gigabytes / 1e6 + machine.launch_ms}
                    rows = timed(rng, case, machine.layer, "kernel", bound)
                    yield from (row.answered(NO_ANSWER) for row in rows)
    for block in range(20):
        probe = Case("mapping", "synthetic", "multiply", ITEMS[0])
        yield probe.row("tuner", "host", "tuner_probe", "ms", 21.0 + block / 10, block=block)


def kernels(machine: Pretended, elements: int, n: int, weight: float) -> dict[str, float]:
    """Return the time of each strategy in milliseconds."""
    stream = weight * 8.0 * elements / machine.gigabytes / 1e6
    table = 4.0 * elements / machine.gigabytes / 1e6
    search = elements * math.ceil(math.log2(n + 1)) * machine.step_ns / machine.threads / 1e6
    times = {
        "octopus": 1.06 * stream,
        "thread-search": max(1.05 * stream, search / 4),
        "thread-search-scalar": max(1.2 * stream, search),
        "lookup": 1.06 * stream + table,
        "block-metadata": 1.09 * stream,
        "block-metadata-tuned": 1.05 * stream,
    }
    if machine.layer == "device":
        times["block-metadata-scalar"] = 1.3 * stream
    return again({name: machine.launch_ms + time for name, time in times.items()})


PIXELS = {
    "flickr-500": (500, 89_416_278),
    "flickr-500-4k": (501, 97_710_678),
    "flickr-500-8k": (501, 122_593_878),
    "flickr-1000": (1000, 179_455_121),
    "flickr-1000-8k": (1001, 212_632_721),
}
# Blocks of at most 65 536 pixels that follow from the published gains in memory.
BLOCKS = dict(zip(PIXELS, (1549, 1676, 2056, 3101, 3608), strict=True))
# Setup in ns per pixel, and the kernel as a multiple of the streaming time.
TABLES = {"lookup-published": 1.6, "lookup-vectorised": 0.55, "lookup-device": 2e-3}
SETUP = {"thread-search": 0.001, "octopus": 0.001, "block-metadata": 0.05, "block-metadata-published": 0.9}
KERNELS = dict.fromkeys(TABLES, 1.32) | {"thread-search": 1.5, "octopus": 1.31}
KERNELS |= dict.fromkeys(("block-metadata", "block-metadata-published"), 1.35)


def total_cost(kind: str) -> Iterator[Row]:
    """Yield the rows of the study of total cost."""
    rng = np.random.default_rng(6)
    for mix, (n, pixels) in PIXELS.items():
        for name, weight in {"light": 1.0, "heavy": 3.4}.items():
            yield from costs(rng, Case("total_cost", "synthetic", f"{mix}-{name}", n), pixels, weight, kind)
    if kind == "cpu":
        case = Case("total_cost", "synthetic", "flickr-500-light", 500)
        yield unavailable(case, "lookup-device", "host", "total", "ms", "builds the table on a GPU")


def costs(rng: np.random.Generator, case: Case, pixels: int, weight: float, kind: str) -> Iterator[Row]:
    """Yield every step of one mix."""
    machine = MACHINES[kind]
    stream = weight * 2 * pixels / machine.gigabytes / 1e6
    methods = [name for name in KERNELS if kind == "gpu" or name != "lookup-device"]
    kernel = again({name: KERNELS[name] * stream + machine.launch_ms for name in methods})
    setup = again({name: SETUP.get(name, TABLES.get(name, 0.0) * pixels / 1e6) for name in methods})
    steps = {"setup": setup, "kernel": kernel}
    if kind == "gpu":
        steps["upload"] = dict.fromkeys(kernel, 0.008)
        steps["upload"] |= dict.fromkeys(("lookup-published", "lookup-vectorised"), 0.008 + pixels / 0.6e7)
        steps["download"] = dict.fromkeys(kernel, 0.01 + pixels / 2.2e7)
        yield from timed(rng, case, "device", "kernel", kernel)
    if case.workload == "flickr-500-light":
        unfair = (240, 9.5) if kind == "gpu" else (1.5, 30)
        names = ("one-thread-per-image", "linear-search")
        times = {name: stream * one for name, one in zip(names, unfair, strict=True)}
        times |= again({"octopus": kernel["octopus"]})
        yield from timed(rng, case._replace(workload=f"{case.workload}-ladder"), machine.layer, "kernel", times)
    for quantity, times in steps.items():
        # The bytes that are uploaded are the published table's.
        shown = {name: time for name, time in times.items() if (name, quantity) != ("lookup-vectorised", "upload")}
        yield from timed(rng, case, "host", quantity, shown, "n/a" if quantity != "kernel" else "same")
    yield from timed(rng, case, "host", "total", {name: sum(one[name] for one in steps.values()) for name in kernel})
    blocks, offsets = BLOCKS[case.workload.rpartition("-")[0]], 8 * (case.n + 1)
    beside = dict.fromkeys(TABLES, 4 * pixels)
    beside |= {"block-metadata": 12 * blocks, "block-metadata-published": 20 * blocks}
    for name in methods:
        yield case.row(name, "deterministic", "map_bytes", "bytes", offsets + beside.get(name, 0))
    yield case.row("batch", "deterministic", "elements", "count", pixels)


MIXES = {
    "nlp-1k": (1000, 60_000, 2.2),
    "nlp-10k": (10_000, 595_000, 2.3),
    "nlp-extreme-1k": (1000, 150_000, 7.0),
    "vision-patches-500": (500, 1_700_000, 1.6),
    "vision-extreme-500": (500, 3_400_000, 4.0),
}


def sequences(kind: str, torch: bool = False) -> Iterator[Row]:
    """Yield the rows of the study of ragged sequences; without `torch` there is no nested tensor."""
    rng, machine = np.random.default_rng(7), MACHINES[kind]
    for mix, (n, elements, padding) in MIXES.items():
        case, stream = Case("sequences", "synthetic", mix, n), 8.0 * elements / machine.gigabytes / 1e6
        # Kernel as a multiple of the streaming time, setup in ms, bytes beside the offsets.
        methods = {
            "octopus": (1.1, 0.001, 0),
            "block-metadata": (1.2, n * 2e-5, 12 * n),
            "block-metadata-published": (1.2, n * 4e-4, 20 * n),
            "lookup-vectorised": (1.6, elements * 8e-7, 4 * elements),
            "lookup-published": (1.6, n * 9e-4, 4 * elements),
            "padded": (padding, n * 6e-4, int(4 * elements * (padding - 1))),
        }
        methods |= {"nested-jagged": (3, 0.05, 0)} if torch else {}
        kernel = again({name: one * stream + machine.launch_ms for name, (one, _, _) in methods.items()})
        setup = again({name: one for name, (_, one, _) in methods.items()})
        yield from timed(rng, case, machine.layer, "kernel", kernel)
        yield from timed(rng, case, "host", "setup", setup, "n/a")
        yield from timed(rng, case, "host", "total", {name: setup[name] + kernel[name] + 0.02 for name in kernel})
        if not torch:
            why = "torch is not installed (pip install torch)"
            yield unavailable(case, "nested-jagged", "host", "total", "ms", why)
        for method, (_, _, size) in methods.items():
            yield case.row(method, "deterministic", "map_bytes", "bytes", 8 * (n + 1) + size)
        yield case.row("padded", "deterministic", "padding_waste", "fraction", 1 - 1 / padding)
        yield case.row("batch", "deterministic", "elements", "count", elements)
