"""Crops of a video's detections, frame by frame, while the next frame is already on its way to the GPU.

    python examples/drone_stream.py
    python examples/drone_stream.py --frames 300 --most 50 --width 1920 --height 1080
    python examples/drone_stream.py --video flight.mp4

`--video` plays a file by the first of TorchCodec, PyAV and OpenCV that can; without it frames are made up. Boxes are
made up in any case: put your camera, your detector and your model in their place. Without a GPU the same loop makes
its crops on the CPU.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

import octopus

log = logging.getLogger("drone_stream")
BUFFERS = 2  # frames under way: while one is cropped, the next is uploaded
SMALLEST = 4  # pixels of a frame's side: made-up boxes have up to a quarter of it
PASSES = 5  # of each loop over the made-up video; the median is shown
IMAGENET = {"mean": (123.675, 116.28, 103.53), "std": (58.395, 57.12, 57.375)}
NO_BOXES = np.empty((0, 4), np.int32)
MATRICES = {1: "bt709", 9: "bt2020"}  # FFmpeg's numbers; where a file says nothing, FFmpeg takes BT.601


def play(stream: octopus.FrameStream, video: Iterable[tuple[Any, np.ndarray]]) -> float:
    """Crop the boxes of every frame, and return the milliseconds per frame: this is the loop to copy."""
    frames, start = 0, time.perf_counter()
    for picture, boxes in video:
        camera(picture, stream.buffer())  # page-locked memory; waits until its last frame is uploaded
        crops = stream.submit(boxes)  # on a GPU this returns at once
        model(crops)
        frames += 1
    stream.wait()
    return 1e3 * (time.perf_counter() - start) / frames


def camera(picture: Any, frame: Any) -> None:
    """Write a picture into the buffer `frame`; None is there already, as if a camera wrote by itself."""
    if isinstance(picture, octopus.NV12):
        frame.y[...], frame.uv[...] = picture.y, picture.uv
    elif picture is not None:
        frame[...] = picture


def detector(random: np.random.Generator, most: int, height: int, width: int) -> np.ndarray:
    """From 1 to `most` boxes, (N, 4): made up."""
    count = random.integers(1, most, endpoint=True)
    corners = random.integers(0, (width // 2, height // 2), (count, 2))
    sides = random.integers(1, (width // 4, height // 4), (count, 2), endpoint=True)
    return np.concatenate([corners, corners + sides], axis=1)


def model(crops: Any) -> None:
    """Work on the crops, on the stream that makes them: for torch's default stream `torch.as_tensor(crops)` will do."""


def by_torchcodec(path: str) -> Iterator[np.ndarray]:
    """Pictures of a file, (H, W, 3), red, green and blue."""
    from torchcodec.decoders import VideoDecoder

    for picture in VideoDecoder(path, dimension_order="NHWC"):
        yield picture.numpy()


def by_pyav(path: str) -> Iterator[octopus.NV12]:
    """Pictures as they are coded: nobody makes red, green and blue of whole frames."""
    import av

    with av.open(path) as file:
        for decoded in file.decode(video=0):
            frame = decoded.reformat(format="nv12")  # of planar chroma this makes pairs
            rows = [np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size) for plane in frame.planes]
            y, uv = rows[0][: frame.height, : frame.width], rows[1][: frame.height // 2, : frame.width]
            matrix = MATRICES.get(int(frame.colorspace), "bt601")
            yield octopus.NV12(y, uv, matrix=matrix, range="full" if frame.color_range == 2 else "limited")


def by_opencv(path: str) -> Iterator[np.ndarray]:
    """Pictures of a file, (H, W, 3), blue, green and red."""
    import cv2

    file = cv2.VideoCapture(path)
    while (read := file.read())[0]:
        yield read[1]


DECODERS = {"TorchCodec": (by_torchcodec, "RGB"), "PyAV": (by_pyav, "RGB"), "OpenCV": (by_opencv, "BGR")}


def open_video(path: str) -> tuple[str, Any, Iterator[Any]]:
    """The first decoder that can, a picture like those to come, and all of them."""
    for name, (decode, _) in DECODERS.items():
        pictures = decode(path)
        try:
            first = next(pictures)
        except (ImportError, LookupError, OSError, RuntimeError, ValueError, StopIteration) as error:
            log.info("not by %s: %s", name, (str(error) or "no frame").splitlines()[0])
            continue
        return name, first, chain([first], pictures)
    raise SystemExit(f"no decoder reads {path}; install PyAV (pip install av), TorchCodec or OpenCV")


def play_file(path: str, most: int) -> None:
    """Play a file once; the boxes are made up."""
    name, first, pictures = open_video(path)
    stream = make_stream(first, most, channels=DECODERS[name][1])
    sides = first.y.shape if isinstance(first, octopus.NV12) else first.shape[:2]
    random, found = np.random.default_rng(42), []

    def video() -> Iterator[tuple[Any, np.ndarray]]:
        for picture in pictures:
            found.append(detector(random, most, *sides))
            yield picture, found[-1]

    elapsed = play(stream, video())
    log.info(
        "%d frames by %s with %d made-up boxes, on the %s: %.3f ms per frame, decoding included",
        len(found), name, sum(map(len, found)), stream.device.upper(), elapsed,
    )  # fmt: skip


def make_stream(picture: Any, most: int, **options: Any) -> octopus.FrameStream:
    """A stream whose buffers hold the picture, and which has made a crop of it: nothing is left to be compiled."""
    stream = octopus.FrameStream(picture, most, (224, 224), buffers=BUFFERS, **options, **IMAGENET)
    for _ in range(BUFFERS):
        camera(picture, stream.buffer())
        stream.submit([[0, 0, 1, 1]])
    return stream


def make_video(frames: int, most: int, width: int, height: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """A frame of noise, and the boxes of each frame of the video."""
    random = np.random.default_rng(42)
    frame = random.integers(0, 256, (height, width, 3), np.uint8)
    return frame, [detector(random, most, height, width) for _ in range(frames)]


def measure(loops: dict[str, tuple[octopus.FrameStream, list[np.ndarray]]]) -> list[float]:
    """Median milliseconds per frame of each loop, after a pass that warms it up."""
    times: dict[str, list[float]] = {name: [] for name in loops}
    for number in range(1 + PASSES):
        for name, (stream, video) in loops.items():
            elapsed = play(stream, ((None, boxes) for boxes in video))
            if number:
                times[name].append(elapsed)
    return [statistics.median(series) for series in times.values()]


def main() -> None:
    """Play the video, and say what it gains to upload a frame beside the crops of the one before."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in {"frames": 300, "most": 50, "width": 1920, "height": 1080}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--video", help="a file to play, from its first frame to its last, as large as it is")
    options = vars(parser.parse_args())
    path = options.pop("video")
    if min(options.values()) < 1 or min(options["width"], options["height"]) < SMALLEST:
        parser.error(f"all numbers must be at least 1, width and height {SMALLEST}, found {options}")
    if path is not None:
        play_file(path, options["most"])
        return
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
