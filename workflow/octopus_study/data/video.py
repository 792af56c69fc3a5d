"""Clips of a drone's video: detections per frame by the published rule, boxes from the pool, frames that pan.

Published are the numbers of detections of the clips of 1 s (851) and 10 s (8347), which one generator gives that
draws ``randint(5, 51)`` for each frame of the clips of 1, 5 and 10 s, one clip after the other. Which boxes a frame
has is not published: here a second generator of the same seed chooses them from the pool.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from octopus.errors import InputError

Boxes = NDArray[np.int32]


@dataclass(frozen=True)
class Clip:
    """Detections of a video, frame by frame."""

    name: str  # for instance ``clip-10s``
    boxes: tuple[Boxes, ...]  # ``xyxy`` in pixels; one array per frame

    @property
    def detections(self) -> int:
        """Boxes of all frames."""
        return sum(map(len, self.boxes))

    @property
    def most(self) -> int:
        """Boxes of the frame that has most."""
        return max(map(len, self.boxes))


def detection_counts(
    seconds: Sequence[int] = (1, 5, 10), frame_rate: int = 30, detections: tuple[int, int] = (5, 50), seed: int = 42
) -> list[NDArray[np.int64]]:
    """Detections per frame of clips of these lengths, drawn one clip after the other from one generator; `detections`
    are the fewest and the most in a frame."""
    fewest, most = detections
    if not 0 < fewest <= most:
        raise InputError(f"a frame has from 1 detection on, and no more than its most; found {detections}")
    random = RandomState(seed)
    return [random.randint(fewest, most + 1, length * frame_rate) for length in seconds]


def make_clips(
    pool: Boxes,
    seconds: Sequence[int] = (1, 5, 10),
    frame_rate: int = 30,
    detections: tuple[int, int] = (5, 50),
    seed: int = 42,
) -> list[Clip]:
    """Clips with the boxes of each frame, drawn from the pool; within a frame no box comes twice if the pool allows."""
    if not len(pool):
        raise InputError("there is no box to draw from; the pool is empty")
    random, clips = RandomState(seed), []
    for length, counts in zip(seconds, detection_counts(seconds, frame_rate, detections, seed), strict=True):
        chosen = [random.choice(len(pool), count, replace=count > len(pool)) for count in counts]
        frames = tuple(np.ascontiguousarray(pool[indices], np.int32) for indices in chosen)
        clips.append(Clip(f"clip-{length}s", frames))
    return clips


def panned(frame: NDArray[np.uint8], frames: int, step: int = 8) -> NDArray[np.uint8]:
    """A camera that moves to the right: (frames, H, W, C), the picture shifted by `step` pixels from frame to frame and
    mirrored at its edge; the first is `frame` itself."""
    height, width, channels = frame.shape
    reach = step * (frames - 1)
    if frames < 1 or reach >= width:
        raise InputError(f"{frames} frames that move by {step} px each don't fit into a width of {width} px")
    wide = np.pad(frame, ((0, 0), (0, reach), (0, 0)), mode="reflect")
    result = np.empty((frames, height, width, channels), np.uint8)
    for index in range(frames):
        result[index] = wide[:, index * step : index * step + width]
    return result
