"""`FrameStream` on the CPU, and the order in which it queues work on a pretended GPU."""

import numpy as np
import pytest
from cases.crops import BOXED

from octopus import FrameStream, InputError, crop_resize

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
    stream = FrameStream(VIDEO[0], 3, SIZE, dtype="uint8", layout="NHWC", **BOXED, device="cpu")
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


@pytest.mark.parametrize("overlap", [True, False])
def test_an_upload_waits_for_the_crops_that_read_its_slot_and_the_crops_for_the_upload(gpu, overlap):
    stream = FrameStream(VIDEO[0], 3, SIZE, overlap=overlap, device="cuda")
    frames, start = [], len(gpu.waits)
    for frame, boxes in zip(VIDEO[:3], BOXES, strict=False):
        stream.buffer()[...] = frame
        stream.submit(boxes)
        frames.append(gpu.launches[-1].values[0])
    crops = gpu.launches[-1].stream
    assert {made.stream for made in gpu.launches} == {crops} and frames[0] == frames[2] != frames[1]
    for _, nbytes, content in gpu.copies[-3:]:
        assert nbytes != VIDEO[0].nbytes or content in [frame.tobytes() for frame in VIDEO]
    waits = gpu.waits[start:]
    if not overlap:
        assert not waits
        return
    uploads = waits[0][0]
    assert [pair[0] for pair in waits] == [uploads, crops] * 3 and uploads != crops
    assert waits[1::2] == [(crops, uploads)] * 3 and waits[4] == (uploads, crops)
