"""How much of the frames' upload hides behind the crops, in the loop that a user would write (`FrameStream`).

Serial and overlapped differ in the stream of the uploads alone; `upload-only` hands the same frames over without boxes,
and `kernels-only` crops frames and boxes that are on the GPU already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus import CropPlan, FrameStream
from octopus.backends.cuda import memory
from octopus_study.baselines.availability import Unavailable
from octopus_study.baselines.job import TOLERANCE_LEVELS
from octopus_study.data.video import Clip
from octopus_study.measure import HostClock, Method, Row, check_answers
from octopus_study.status import NO_ANSWER
from octopus_study.studies.comparison import Part, compare
from octopus_study.studies.context import Context
from octopus_study.studies.drone.video import NEEDS_GPU, Footage

BUFFERS = 2
Frames = NDArray[np.uint8]  # and boxes: as `Video` has them
Boxes = Sequence[NDArray[np.int32]]
SERIAL, OVERLAPPED, UPLOADS, KERNELS = NAMES = (
    "stream-serial", "stream-overlapped", "upload-only", "kernels-only",
)  # fmt: skip


class _Loop:
    """Keeps the crops of the last two frames, each by its slot, the number modulo 2."""

    _crops: list[Any]

    def poison(self) -> None:
        """Fill the crops with NaN."""
        for part in self._crops:
            if isinstance(part, np.ndarray):
                part.fill(np.nan)
            else:
                part.fill_bytes(0xFF)

    def result(self) -> NDArray[np.float32]:
        """Crops of the last two frames, that of the first slot first."""
        crops = (part if isinstance(part, np.ndarray) else part.copy_to_host() for part in self._crops)
        return np.concatenate(list(crops))


class Streamed(_Loop):
    """A clip through `FrameStream`; its page-locked buffers hold the first frames of the ring from the start, as if a
    camera wrote into them by itself.

    Frame k is that of slot k modulo 2; `options` are those of the crops, with `overlap` uploads go beside them.
    """

    def __init__(self, ring: Frames, boxes: Boxes, options: dict[str, Any], device: str, overlap: bool) -> None:
        self._boxes, self._none = list(boxes), np.empty((0, 4), np.int32)
        most = max(map(len, boxes))
        self._stream = FrameStream(ring[0], most, buffers=BUFFERS, overlap=overlap, device=device, **options)
        self._crops = []
        for frame in ring[:BUFFERS]:
            self._stream.buffer()[...] = frame
            self._crops.append(self._stream.submit(boxes[0]))
        self._stream.wait()

    def run(self) -> None:
        for number, boxes in enumerate(self._boxes):
            self._stream.buffer()
            self._crops[number % BUFFERS] = self._stream.submit(boxes)

    def upload(self) -> None:
        for _ in range(len(self._boxes)):
            self._stream.buffer()
            self._stream.submit(self._none)


class KernelsAlone(_Loop):
    """The crops of frames and boxes that lie where the work is done; parameters as `Streamed` has them."""

    def __init__(self, ring: Frames, boxes: Boxes, options: dict[str, Any], device: str) -> None:
        place = np.asarray if device == "cpu" else memory.upload
        self._frames = [place(frame) for frame in ring[:BUFFERS]]
        self._boxes = [place(part.astype(np.float32)) for part in boxes]
        most = max(map(len, boxes))
        self._plans = [CropPlan(frame, most, device=device, **options) for frame in self._frames]
        self._crops = [plan.run(frame, boxes[0]) for plan, frame in zip(self._plans, self._frames, strict=True)]

    def run(self) -> None:
        for number, boxes in enumerate(self._boxes):
            slot = number % BUFFERS
            self._crops[slot] = self._plans[slot].run(self._frames[slot], boxes)


def stream_rows(clip: Clip, footage: Footage, context: Context, part: Part) -> Iterator[Row]:
    """Rows of the layer `pipelined`; a machine without a GPU has nothing to overlap."""
    if context.device != "cuda":
        raise Unavailable(NEEDS_GPU)
    (comparison,) = part.comparisons
    host = context.host_clock()
    clock = HostClock(host.synchronize, host.throttle, comparison.layer, warm=True)
    budget = context.budget_within(context.config.drone.max_seconds)
    methods, answers = loops(context, clip, footage)
    yield from compare(context, comparison, methods, answers, clock=clock, budget=budget, base=SERIAL)


def loops(context: Context, clip: Clip, footage: Footage) -> tuple[list[Method], dict[str, str]]:
    """The four loops, and what their answers are worth."""
    crop = context.config.crop
    inputs = (footage.ring, clip.boxes, crop.model_dump(), context.device)
    serial, overlapped = Streamed(*inputs, overlap=False), Streamed(*inputs, overlap=True)
    alone = KernelsAlone(*inputs)
    last = sorted(range(len(clip.boxes))[-BUFFERS:], key=lambda number: number % BUFFERS)
    # Each slot keeps the frame that it began with.
    expected = np.concatenate([footage.crops(number % BUFFERS, clip.boxes[number]) for number in last])
    tolerance = TOLERANCE_LEVELS / max(crop.std)
    answers = {UPLOADS: NO_ANSWER}
    for name, loop in ((SERIAL, serial), (OVERLAPPED, overlapped), (KERNELS, alone)):
        loop.poison()
        answers |= check_answers([Method(name, loop.run, loop.result, tolerance)], expected)
    runs = (serial.run, overlapped.run, overlapped.upload, alone.run)
    return [Method(name, run) for name, run in zip(NAMES, runs, strict=True)], answers
