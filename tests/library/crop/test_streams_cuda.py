"""Streams, page-locked memory and graphs: what is still under way is neither overwritten nor read too late."""

from __future__ import annotations

import numpy as np
import pytest
from gpu import host, new_results, slow_stream, synchronize

from octopus import CropPlan, InputError, crop_resize
from octopus.backends.cuda import memory
from octopus.backends.cuda.device import current

pytestmark = pytest.mark.gpu

SIZE = (64, 64)
PIXELS = np.random.default_rng(1).integers(0, 255, (200, 300, 3), np.uint8, endpoint=True)
LEFT, RIGHT = (np.tile(np.float32([[x, x, x + 50, x + 60]]), (4, 1)) for x in (0, 90))


def assert_crops(found, boxes):
    synchronize()
    expected = crop_resize(PIXELS, boxes, SIZE, device="cpu")
    assert np.abs(host(found) - expected).max() < 1e-3


def test_a_third_run_does_not_overwrite_the_boxes_of_the_first_one():
    frame, on_gpu = memory.upload(PIXELS), memory.upload(RIGHT)
    plan = CropPlan(frame, 4, SIZE, allocate=False)
    first, second, third = new_results(3, 4, SIZE)
    plan.run(frame, LEFT, out=first)
    synchronize()
    slow, quick = slow_stream(), current().create_stream()
    plan.run(frame, LEFT, out=first, stream=slow)
    plan.run(frame, on_gpu, out=second, stream=quick)
    plan.run(frame, RIGHT, out=third, stream=quick)
    assert_crops(first, LEFT)


def test_the_last_run_wins_in_the_plans_own_memory():
    frame, left, right = memory.upload(PIXELS), memory.upload(LEFT), memory.upload(RIGHT)
    plan = CropPlan(frame, 4, SIZE)
    plan.run(frame, left)
    synchronize()
    plan.run(frame, left, stream=slow_stream())
    assert_crops(plan.run(frame, right, stream=current().create_stream()), RIGHT)


def test_page_locked_boxes_may_change_after_the_call():
    frame = memory.upload(PIXELS)
    boxes = memory.pinned((4, 4), np.float32)
    boxes[:] = LEFT
    out = memory.DeviceArray((4, 3, *SIZE), np.float32)
    crop_resize(frame, boxes, SIZE, out=out)
    synchronize()
    crop_resize(frame, boxes, SIZE, out=out, stream=slow_stream())
    boxes[:] = RIGHT
    assert_crops(out, LEFT)


def test_boxes_from_the_host_are_refused_while_a_graph_is_captured():
    torch = pytest.importorskip("torch")
    frame = torch.as_tensor(PIXELS, device="cuda")
    plan = CropPlan(frame, 4, SIZE)
    plan.run(frame, LEFT)
    torch.cuda.synchronize()
    with pytest.raises(InputError, match="graph is captured"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        plan.run(frame, LEFT)


def test_boxes_of_another_library_are_waited_for():
    torch, cupy = pytest.importorskip("torch"), pytest.importorskip("cupy")
    frame, out = cupy.asarray(PIXELS), cupy.empty((4, 3, *SIZE), np.float32)
    boxes, later = torch.as_tensor(LEFT, device="cuda"), torch.as_tensor(RIGHT, device="cuda")
    crop_resize(frame, boxes, SIZE, out=out)
    torch.cuda.synchronize()
    slow = slow_stream()
    with torch.cuda.stream(torch.cuda.ExternalStream(int(slow.handle))):
        boxes.copy_(later)
        crop_resize(frame, boxes, SIZE, out=out)
    synchronize()
    assert np.abs(cupy.asnumpy(out) - crop_resize(PIXELS, RIGHT, SIZE, device="cpu")).max() < 1e-3
