"""Memory of the methods, each in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from octopus_study.measure import MemoryProbe, Row, payload
from octopus_study.studies import memory
from octopus_study.studies.comparison import Part
from octopus_study.studies.context import Context
from octopus_study.studies.images.job import ImageJob
from octopus_study.studies.images.registry import make
from octopus_study.studies.images.workloads import BATCHES, sides

TARGET = "octopus_study.studies.images.memory:probe"
SWITCHED_OFF = "not measured in this run (images.memory is false)"


def rows(context: Context, part: Part) -> Iterator[Row]:
    """Four rows per method."""
    methods, batch = part.comparisons[0].methods, part.case
    missing = {} if context.config.images.memory else dict.fromkeys(methods, SWITCHED_OFF)
    arguments = {"workload": batch.workload, "count": batch.n, "seed": context.seed}
    return memory.rows(context, part, TARGET, arguments, missing)


def probe(method: str, workload: str, count: int, seed: int, device: str) -> MemoryProbe:
    """A method on images of the workload's sizes."""

    def job(shapes: np.ndarray) -> ImageJob:
        images = [np.zeros((*shape, 3), np.uint8) for shape in shapes.tolist()]
        return ImageJob(images, BATCHES[workload].task, device)

    sizes = sides(workload, count, seed)
    whole = job(sizes)
    needed = whole.read_bytes + payload((whole.shape, np.uint16 if method.endswith("bf16") else np.float32))
    small = np.full((1, 2), 64)
    return memory.probed(device, needed, lambda: make(method, job(small)), lambda: make(method, job(sizes)))
