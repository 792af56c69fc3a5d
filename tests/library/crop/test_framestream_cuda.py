"""`FrameStream` and graphs on a GPU: crops belong to their frames, however many are under way."""

import numpy as np
import pytest
from gpu import slow_down, synchronize

from octopus import CropPlan, FrameStream, InputError, crop_resize
from octopus.backends.cuda import memory, stream_of
from octopus.backends.cuda.device import current
from octopus_study.measure.cuda import Graph

pytestmark = pytest.mark.gpu

SIZE = (64, 64)
RNG = np.random.default_rng(3)
VIDEO = [RNG.integers(0, 256, (540, 960, 3), np.uint8) for _ in range(4)]
BOXES = [RNG.integers(0, 400, (3 + k % 5, 2)) for k in range(12)]
BOXES = [np.concatenate([corner, corner + 100], axis=1) for corner in BOXES]


def expected(number):
    return crop_resize(VIDEO[number % len(VIDEO)], BOXES[number], SIZE, device="cpu")


@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("buffers", [1, 2, 3])
@pytest.mark.parametrize("slow", ["neither", "crops", "uploads"])
def test_every_frame_gives_its_own_crops(overlap, buffers, slow):
    stream = FrameStream(VIDEO[0], 8, SIZE, buffers=buffers, overlap=overlap, device="cuda")
    kept = []
    for number, boxes in enumerate(BOXES):
        stream.buffer()[...] = VIDEO[number % len(VIDEO)]
        if slow != "neither":
            slow_down(getattr(stream, f"_{slow}"), 5_000)
        crops = stream.submit(boxes)
        copy = memory.DeviceArray(crops.shape, np.float32)
        memory.copy(copy.pointer, crops.pointer, crops.nbytes)  # on the default stream, as the crops
        kept.append(copy)
    stream.wait()
    for number, crops in enumerate(kept):
        assert np.abs(crops.copy_to_host() - expected(number)).max() < 1e-3


def test_crops_are_made_on_the_stream_that_is_asked_for():
    own = current().create_stream()
    stream = FrameStream(VIDEO[0], 8, SIZE, stream=own, device="cuda")
    stream.buffer()[...] = VIDEO[0]
    crops = stream.submit(BOXES[0])
    assert np.abs(crops.copy_to_host(stream=own) - expected(0)).max() < 1e-3


def test_torch_takes_the_crops_without_a_copy():
    torch = pytest.importorskip("torch")
    stream = FrameStream(VIDEO[0], 8, SIZE, device="cuda")
    stream.buffer()[...] = VIDEO[0]
    crops = stream.submit(BOXES[0])
    tensor = torch.as_tensor(crops, device="cuda")
    assert tensor.data_ptr() == crops.pointer
    assert abs(tensor.mean().item() - expected(0).mean()) < 1e-3


def test_buffers_are_page_locked_and_bad_boxes_change_nothing():
    from cuda.bindings import driver

    stream = FrameStream(VIDEO[0], 8, SIZE, device="cuda")
    buffer = stream.buffer()
    assert not driver.cuMemHostGetFlags(buffer.ctypes.data)[0]
    buffer[...] = VIDEO[0]
    with pytest.raises(InputError):
        stream.submit([[961, 0, 962, 5]])
    assert stream.buffer() is buffer
    stream.submit(BOXES[0])
    right = crop_resize(np.zeros_like(VIDEO[0]), BOXES[4], SIZE, device="cpu")
    assert np.abs(stream.submit(BOXES[4]).copy_to_host() - right).max() < 1e-3


def test_a_graph_does_its_work_anew_at_every_launch():
    frame, boxes = memory.upload(VIDEO[0]), memory.upload(BOXES[0].astype(np.float32))
    source = memory.pinned(BOXES[0].shape, np.float32)
    source[...] = BOXES[0]
    plan = CropPlan(frame, len(BOXES[0]), SIZE)
    plan.run(frame, boxes)
    synchronize()
    stream = current().create_stream()

    def work():
        memory.copy(boxes.pointer, source.ctypes.data, boxes.nbytes, stream)
        plan.run(frame, boxes, stream=stream)

    graph = Graph(stream, work)
    for shift in (0, 7):
        source[...] = BOXES[0] + shift
        crops = plan.run(frame, boxes)
        crops.fill_bytes(0xFF)
        graph.launch(stream_of(None))
        right = crop_resize(VIDEO[0], BOXES[0] + shift, SIZE, device="cpu")
        assert np.abs(crops.copy_to_host() - right).max() < 1e-3
