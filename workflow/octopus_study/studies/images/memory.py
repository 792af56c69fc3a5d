"""Memory of the methods in four lines, each method in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from octopus_study.measure import Case, MemoryProbe, Row, memory_rows, payload
from octopus_study.measure.memory import MemoryLines
from octopus_study.studies.comparison import Comparison, Part
from octopus_study.studies.context import Context, empty_caches
from octopus_study.studies.images.job import ImageJob
from octopus_study.studies.images.method import ImageMethod
from octopus_study.studies.images.registry import make
from octopus_study.studies.images.workloads import BATCHES, sides

TARGET = "octopus_study.studies.images.memory:probe"
SWITCHED_OFF = "not measured in this run (images.memory is false)"


def comparisons(case: Case, methods: tuple[str, ...]) -> tuple[Comparison, ...]:
    """The four lines."""
    return tuple(
        Comparison(case, f"memory_{line}", "memory", methods, "bytes") for line in MemoryLines._fields
    )


def rows(context: Context, part: Part) -> Iterator[Row]:
    """Four rows per method."""
    if not context.config.images.memory:
        for comparison in part.comparisons:
            yield from comparison.gaps(SWITCHED_OFF)
        return
    _, _, workload, count = part.case
    batch = {"workload": workload, "count": count, "seed": context.seed, "device": context.device}
    meter = "cuda" if context.device == "cuda" else "rss"
    for method in part.comparisons[0].methods:
        yield from memory_rows(part.case, method, TARGET, kwargs={"method": method, **batch}, meter=meter)


def probe(method: str, workload: str, count: int, seed: int, device: str) -> MemoryProbe:
    """A method that has run once on one small image, and what it does with all of them; their pixels don't matter."""
    sizes, alive = sides(workload, count, seed), list[ImageMethod]()

    def run(shapes: np.ndarray) -> list[ImageMethod]:
        images = [np.zeros((*shape, 3), np.uint8) for shape in shapes.tolist()]
        alive[:] = [make(method, ImageJob(images, BATCHES[workload].task, device))]
        alive[0].run()
        if device == "cuda":
            from octopus_study.measure.cuda import synchronize

            synchronize()
        return alive

    run(np.full((1, 2), 64))
    has_allocator = alive[0].allocator_peak() is not None
    alive.clear()
    empty_caches(device)
    job = ImageJob(
        [np.zeros((*shape, 3), np.uint8) for shape in sizes.tolist()], BATCHES[workload].task, device
    )
    needed = job.read_bytes + payload((job.shape, np.uint16 if method.endswith("bf16") else np.float32))
    peak = (lambda: alive[0].allocator_peak() or 0) if has_allocator else None
    return MemoryProbe(needed, lambda: run(sizes), peak)
