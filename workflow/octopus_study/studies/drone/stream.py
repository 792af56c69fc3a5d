"""How much of the frames' upload hides behind the crops, in the loop that a user would write (`FrameStream`).

Serial and overlapped differ in the stream of the uploads alone; `upload-only` hands the same frames over without boxes,
and `kernels-only` crops frames and boxes that are on the GPU already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.data.video import Clip
from octopus_study.measure import Case, HostClock, Method, Row, check_answers, run_paired, unavailable
from octopus_study.studies.contest import TOLERANCE_LEVELS, ReferenceCrops
from octopus_study.studies.context import Context
from octopus_study.studies.drone.clips import BUFFERS, KernelsAlone, Streamed, UploadsAlone
from octopus_study.studies.drone.frames import NEEDS_GPU

QUANTITY = "clip_time"
SERIAL, OVERLAPPED = "stream-serial", "stream-overlapped"
NAMES = (SERIAL, OVERLAPPED, UploadsAlone.name, KernelsAlone.name)


def rows(
    context: Context, case: Case, clip: Clip, ring: NDArray[np.uint8], right: list[ReferenceCrops]
) -> list[Row]:
    """Rows of the layer `pipelined`; a machine without a GPU has nothing to overlap."""
    if context.device != "cuda":
        return [unavailable(case, name, "pipelined", QUANTITY, "ms", NEEDS_GPU) for name in NAMES]
    host = context.host_clock()
    clock = HostClock(host.synchronize, host.throttle, "pipelined", warm=True)
    budget = context.budget_within(context.config.drone.max_seconds)
    methods, answers = contenders(context, clip, ring, right)
    return run_paired(case, QUANTITY, "ms", methods, clock, budget, answers, context.seed, base=SERIAL)


def contenders(
    context: Context, clip: Clip, ring: NDArray[np.uint8], right: list[ReferenceCrops]
) -> tuple[list[Method], dict[str, str]]:
    """The four loops, and what their answers are worth."""
    crop = context.config.crop
    options = {"size": crop.size, "mean": crop.mean, "std": crop.std}
    inputs = (ring, clip.boxes, options, context.device)
    serial, overlapped = Streamed(*inputs, overlap=False), Streamed(*inputs, overlap=True)
    alone = KernelsAlone(*inputs)
    uploads = UploadsAlone(overlapped)
    expected = _expected(clip, right)
    answers = {uploads.name: "n/a"}
    for each in (serial, overlapped, alone):
        answers |= _answer(each, expected, TOLERANCE_LEVELS / max(crop.std))
    ways: list[Any] = [serial, overlapped, uploads, alone]
    return [Method(way.name, way.run) for way in ways], answers


def _expected(clip: Clip, right: list[ReferenceCrops]) -> NDArray[np.float32]:
    """Crops of the last two frames, that of the first slot first."""
    last = sorted(range(len(clip.boxes))[-BUFFERS:], key=lambda number: number % BUFFERS)
    return np.concatenate([right[number % BUFFERS].of(clip.boxes[number]) for number in last])


def _answer(way: Any, expected: NDArray[np.float32], tolerance: float) -> dict[str, str]:
    way.poison()
    result: Callable[[], NDArray[np.float32]] = way.result
    return check_answers([Method(way.name, way.run, result, tolerance)], expected)
