"""`FrameStream` on the CPU, and the order in which it would queue work on a GPU."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import octopus
from octopus import FrameStream, InputError, crop_resize
from octopus.arrays.checks import OneAtATime
from octopus.backends.cuda import device
from octopus.crop.framestream import _Slot

SIZE = (16, 24)
RNG = np.random.default_rng(3)
VIDEO = [RNG.integers(0, 256, (60, 90, 3), np.uint8) for _ in range(5)]
BOXES = [np.array([[k, 2, k + 20, 30], [5, 5, 6, 6], [0, 0, 90, 60]])[: 1 + k % 3] for k in range(5)]


@pytest.mark.parametrize("buffers", [1, 2, 3])
def test_crops_are_those_of_each_frame(buffers):
    stream = FrameStream(VIDEO[0], 3, SIZE, mean=120.0, std=60.0, buffers=buffers, device="cpu")
    for frame, boxes in zip(VIDEO, BOXES, strict=True):
        stream.buffer()[...] = frame
        found = stream.submit(boxes)
        assert np.array_equal(found, crop_resize(frame, boxes, SIZE, mean=120.0, std=60.0, device="cpu"))
    stream.wait()


def test_crops_live_until_their_buffer_is_used_again():
    stream = FrameStream(VIDEO[0], 3, SIZE, device="cpu")
    kept = []
    for frame in VIDEO[:3]:
        stream.buffer()[...] = frame
        kept.append(stream.submit(BOXES[2]))
    assert np.shares_memory(kept[0], kept[2]) and not np.shares_memory(kept[0], kept[1])
    assert np.array_equal(kept[1], crop_resize(VIDEO[1], BOXES[2], SIZE, device="cpu"))


def test_options_are_those_of_a_plan():
    stream = FrameStream(VIDEO[0], 3, SIZE, dtype="uint8", layout="NHWC", letterbox=True, device="cpu")
    stream.buffer()[...] = VIDEO[1]
    crops, transform = stream.submit(BOXES[2])
    assert crops.shape == (3, *SIZE, 3) and crops.dtype == np.uint8 and transform.shape == (3, 4)


def test_no_boxes_hand_the_frame_over_alone():
    stream = FrameStream(VIDEO[0], 3, SIZE, device="cpu")
    first = stream.buffer()
    assert stream.submit(np.empty((0, 4), int)).shape == (0, 3, *SIZE)
    assert stream.buffer() is not first


def test_after_bad_boxes_the_frame_is_still_the_next_one():
    stream = FrameStream(VIDEO[0], 3, SIZE, device="cpu")
    buffer = stream.buffer()
    buffer[...] = VIDEO[1]
    with pytest.raises(InputError, match="outside the frame"):
        stream.submit([[200, 0, 210, 5]])
    assert stream.buffer() is buffer
    assert np.array_equal(stream.submit(BOXES[0]), crop_resize(VIDEO[1], BOXES[0], SIZE, device="cpu"))


@pytest.mark.parametrize(("frame", "options", "said"), [
    (np.zeros((2, 60, 90, 3), np.uint8), {}, "found one of shape"), (VIDEO[0], {"buffers": 0}, "buffers must be"),
    (VIDEO[0], {"buffers": True}, "buffers must be"), (VIDEO[0], {"device": "tpu"}, "unknown"),
    (VIDEO[0].astype(float), {}, "frame"),
])  # fmt: skip
def test_what_is_no_stream_of_frames_is_refused(frame, options, said):
    with pytest.raises(InputError, match=said):
        FrameStream(frame, 3, SIZE, **{"device": "cpu"} | options)


def test_it_is_part_of_the_library():
    assert octopus.FrameStream is FrameStream and "FrameStream" in octopus.__all__


class Queue:
    """Notes what is queued on it."""

    def __init__(self, name, log):
        self.name, self.log = name, log

    def wait(self, event):
        self.log.append(f"{self.name} waits for {event.name}")

    def record(self, event):
        self.log.append(f"{self.name} records {event.name}")

    def sync(self):
        self.log.append(f"host waits for {self.name}")


def queued(log, overlap):
    """A stream on a GPU that isn't there."""

    def event(name):
        return SimpleNamespace(name=name, sync=lambda: log.append(f"host waits for {name}"))

    def slot(number):
        frame = SimpleNamespace(
            copy_from_host=lambda buffer, queue: log.append(f"{queue.name} uploads {number}")
        )
        plan = SimpleNamespace(run=lambda frame, boxes, stream: log.append(f"{stream.name} crops {number}"))
        buffer = np.zeros(3)
        return _Slot(buffer, frame, buffer, frame, plan, event(f"uploaded {number}"), event(f"done {number}"))

    stream = object.__new__(FrameStream)
    stream._alone = OneAtATime()
    stream.device, stream._next, stream._slots = "cuda", 0, [slot(0), slot(1)]
    stream._crops = Queue("crops", log)
    stream._uploads = Queue("uploads", log) if overlap else stream._crops
    return stream


def test_an_upload_waits_for_the_crops_that_read_its_slot_and_the_crops_for_the_upload(monkeypatch):
    log = []
    monkeypatch.setattr(device, "current", lambda: log.append("the GPU is made current"))
    stream = queued(log, overlap=True)
    for _ in range(3):
        stream.buffer()
        stream.submit([[0, 0, 1, 1]])
    stream.wait()
    expected = []
    for slot in (0, 1, 0):
        expected += [
            f"host waits for uploaded {slot}",
            f"uploads waits for done {slot}",
            f"uploads uploads {slot}",
            f"uploads records uploaded {slot}",
            f"crops waits for uploaded {slot}",
            f"crops crops {slot}",
            f"crops records done {slot}",
        ]
    assert log == [*expected, "the GPU is made current", "host waits for crops"]


def test_without_overlap_everything_is_in_the_order_of_one_stream():
    log = []
    stream = queued(log, overlap=False)
    stream.buffer()
    stream.submit([[0, 0, 1, 1]])
    assert log == [
        "host waits for uploaded 0",
        "crops uploads 0",
        "crops records uploaded 0",
        "crops crops 0",
        "crops records done 0",
    ]
