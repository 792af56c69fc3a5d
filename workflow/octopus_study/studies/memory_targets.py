"""What `measure_memory` runs in a fresh process: one contender on boxes of the right number and size."""

from __future__ import annotations

from typing import Any

import numpy as np

from octopus_study.measure import MemoryProbe, payload
from octopus_study.peers.fused import Octopus
from octopus_study.peers.job import CropJob, make_job
from octopus_study.peers.published import NLaunches, Published

METHODS = {"octopus": Octopus, "published": Published, "n-launches": NLaunches}


def probe(
    method: str, device: str, count: int, size: tuple[int, int], frame_shape: tuple[int, int, int]
) -> MemoryProbe:
    """A method that has run once on one box, and what it does with `count`.

    The pixels and the places of the boxes don't matter for memory, so that no data are read here.
    """
    shape, frame = tuple(size), np.zeros(frame_shape, np.uint8)

    def run(boxes: int) -> Any:
        job = _job(frame, boxes, shape, device)
        contender = METHODS[method](job)
        contender.run()
        if device == "cuda":
            from octopus_study.measure.cuda import synchronize

            synchronize()
        return job, contender

    run(1)
    result = ((count, frame_shape[2], *shape), np.float32)
    return MemoryProbe(payload(frame, result, ((count, 4), np.float32)), lambda: run(count))


def _job(frame: np.ndarray, count: int, size: tuple[int, int], device: str) -> CropJob:
    boxes = np.tile(np.array([[4, 4, 60, 60]], np.int32), (count, 1))
    channels = frame.shape[2]
    return make_job(frame, boxes, size, (0.0,) * channels, (1.0,) * channels, device)
