"""Crops of a video's detections, frame by frame, while the next frame is already on its way to the GPU.

    python examples/drone_stream.py
    python examples/drone_stream.py --frames 300 --most 50 --width 1920 --height 1080

Frames and boxes are made up here: put your camera, your detector and your model in their place. Without a GPU the same
loop makes its crops on the CPU.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import octopus

log = logging.getLogger("drone_stream")
BUFFERS = 2  # frames under way: while one is cropped, the next is uploaded
PASSES = 5  # of each loop over the video; the median is shown
IMAGENET = {"mean": (123.675, 116.28, 103.53), "std": (58.395, 57.12, 57.375)}
NO_BOXES = np.empty((0, 4), np.int32)


def play(stream: octopus.FrameStream, video: Sequence[np.ndarray]) -> float:
    """Crop the boxes of every frame, and return the milliseconds per frame: this is the loop to copy."""
    start = time.perf_counter()
    for boxes in video:
        camera(stream.buffer())  # page-locked memory; waits until its last frame is uploaded
        crops = stream.submit(boxes)  # on a GPU this returns at once
        model(crops)
    stream.wait()
    return 1e3 * (time.perf_counter() - start) / len(video)


def camera(frame: np.ndarray) -> None:
    """Write a picture into `frame`: a decoder would. Here it is there already, as if a camera wrote by itself."""


def model(crops: Any) -> None:
    """Work on the crops, on the stream that makes them: for torch's default stream `torch.as_tensor(crops)` will do."""


def make_stream(frame: np.ndarray, most: int, overlap: bool = True) -> octopus.FrameStream:
    """A stream whose buffers hold the frame."""
    stream = octopus.FrameStream(frame, most, (224, 224), buffers=BUFFERS, overlap=overlap, **IMAGENET)
    for _ in range(BUFFERS):
        stream.buffer()[...] = frame
        stream.submit(NO_BOXES)
    return stream


def make_video(frames: int, most: int, width: int, height: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """A frame of noise, and from 1 to `most` boxes for each frame of the video."""
    random = np.random.default_rng(42)
    frame = random.integers(0, 256, (height, width, 3), np.uint8)
    corners = random.integers(0, (width // 2, height // 2), (frames, most, 2))
    sides = random.integers(1, (width // 4, height // 4), (frames, most, 2), endpoint=True)
    boxes = np.concatenate([corners, corners + sides], axis=2)
    counts = random.integers(1, most, frames, endpoint=True)
    return frame, [part[:count] for part, count in zip(boxes, counts, strict=True)]


def measure(loops: dict[str, tuple[octopus.FrameStream, list[np.ndarray]]]) -> list[float]:
    """Median milliseconds per frame of each loop, after a pass that warms it up."""
    times: dict[str, list[float]] = {name: [] for name in loops}
    for number in range(1 + PASSES):
        for name, (stream, video) in loops.items():
            elapsed = play(stream, video)
            if number:
                times[name].append(elapsed)
    return [statistics.median(series) for series in times.values()]


def main() -> None:
    """Play the video, and say what it gains to upload a frame beside the crops of the one before."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value in {"frames": 300, "most": 50, "width": 1920, "height": 1080}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    options = vars(parser.parse_args())
    if min(options.values()) < 1:
        parser.error(f"all numbers must be at least 1, found {options}")
    frame, video = make_video(**options)
    stream = make_stream(frame, options["most"])
    log.info("%d frames with %d boxes, on the %s", len(video), sum(map(len, video)), stream.device.upper())
    if stream.device == "cpu":
        (elapsed,) = measure({"cpu": (stream, video)})
        log.info("no GPU is usable; crops on the CPU: %.3f ms per frame", elapsed)
        return
    overlapped, serial, uploads = measure(
        {
            "overlapped": (stream, video),
            "serial": (make_stream(frame, options["most"], overlap=False), video),
            "uploads": (stream, [NO_BOXES] * len(video)),
        }
    )
    crops = serial - uploads
    log.info("upload, then crops: %.3f ms per frame; the uploads alone: %.3f ms", serial, uploads)
    log.info("uploads beside the crops: %.3f ms per frame", overlapped)
    if crops > 0:  # tiny frames drown in noise
        log.info("hidden: %.0f %% of the shorter part", 100 * (serial - overlapped) / min(uploads, crops))


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s")
    log.setLevel(logging.INFO)  # of others, such as Numba, warnings alone
    main()
