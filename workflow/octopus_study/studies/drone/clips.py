"""Contenders on a whole clip: frame by frame, all frames as one batch, and streamed with uploads beside the crops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus import CropPlan, FrameStream
from octopus_study.studies.drone.frames import OctopusFrames
from octopus_study.studies.drone.video import Video

BUFFERS = 2


class WholeClip:
    """`octopus` on all frames of a video that keeps its crops, frame by frame."""

    name = OctopusFrames.name

    def __init__(self, video: Video) -> None:
        self._video, self._each = video, OctopusFrames(video)

    def run(self) -> None:
        """One upload and one launch per frame."""
        for number in range(self._video.frames):
            self._video.turn(number)
            self._each.run()


class BatchOfFrames:
    """All frames at once: uploaded one after the other, cropped in one launch through `frame_index`.

    On a CPU the frames are where they are, and each frame of the ring is there once.
    """

    name = "octopus-batch"

    def __init__(self, video: Video) -> None:
        self._video = video
        self._boxes = np.concatenate([job.boxes for job in video.jobs])
        numbers = np.repeat(np.arange(video.frames, dtype=np.int32), [job.count for job in video.jobs])
        if video.on_gpu:
            from octopus.backends.cuda.memory import DeviceArray

            self._frames = DeviceArray((video.frames, *video.ring.shape[1:]), np.uint8)
            self._index = numbers
        else:
            self._frames, self._index = video.ring, numbers % np.int32(len(video.ring))
        self._plan = video.plan(len(self._boxes), self._frames)

    def run(self) -> None:
        """All uploads, one launch."""
        video = self._video
        if video.on_gpu:
            for number in range(video.frames):
                video.turn(number)
                video.upload(self._frames.pointer + number * video.device_frame.nbytes)
        self._plan.run(self._frames, self._boxes, frame_index=self._index, out=video.out)


class Streamed:
    """A clip through `FrameStream`; its page-locked buffers hold the first frames of the ring from the start, as if a
    camera wrote into them by itself.

    Parameters
    ----------
    ring, boxes
        As in `Video`; frame k is that of slot k modulo 2.
    options : dict
        `size`, `mean` and `std` of the crops.
    device : {"cpu", "cuda"}
    overlap : bool
        Whether uploads go beside the crops.
    """

    def __init__(
        self,
        ring: NDArray[np.uint8],
        boxes: Sequence[NDArray[np.int32]],
        options: dict[str, Any],
        device: str,
        overlap: bool,
    ) -> None:
        self.name = "stream-overlapped" if overlap else "stream-serial"
        self.boxes = list(boxes)
        most = max(map(len, boxes))
        self._stream = FrameStream(ring[0], most, buffers=BUFFERS, overlap=overlap, device=device, **options)
        self._crops: list[Any] = []
        for frame in ring[:BUFFERS]:
            self._stream.buffer()[...] = frame
            self._crops.append(self._stream.submit(boxes[0]))
        self._stream.wait()

    def run(self) -> None:
        """Hand over every frame as soon as its buffer is free."""
        for number, boxes in enumerate(self.boxes):
            self._stream.buffer()
            self._crops[number % BUFFERS] = self._stream.submit(boxes)

    def poison(self) -> None:
        """Fill the crops with NaN."""
        _poison(self._crops)

    def result(self) -> NDArray[np.float32]:
        """Crops of the last two frames, that of the first slot first."""
        return _on_host(self._crops)


class UploadsAlone:
    """The frames of a clip through the same stream, without boxes."""

    name = "upload-only"

    def __init__(self, streamed: Streamed) -> None:
        self._stream, self._frames = streamed._stream, len(streamed.boxes)
        self._none = np.empty((0, 4), np.int32)

    def run(self) -> None:
        """Hand over every frame."""
        for _ in range(self._frames):
            self._stream.buffer()
            self._stream.submit(self._none)


class KernelsAlone:
    """The crops of frames and boxes that lie where the work is done; parameters as `Streamed` has them."""

    name = "kernels-only"

    def __init__(
        self,
        ring: NDArray[np.uint8],
        boxes: Sequence[NDArray[np.int32]],
        options: dict[str, Any],
        device: str,
    ) -> None:
        place = _placer(device)
        self._frames = [place(frame) for frame in ring[:BUFFERS]]
        self._boxes = [place(part.astype(np.float32)) for part in boxes]
        most = max(map(len, boxes))
        self._plans = [CropPlan(frame, most, device=device, **options) for frame in self._frames]
        self._crops: list[Any] = [
            plan.run(frame, boxes[0]) for plan, frame in zip(self._plans, self._frames, strict=True)
        ]

    def run(self) -> None:
        """One launch per frame."""
        for number, boxes in enumerate(self._boxes):
            slot = number % BUFFERS
            self._crops[slot] = self._plans[slot].run(self._frames[slot], boxes)

    def poison(self) -> None:
        """Fill the crops with NaN."""
        _poison(self._crops)

    def result(self) -> NDArray[np.float32]:
        """Crops of the last two frames, that of the first slot first."""
        return _on_host(self._crops)


def _placer(device: str) -> Any:
    if device == "cpu":
        return np.asarray
    from octopus.backends.cuda.memory import upload

    return upload


def _poison(crops: Sequence[Any]) -> None:
    for part in crops:
        if isinstance(part, np.ndarray):
            part.fill(np.nan)
        else:
            part.fill_bytes(0xFF)


def _on_host(crops: Sequence[Any]) -> NDArray[np.float32]:
    return np.concatenate([part if isinstance(part, np.ndarray) else part.copy_to_host() for part in crops])
