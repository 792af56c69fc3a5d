"""`crop_resize` and `CropPlan` on a GPU: the same answers, interchange, graphs, and nothing hidden."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from gpu import (
    CHANNELS,
    DTYPES,
    FRAME_DTYPES,
    LAYOUTS,
    host,
    new_results,
    overwrite_freed_memory,
    random_frame,
    refuse_allocation,
    sanitize,
    slow_stream,
    synchronize,
)

from octopus import CropPlan, InputError, crop_resize
from octopus.backends.cuda import memory
from octopus.backends.cuda.device import current

pytestmark = pytest.mark.gpu

EDGES = np.array(
    [(0, 0, 1, 1), (299, 199, 300, 200), (0, 0, 300, 200), (0, 0, 300, 1), (5, 7, 9, 10), (1, 1, 299, 199)]
)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("frame_dtype", FRAME_DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_combination_equals_the_cpu(channels, frame_dtype, layout, dtype):
    frame = random_frame(channels=channels, dtype=frame_dtype)
    scale = np.iinfo(frame_dtype).max / 255
    for size in ((40, 56), (1, 1), (17, 300)):
        call = {"mean": 3.0, "std": scale * 2, "dtype": dtype, "layout": layout}
        found = crop_resize(frame, EDGES, size, device="cuda", **call)
        expected = crop_resize(frame, EDGES, size, device="cpu", **call)
        assert found.dtype == expected.dtype
        limit = {"float32": 1e-3, "float16": 0.13, "uint8": 1}[dtype]
        difference = np.abs(found.astype(np.float64) - expected.astype(np.float64))
        assert difference.max() <= limit
        # A tie may be rounded either way when the last bits differ, but seldom.
        assert (difference > 1e-3).mean() < 0.01


@pytest.mark.parametrize("kind", ["int32", "int64", "float32", "float64"])
def test_torch_tensors_stay_torch_tensors_on_the_gpu(kind):
    torch = pytest.importorskip("torch")
    frame = random_frame()
    expected = crop_resize(frame, EDGES, (32, 48), device="cpu")
    boxes = torch.from_numpy(EDGES.astype(kind)).cuda()
    with torch.cuda.stream(torch.cuda.Stream()):
        found = crop_resize(torch.from_numpy(frame).cuda(), boxes, (32, 48))
        assert isinstance(found, torch.Tensor) and found.is_cuda
        assert np.abs(host(found) - expected).max() < 1e-3
    half = crop_resize(torch.from_numpy(frame).cuda(), boxes, (32, 48), dtype=torch.float16)
    assert half.dtype == torch.float16


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("antialias", [False, True])
def test_bfloat16_is_float32_rounded(layout, antialias):
    torch = pytest.importorskip("torch")
    frame, boxes = torch.from_numpy(random_frame()).cuda(), torch.from_numpy(EDGES).cuda()
    options = {"layout": layout, "antialias": antialias, "mean": 100.0, "std": 50.0}
    plain = crop_resize(frame, boxes, (32, 48), **options)
    plan = CropPlan(frame, len(EDGES), (32, 48), dtype=torch.bfloat16, **options)
    for small in (crop_resize(frame, boxes, (32, 48), dtype="bfloat16", **options), plan.run(frame, boxes)):
        assert small.dtype == torch.bfloat16 and small.is_cuda
        # Half a step of bfloat16 between 1 and 4, and what the weights of fixed point are off.
        assert (small.float() - plain).abs().max() <= 2**-7 + 1e-4


def test_rows_of_a_larger_tensor_are_read_in_place():
    torch = pytest.importorskip("torch")
    frame = random_frame()
    part = torch.from_numpy(frame).cuda()[10:160, 20:220]
    boxes = [[0, 0, 200, 150], [3, 4, 30, 40]]
    expected = crop_resize(np.ascontiguousarray(frame[10:160, 20:220]), boxes, (16, 16), device="cpu")
    assert np.abs(host(crop_resize(part, boxes, (16, 16))) - expected).max() < 1e-3


def test_other_families_stay_what_they_are():
    cupy = pytest.importorskip("cupy")
    from numba import cuda

    frame = random_frame()
    expected = crop_resize(frame, EDGES, (8, 8), device="cpu")
    for array in (cupy.asarray(frame), cuda.to_device(frame), memory.upload(frame)):
        found = crop_resize(array, EDGES, (8, 8))
        assert type(found) is type(array)
        result = cupy.asnumpy(found) if isinstance(found, cupy.ndarray) else found.copy_to_host()
        assert np.abs(result - expected).max() < 1e-3


def test_boxes_on_the_gpu_that_cannot_be_used_fill_their_item():
    boxes = np.array([[np.nan, 0, 3, 3], [5, 5, 5, 9], [400, 0, 500, 5], [1, 1, 9, 9]], np.float32)
    found = host(crop_resize(memory.upload(random_frame()), memory.upload(boxes), (20, 40)))
    assert np.isnan(found[:3]).all()
    assert np.isfinite(found[3]).all()


def test_boxes_on_the_gpu_are_clipped_to_the_frame():
    frame = memory.upload(random_frame())
    reaching = memory.upload(np.array([[-20, -9, 50, 60], [280, 150, 340, 260]], np.int32))
    inside = memory.upload(np.array([[0, 0, 50, 60], [280, 150, 300, 200]], np.int32))
    assert np.array_equal(
        host(crop_resize(frame, reaching, (9, 9))), host(crop_resize(frame, inside, (9, 9)))
    )


def test_a_plan_runs_in_place_and_a_cuda_graph_replays_it_with_new_boxes():
    torch = pytest.importorskip("torch")
    frame = torch.from_numpy(random_frame()).cuda()
    boxes = torch.tensor(EDGES, dtype=torch.float32, device="cuda")
    plan = CropPlan(frame, len(EDGES), (32, 32))
    out = plan.run(frame, boxes)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plan.run(frame, boxes, out=out)
    moved = EDGES.clip([0, 0, 2, 2], [290, 190, 300, 200])
    boxes.copy_(torch.tensor(moved))
    out.fill_(torch.nan)
    graph.replay()
    torch.cuda.synchronize()
    expected = crop_resize(host(frame), moved, (32, 32), device="cpu")
    assert np.abs(host(out) - expected).max() < 1e-3


def test_a_plan_allocates_nothing_when_it_runs(monkeypatch):
    frame = memory.upload(random_frame())
    boxes = memory.upload(EDGES.astype(np.float32))
    plan = CropPlan(frame, len(EDGES), (64, 64))

    monkeypatch.setattr(memory, "allocate", refuse_allocation)
    plan.run(frame, boxes)
    plan.run(frame, EDGES)
    synchronize()


@pytest.mark.parametrize("options", [{}, {"letterbox": True}, {"dtype": "uint8", "layout": "NHWC"}], ids=str)
def test_boxes_from_the_host_give_what_those_on_the_gpu_give(options):
    """Few of them are an argument of the kernel, more are copied, many in parts."""
    rng = np.random.default_rng(3)
    corners = rng.uniform(0, 150, (5000, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(1, 49, (5000, 2))], 1).astype(np.float32)
    frame = memory.upload(random_frame())
    plan = CropPlan(frame, len(boxes), (8, 12), **options)
    calls = (plan.run, lambda frame, boxes: crop_resize(frame, boxes, (8, 12), **options))

    def answer(call, given):
        found = call(frame, given)
        return [host(part) for part in (found if isinstance(found, tuple) else (found,))]

    for count, call in product((1, 28, 240, 241, 5000, 2), calls):
        found, expected = answer(call, boxes[:count]), answer(call, memory.upload(boxes[:count]))
        assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True)), count


def test_boxes_on_the_gpu_cause_no_wait():
    frame, boxes = memory.upload(random_frame()), memory.upload(EDGES.astype(np.float32))
    plan = CropPlan(frame, len(EDGES), (64, 64))
    plan.run(frame, boxes)
    synchronize()
    stream = slow_stream()
    started = time.perf_counter()
    plan.run(frame, boxes, stream=stream)
    assert time.perf_counter() - started < 0.01
    stream.sync()
    assert time.perf_counter() - started > 0.015


def test_one_plan_on_two_streams_does_not_mix_its_boxes():
    frame = memory.upload(random_frame())
    plan = CropPlan(frame, 4, (64, 64), allocate=False)
    batches = [np.tile([[shift, shift, shift + 50, shift + 60]], (4, 1)) for shift in (0, 90)]
    outs = new_results(len(batches), 4, (64, 64))
    synchronize()
    slow, quick = slow_stream(), current().create_stream()
    plan.run(frame, batches[0], out=outs[0], stream=slow)
    plan.run(frame, batches[1], out=outs[1], stream=quick)
    synchronize()
    for out, boxes in zip(outs, batches, strict=True):
        expected = crop_resize(random_frame(), boxes, (64, 64), device="cpu")
        assert np.abs(host(out) - expected).max() < 1e-3


def test_memory_is_given_back_only_behind_the_work_that_uses_it():
    """The boxes of a call that is still queued must not be overwritten by memory that is allocated afterwards."""
    frame = memory.upload(random_frame())
    stream = slow_stream()
    out = memory.DeviceArray((len(EDGES), 3, 64, 64), np.float32)
    synchronize()
    stream = slow_stream()
    crop_resize(frame, EDGES, (64, 64), out=out, stream=stream)
    overwrite_freed_memory((len(EDGES), 4))
    synchronize()
    expected = crop_resize(random_frame(), EDGES, (64, 64), device="cpu")
    assert np.abs(host(out) - expected).max() < 1e-3


def test_another_thread_may_crop_too():
    frame = random_frame()
    expected = crop_resize(frame, EDGES, (9, 9), device="cuda")
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(crop_resize, frame, EDGES, (9, 9), device="cuda").result()
    assert np.array_equal(found, expected)


def test_dlpack_alone_is_enough():
    class Foreign:
        def __init__(self, tensor):
            self._tensor = tensor

        def __dlpack__(self, **kwargs):
            return self._tensor.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self._tensor.__dlpack_device__()

    torch = pytest.importorskip("torch")
    frame = random_frame()
    found = crop_resize(Foreign(torch.from_numpy(frame).cuda()), EDGES, (9, 9))
    assert np.abs(host(found) - crop_resize(frame, EDGES, (9, 9), device="cpu")).max() < 1e-3


def test_host_boxes_in_quick_succession_do_not_overwrite_each_other():
    frame = memory.upload(random_frame())
    plan = CropPlan(frame, 64, (64, 64), allocate=False)
    results, expected = [], []
    for shift in range(20):
        boxes = np.tile([[shift, shift, shift + 50, shift + 60]], (64, 1))
        out = memory.DeviceArray((64, 3, 64, 64), np.float32)
        results.append(plan.run(frame, boxes, out=out))
        expected.append(crop_resize(random_frame(), boxes[:1], (64, 64), device="cpu"))
    for found, right in zip(results, expected, strict=True):
        assert np.abs(host(found) - right).max() < 1e-3


def test_sides_that_do_not_match_are_refused():
    frame = random_frame()
    on_gpu = memory.upload(frame)
    with pytest.raises(InputError, match="copy it to the host"):
        crop_resize(on_gpu, EDGES, device="cpu")
    with pytest.raises(InputError, match="copy them to the host"):
        crop_resize(frame, memory.upload(EDGES), device="cpu")
    with pytest.raises(InputError, match="on cuda"):
        crop_resize(on_gpu, EDGES, (8, 8), out=np.zeros((6, 3, 8, 8), np.float32))
    with pytest.raises(InputError, match="int32, int64, float32, float64"):
        crop_resize(on_gpu, memory.upload(EDGES.astype(np.int16)))


SANITIZED = """
import numpy as np
from octopus import crop_resize
frame = np.random.default_rng(0).integers(0, 256, (200, 300, 3), np.uint8)
boxes = np.array([(0, 0, 1, 1), (299, 199, 300, 200), (0, 0, 300, 200), (5, 7, 9, 10)])
for dtype in ("float32", "float16", "uint8"):
    for layout in ("NCHW", "NHWC"):
        crop_resize(frame, boxes, (33, 300), dtype=dtype, layout=layout, device="cuda")
"""


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck"])
def test_compute_sanitizer_finds_nothing(tool, tmp_path):
    sanitize(tool, SANITIZED, tmp_path)
