"""Made-up rows of the studies `mapping`, `total_cost` and `sequences`. No value here was measured.

Times follow the cost model's own form (memory traffic or searches, whichever takes longer), so that the tests know
what the report must find.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from synthetic_blocks import again, timed

from octopus_study.measure.rows import Case, Row, unavailable
from octopus_study.status import NO_ANSWER

OPERATIONS = {
    "multiply": 1.0,
    "normalize": 1.02,
    "threshold": 1.0,
    "gamma": 1.3,
    "blur3x3": 2.4,
    "blur5x5-sobel": 4.1,
}
POINTWISE = ("multiply", "normalize", "threshold", "gamma")
MEAN_ELEMENTS = {"tiny": 100, "visdrone": 3600, "large": 93_600}
ITEMS = (10_000, 100_000)
THRESHOLD = 65_536
# Nanoseconds of a step of a search, with as many threads as a machine keeps in flight.
STEP_NS = {"device": 40.0, "host": 3.0}


class Pretended(NamedTuple):
    """What a pretended machine can do."""

    gigabytes: float
    threads: int
    launch_ms: float
    layer: str


MACHINES = {"gpu": Pretended(4200.0, 270_336, 0.003, "device"), "cpu": Pretended(14.0, 2, 0.001, "host")}
MEMORY_LIMIT = {"gpu": 60e9, "cpu": 2e9}


def mapping(kind: str, dataset: str) -> Iterator[Row]:
    """Yield the rows of the mapping study."""
    rng = np.random.default_rng(5)
    machine = MACHINES[kind]
    for distribution, mean in MEAN_ELEMENTS.items():
        name = dataset if distribution == "visdrone" else "synthetic"
        for n in ITEMS:
            elements = n * mean
            yield from maps(rng, Case("mapping", name, distribution, n), elements, kind)
            for operation, weight in OPERATIONS.items():
                case = Case("mapping", name, f"{distribution}-{operation}", n)
                if 8 * elements > MEMORY_LIMIT[kind]:
                    why = f"needs {8 * elements / 2**30:.1f} GiB of memory"
                    for method in ("octopus", "thread-search", "lookup", "block-metadata"):
                        yield unavailable(case, method, machine.layer, "kernel", "ms", why)
                    continue
                times = kernels(machine, elements, n, 8.0, weight)
                if kind == "cpu":
                    del times["lookup-scalar"], times["block-metadata-scalar"]
                if operation in POINTWISE:
                    times["copy-bound"] = 8.0 * elements / machine.gigabytes / 1e6 + machine.launch_ms
                yield from _answers(timed(rng, case, machine.layer, "kernel", times), ("copy-bound",))
                yield case.row("tuner", "deterministic", "tuner_regret", "fraction", 0.012)
    case = Case("mapping", "synthetic", "visdrone-multiply-uint8", ITEMS[0])
    times = kernels(machine, ITEMS[0] * MEAN_ELEMENTS["visdrone"], ITEMS[0], 2.0, 1.0)
    if kind == "cpu":
        del times["lookup-scalar"], times["block-metadata-scalar"]
    yield from timed(rng, case, machine.layer, "kernel", times)
    for block in range(20):
        probe = Case("mapping", "synthetic", "multiply", ITEMS[0])
        yield probe.row("tuner", "host", "tuner_probe", "ms", 21.0 + block / 10, block=block)
    for size in (64, 256):
        for method, share in (("write", 1.08), ("read", 1.04), ("copy", 1.0)):
            case = Case("mapping", "synthetic", "bandwidth", size)
            for block in range(5):
                value = machine.gigabytes * share * rng.normal(1, 0.01)
                yield case.row(method, "limit", "bandwidth", "GB/s", value, block=block)


def kernels(machine: Pretended, elements: int, n: int, bytes_each: float, weight: float) -> dict[str, float]:
    """Return the time of each strategy in milliseconds."""
    stream = weight * bytes_each * elements / machine.gigabytes / 1e6
    table = 4.0 * elements / machine.gigabytes / 1e6
    search = elements * math.ceil(math.log2(n + 1)) * STEP_NS[machine.layer] / machine.threads / 1e6
    fixed = machine.launch_ms
    return {
        "octopus": fixed + 1.06 * stream,
        "octopus-again": fixed + 1.06 * stream,
        "thread-search": fixed + max(1.05 * stream, search / 4),
        "thread-search-scalar": fixed + max(1.2 * stream, search),
        "lookup": fixed + 1.06 * stream + table,
        "lookup-scalar": fixed + 1.2 * stream + table,
        "block-metadata-scalar": fixed + 1.3 * stream,
        "block-metadata": fixed + 1.09 * stream,
        "block-metadata-tuned": fixed + 1.05 * stream,
    }


def maps(rng: np.random.Generator, case: Case, elements: int, kind: str) -> Iterator[Row]:
    """Yield what building, uploading and holding the map takes."""
    n, blocks = case.n, case.n + elements // THRESHOLD
    sizes = {
        "lookup": 4 * elements,
        "block-metadata": 12 * blocks,
        "block-metadata-tuned": 12 * (n + elements // 4096),
        "thread-search": 8 * (n + 1),
        "octopus": 8 * (n + 1),
    }
    build = {
        "lookup": elements * 1.1e-6,
        "block-metadata": n * 2.2e-5,
        "block-metadata-tuned": n * 2.6e-5,
        "octopus": 0.0006,
        "thread-search": 0.0006,
    }
    if kind == "gpu":
        build["lookup-device"] = 0.01 + elements * 1.2e-9
        upload = {name: 0.006 + size / 2.4e7 for name, size in sizes.items()}
        yield from timed(rng, case, "host", "upload", upload, "n/a")
    yield from timed(rng, case, "host", "setup", build, "n/a")
    for method, size in sizes.items():
        yield case.row(method, "deterministic", "map_bytes", "bytes", size)
    yield case.row("batch", "deterministic", "elements", "count", elements)
    yield case.row("block-metadata", "deterministic", "blocks", "count", blocks)
    yield case.row("block-metadata-tuned", "deterministic", "blocks", "count", n + elements // 4096)


PIXELS = {
    "flickr-500": (500, 89_416_278),
    "flickr-500-4k": (501, 97_710_678),
    "flickr-500-8k": (501, 122_593_878),
    "flickr-1000": (1000, 179_455_121),
    "flickr-1000-8k": (1001, 212_632_721),
}
# Blocks of at most 65 536 pixels that follow from the published gains in memory.
BLOCKS = dict(zip(PIXELS, (1549, 1676, 2056, 3101, 3608), strict=True))
HEAVY = {"light": 1.0, "heavy": 3.4}
# Setup in ns per pixel, and the kernel as a multiple of the streaming time.
TABLES = {"lookup-published": 1.6, "lookup-vectorised": 0.55, "lookup-device": 2e-3}
KERNELS = {
    "lookup-published": 1.32,
    "lookup-vectorised": 1.32,
    "lookup-device": 1.32,
    "thread-search": 1.5,
    "block-metadata": 1.35,
    "block-metadata-published": 1.35,
    "octopus": 1.31,
}


def total_cost(kind: str) -> Iterator[Row]:
    """Yield the rows of the study of total cost."""
    rng = np.random.default_rng(6)
    for mix, (n, pixels) in PIXELS.items():
        for name, weight in HEAVY.items():
            case = Case("total_cost", "synthetic", f"{mix}-{name}", n)
            yield from costs(rng, case, pixels, weight, kind)
    if kind == "cpu":
        why = "builds the table on a GPU"
        case = Case("total_cost", "synthetic", "flickr-500-light", 500)
        for quantity in ("setup", "kernel", "total"):
            yield unavailable(case, "lookup-device", "host", quantity, "ms", why)


def costs(rng: np.random.Generator, case: Case, pixels: int, weight: float, kind: str) -> Iterator[Row]:
    """Yield every step of one mix."""
    machine = MACHINES[kind]
    stream = weight * 2 * pixels / machine.gigabytes / 1e6
    methods = [name for name in KERNELS if kind == "gpu" or name != "lookup-device"]
    kernel = {name: KERNELS[name] * stream + machine.launch_ms for name in methods}
    setup = {name: TABLES.get(name, 0.0) * pixels / 1e6 for name in methods}
    setup |= {
        "thread-search": 0.001,
        "octopus": 0.001,
        "block-metadata": 0.05,
        "block-metadata-published": 0.9,
    }
    blocks = BLOCKS[case.workload.rpartition("-")[0]]
    offsets = 8 * (case.n + 1)
    sizes = {name: 4 * pixels + offsets if name in TABLES else offsets for name in methods}
    sizes |= {"block-metadata": 12 * blocks + offsets, "block-metadata-published": 20 * blocks + offsets}
    kernel, setup, sizes = again(kernel), again(setup), again(sizes)
    methods.append("octopus-again")
    steps = {"setup": setup, "kernel": kernel}
    if kind == "gpu":
        steps["upload"] = dict.fromkeys(methods, 0.008)
        steps["upload"] |= dict.fromkeys(("lookup-published", "lookup-vectorised"), 0.008 + pixels / 0.6e7)
        steps["download"] = dict.fromkeys(methods, 0.01 + pixels / 2.2e7)
        yield from timed(rng, case, "device", "kernel", kernel)
    if case.workload == "flickr-500-light":
        unfair = (240, 9.5) if kind == "gpu" else (1.5, 30)
        times = dict(
            zip(("one-thread-per-image", "linear-search"), (stream * one for one in unfair), strict=True)
        )
        times |= dict.fromkeys(("octopus", "octopus-again"), kernel["octopus"])
        yield from timed(
            rng, case._replace(workload=f"{case.workload}-ladder"), machine.layer, "kernel", times
        )
    for quantity, times in steps.items():
        left_out = (
            ("lookup-vectorised",) if quantity == "upload" else ()
        )  # the bytes are the published table's
        shown = {name: time for name, time in times.items() if name not in left_out}
        yield from timed(rng, case, "host", quantity, shown, "n/a" if quantity != "kernel" else "same")
    totals = {name: sum(times[name] for times in steps.values()) for name in methods}
    yield from timed(rng, case, "host", "total", totals)
    for name, size in sizes.items():
        if not name.endswith("-again"):
            yield case.row(name, "deterministic", "map_bytes", "bytes", size)
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
    rng = np.random.default_rng(7)
    machine = MACHINES[kind]
    for mix, (n, elements, padding) in MIXES.items():
        case = Case("sequences", "synthetic", mix, n)
        stream = 8.0 * elements / machine.gigabytes / 1e6
        kernel = {
            "octopus": 1.1 * stream,
            "octopus-again": 1.1 * stream,
            "block-metadata": 1.2 * stream,
            "block-metadata-published": 1.2 * stream,
            "lookup-vectorised": 1.6 * stream,
            "lookup-published": 1.6 * stream,
            "padded": padding * stream,
        }
        setup = {"octopus": 0.001, "octopus-again": 0.001, "block-metadata": n * 2e-5}
        setup |= {"block-metadata-published": n * 4e-4} | {
            "lookup-vectorised": elements * 8e-7,
            "lookup-published": n * 9e-4,
            "padded": n * 6e-4,
        }
        if torch:
            kernel["nested-jagged"], setup["nested-jagged"] = 3 * stream, 0.05
        kernel = {name: time + machine.launch_ms for name, time in kernel.items()}
        total = {name: setup[name] + kernel[name] + 0.02 for name in kernel}
        yield from timed(rng, case, machine.layer, "kernel", kernel)
        yield from timed(rng, case, "host", "setup", setup, "n/a")
        yield from timed(rng, case, "host", "total", total)
        if not torch:
            for layer, quantity in ((machine.layer, "kernel"), ("host", "setup"), ("host", "total")):
                why = "torch is not installed (pip install torch)"
                yield unavailable(case, "nested-jagged", layer, quantity, "ms", why)
        beside = {"octopus": 0, "block-metadata": 12 * n, "block-metadata-published": 20 * n}
        beside |= {"lookup-vectorised": 4 * elements, "lookup-published": 4 * elements}
        sizes = {name: 8 * (n + 1) + size for name, size in beside.items()}
        sizes["padded"] = int(4 * elements * (padding - 1))
        for method, size in sizes.items():
            yield case.row(method, "deterministic", "map_bytes", "bytes", size)
        yield case.row("padded", "deterministic", "padding_waste", "fraction", 1 - 1 / padding)
        yield case.row("batch", "deterministic", "elements", "count", elements)


def _answers(rows: Iterator[Row], without: tuple[str, ...]) -> Iterator[Row]:
    """Yield rows, those of methods without an answer marked so."""
    for row in rows:
        yield row.answered(NO_ANSWER) if row.method in without else row
