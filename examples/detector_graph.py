"""Crops of what a detector finds on the GPU, as one CUDA graph: the host never learns how many boxes there were.

    python examples/detector_graph.py
    python examples/detector_graph.py --frames 300 --most 300 --width 1920 --height 1080

The detector is made up here: put yours in its place, with as many boxes as there may be, the good ones first, and their
number as a tensor. Without a GPU, or without torch, the same loop makes its crops on the CPU, one call after the other.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import octopus

log = logging.getLogger("detector_graph")
IMAGENET = {"mean": (123.675, 116.28, 103.53), "std": (58.395, 57.12, 57.375)}
LEAST_SCORE = 0.5
SMALLEST = 32  # pixels of a frame's side: made-up boxes have from 8 pixels to a quarter of it


def detect(frame: Any, corners: Any, sides: Any) -> tuple[Any, Any]:
    """Boxes (N, 4), those with a good score first, and how many these are, where the frame is.

    The scores are made of the frame's pixels below the boxes' corners, so that every frame has its own.
    """
    scores = frame[corners[:, 1], corners[:, 0], 0] / 255.0
    order = (-scores).argsort()
    first = corners[order]
    number = (scores >= LEAST_SCORE).sum()
    if isinstance(frame, np.ndarray):
        return np.concatenate([first, first + sides[order]], axis=1).astype(np.float32), number
    import torch

    return torch.cat([first, first + sides[order]], dim=1).float(), number


def recorded(plan: octopus.CropPlan, frame: Any, corners: Any, sides: Any) -> Callable[[], tuple[Any, Any]]:
    """Detector and crops as a graph: this is what to copy. Returns what replays it and gives crops and their number."""
    import torch

    def once() -> tuple[Any, Any]:
        boxes, number = detect(frame, corners, sides)
        return plan.run(frame, boxes, count=number), number

    aside = torch.cuda.Stream()
    with torch.cuda.stream(aside):  # kernels are loaded, and memory is found, before the graph is recorded
        for _ in range(3):
            once()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = once()

    def replay() -> tuple[Any, Any]:
        graph.replay()
        return results

    return replay


def main() -> None:
    """Find and crop the boxes of some frames, and say how long a frame took."""
    logging.basicConfig(format="%(message)s")
    log.setLevel(logging.INFO)  # of others, such as Numba, warnings alone
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=20)
    parser.add_argument("--most", type=int, default=100, help="boxes that the detector gives at most")
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--height", type=int, default=360)
    given = parser.parse_args()
    if min(given.frames, given.most) < 1 or min(given.width, given.height) < SMALLEST:
        parser.error(
            f"--frames and --most must be at least 1, --width and --height {SMALLEST}, found {vars(given)}; "
            "leave them out for those that work"
        )
    random = np.random.default_rng(42)
    video = random.integers(0, 256, (given.frames, given.height, given.width, 3), np.uint8)
    corners = random.integers(0, (given.width // 2, given.height // 2), (given.most, 2))
    sides = random.integers(8, (given.width // 4, given.height // 4), (given.most, 2), endpoint=True)
    on_gpu = has_gpu()
    if on_gpu:
        import torch

        video, corners, sides = (torch.from_numpy(array).cuda() for array in (video, corners, sides))
    frame = video[0].clone() if on_gpu else video[0].copy()
    plan = octopus.CropPlan(frame, given.most, (224, 224), **IMAGENET)
    if on_gpu:
        run = recorded(plan, frame, corners, sides)
    else:

        def run() -> tuple[Any, Any]:
            boxes, number = detect(frame, corners, sides)
            return plan.run(frame, boxes, count=number), number

    begin, made = time.perf_counter(), 0
    numbers = []
    for picture in video:
        frame[...] = picture  # a decoder would write there
        crops, number = run()
        numbers.append(number.clone() if on_gpu else number)
    made = sum(int(number) for number in numbers)  # waits, once, for all
    each = 1e3 * (time.perf_counter() - begin) / len(video)
    log.info("%d frames, %d crops of at most %d: %.2f ms a frame", len(video), made, len(video) * len(crops), each)


def has_gpu() -> bool:
    """Whether torch is installed and sees a GPU."""
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


if __name__ == "__main__":
    main()
