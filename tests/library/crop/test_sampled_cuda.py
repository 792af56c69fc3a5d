"""Filters and affine maps on a GPU: the CPU's answers, on the frame's side, and no wait."""

from __future__ import annotations

import numpy as np
import pytest
from gpu import host, random_frame, refuse_allocation, sanitize, synchronize
from sampled_case import BEYOND, BOXES, FILTERS, MAPS, differences, of_boxes, of_maps

from octopus import CropPlan, FrameStream, InputError, crop_resize, rotated_boxes
from octopus.backends.cuda import memory
from octopus.crop.cuda import MAP_BYTES, UPLOAD_BYTES

pytestmark = pytest.mark.gpu

SIZE = (33, 47)
# The GPU multiplies and adds in one step, so that positions may differ by their last bits, of 3e-5 at 300 pixels; a
# bicubic value changes by up to 400 levels per pixel along each axis.
LEVELS = 0.06
LEVELS_PER_PIXEL = 2000
# Sixteen products of at most 255 levels and their sums, each off by half of a last bit (8e-6), in another order.
SUM_LEVELS = 2e-4


def compare(frame, boxes, size=SIZE, *, filter, limit=None, **options):
    """On the GPU as on the CPU, for boxes and frame on the GPU."""
    positions = (of_maps if np.ndim(boxes) == 3 else of_boxes)(boxes, size)
    right = crop_resize(frame, boxes, size, filter=filter, layout="NHWC", device="cpu", **options)
    index = options.pop("frame_index", None)
    on_gpu = memory.upload(np.ascontiguousarray(boxes, np.float32))
    there = {} if index is None else {"frame_index": memory.upload(np.asarray(index, np.int32))}
    found = host(
        crop_resize(memory.upload(frame), on_gpu, size, filter=filter, layout="NHWC", **options, **there)
    )
    assert found.dtype == right.dtype
    wrong = differences(found, right.astype(np.float64), positions, filter)
    if limit is None:
        limit = {"float32": SUM_LEVELS, "float16": 0.13, "uint8": 1.0}[found.dtype.name]
    last_bit = np.spacing(np.abs(positions).max(axis=(1, 2, 3)).astype(np.float32))
    assert (wrong.max(axis=(1, 2, 3)) <= limit + LEVELS_PER_PIXEL * last_bit).all()


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("options", BEYOND, ids=str)
def test_maps_equal_the_cpu(filter, options):
    frame = random_frame()
    for size in (SIZE, (1, 1), (224, 300)):
        compare(frame, MAPS, size, filter=filter, mean=3.0, std=2.0, **options)


@pytest.mark.parametrize("filter", ["nearest", "bicubic"])
@pytest.mark.parametrize("edge", ["box", "image"])
@pytest.mark.parametrize("options", BEYOND, ids=str)
def test_boxes_equal_the_cpu(filter, edge, options):
    boxes = np.concatenate([BOXES, [(-20.3, -9, 60, 71), (250, 150, 340.25, 290)]]).astype(np.float32)
    frame = random_frame()
    if options["outside"] == "pad":
        compare(frame, boxes, filter=filter, edge=edge, **options)
    else:
        compare(frame, BOXES, filter=filter, edge=edge, **options)
    options = {"filter": filter, "edge": edge, "letterbox": True, **options}
    found = crop_resize(memory.upload(frame), memory.upload(boxes), SIZE, **options)
    right = crop_resize(frame, boxes, SIZE, device="cpu", **options)
    assert (np.abs(host(found[0]) - right[0]) > LEVELS).mean() < (0.02 if filter == "nearest" else 1e-9)
    assert np.allclose(host(found[1]), right[1], rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("size", [(32, 32), (7, 50), (100, 150), (224, 224)])
def test_the_nearest_pixel_of_a_whole_box_is_the_same_on_every_device(size):
    """Also where a sample lies on the edge of two pixels: no device may round its way across."""
    frame, boxes = random_frame(), BOXES[:5]
    right = crop_resize(frame, boxes, size, filter="nearest", dtype="uint8", device="cpu")
    found = crop_resize(memory.upload(frame), memory.upload(boxes), size, filter="nearest", dtype="uint8")
    assert np.array_equal(host(found), right)


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 64])
@pytest.mark.parametrize("frame_dtype", ["uint8", "uint16", "float32"])
def test_every_kind_of_frame_and_result_equals_the_cpu(filter, channels, frame_dtype):
    top = 255.0 if frame_dtype == "float32" else float(np.iinfo(frame_dtype).max)
    frames = np.random.default_rng(channels).uniform(0, top, (3, 200, 300, channels)).astype(frame_dtype)
    for boxes in (MAPS[:3], BOXES) if filter != "bilinear" else (MAPS[:3],):
        index = np.arange(len(boxes)) % 3
        for dtype in ("float32", "float16", "uint8"):
            options = {"mean": 3.0, "std": top / 128, "dtype": dtype, "frame_index": index}
            compare(frames, boxes, filter=filter, **options)


def test_bfloat16_and_planes():
    torch = pytest.importorskip("torch")
    frame = torch.from_numpy(random_frame()).cuda()
    for boxes in (torch.from_numpy(MAPS[:3]).cuda(), torch.from_numpy(BOXES).cuda()):
        floats = crop_resize(frame, boxes, SIZE, filter="bicubic", mean=3.0, std=2.0)
        found = crop_resize(frame, boxes, SIZE, filter="bicubic", mean=3.0, std=2.0, dtype=torch.bfloat16)
        assert torch.equal(found, floats.to(torch.bfloat16))


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_maps_of_every_dtype_and_from_the_host(dtype):
    frame = random_frame()
    maps = np.array([[[1, 0, 20], [0, 1, 5]], [[0, 2, 3], [2, 0, 1]]]).astype(dtype)
    right = crop_resize(frame, maps, SIZE, device="cpu")
    on_gpu = memory.upload(frame)
    for given in (memory.upload(maps), maps, maps.tolist()):
        assert np.array_equal(host(crop_resize(on_gpu, given, SIZE)), right)
    assert np.array_equal(crop_resize(frame, maps, SIZE, device="cuda"), right)


@pytest.mark.parametrize("indexed", [False, True])
def test_more_maps_than_travel_at_a_time(indexed):
    frame, count = random_frame(), UPLOAD_BYTES // MAP_BYTES + 300
    maps = np.tile(np.array([[[1.0, 0, 0], [0, 1, 0]]]), (count, 1, 1))
    maps[:, 0, 2] = np.arange(count) % 290
    index = np.arange(count) % 2 if indexed else None
    frames = np.stack([frame, frame[::-1]]) if indexed else frame
    right = crop_resize(frames, maps, (2, 3), frame_index=index, device="cpu")
    assert np.array_equal(host(crop_resize(memory.upload(frames), maps, (2, 3), frame_index=index)), right)
    assert np.array_equal(crop_resize(frames, maps, (2, 3), frame_index=index, device="cuda"), right)


def test_more_maps_than_a_grid_holds():
    frame, count = random_frame(), 65_535 + 500
    maps = np.tile(np.array([[[1, 0, 0], [0, 1, 0]]], np.float32), (count, 1, 1))
    maps[:, 0, 2] = np.arange(count) % 290
    found = crop_resize(memory.upload(frame), memory.upload(maps), (1, 2), dtype="uint8")
    assert np.array_equal(host(found), crop_resize(frame, maps, (1, 2), dtype="uint8", device="cpu"))


def test_maps_on_the_gpu_that_cannot_be_used_fill_their_item():
    maps = np.tile(np.array([[[1, 0, 3], [0, 1, 4]]], np.float32), (5, 1, 1))
    maps[0, 0, 0], maps[1, 1, 2], maps[2, 0, 0] = np.nan, np.inf, 2**23
    frame = memory.upload(random_frame())
    for options in ({}, {"outside": "pad", "pad_mode": "reflect"}):
        found = host(crop_resize(frame, memory.upload(maps), (8, 9), **options))
        assert np.isnan(found[:3]).all() and np.isfinite(found[3:]).all()
        found = host(crop_resize(frame, memory.upload(maps), (8, 9), dtype="uint8", **options))
        assert (found[:3] == 0).all() and found[3:].any()


def test_maps_on_the_gpu_are_read_back_to_be_refused():
    frame = memory.upload(random_frame())
    good = np.array([[[1, 0, 3], [0, 1, 4]]], np.float32)
    crop_resize(frame, memory.upload(good), (8, 8), outside="error")
    with pytest.raises(InputError, match=r"map 0 = .* outside the frame of 300x200"):
        crop_resize(frame, memory.upload(good - 5), (8, 8), outside="error")


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("shape", [(4,), (2, 3)])
def test_a_plan_replays_in_a_cuda_graph_with_new_boxes(filter, shape):
    torch = pytest.importorskip("torch")
    pixels, given = random_frame(), np.float32(BOXES if shape == (4,) else MAPS)
    frame, boxes = torch.from_numpy(pixels).cuda(), torch.from_numpy(given).cuda()
    plan = CropPlan(frame, len(given), SIZE, filter=filter, box_shape=shape)
    out = plan.run(frame, boxes)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plan.run(frame, boxes, out=out)
    boxes.copy_(boxes.flip(0).clone())
    out.fill_(torch.nan)
    graph.replay()
    torch.cuda.synchronize()
    replayed = out.clone()
    assert torch.equal(replayed, plan.run(frame, boxes)) and not torch.isnan(replayed).any()
    assert torch.equal(replayed, crop_resize(frame, given[::-1].copy(), SIZE, filter=filter))


def test_a_plan_takes_either_kind_of_boxes_and_allocates_nothing(monkeypatch):
    pixels = random_frame()
    frame = memory.upload(pixels)
    plans = [CropPlan(frame, 6, SIZE, filter="bicubic", box_shape=shape) for shape in ((4,), (2, 3))]
    given = [(boxes, memory.upload(np.float32(boxes))) for boxes in (BOXES, MAPS[:3])]
    monkeypatch.setattr(memory, "allocate", refuse_allocation)
    for plan in plans:
        for boxes, on_gpu in given:
            right = crop_resize(pixels, boxes, SIZE, filter="bicubic", device="cpu")
            for form in (boxes, on_gpu):
                found = plan.run(frame, form)
                synchronize()
                assert np.abs(host(found) - right).max() < LEVELS


def test_frames_from_the_host_and_rotated_boxes_as_tensors():
    pixels, boxes = random_frame(), np.array([[150.5, 100.25, 80, 41, 33], [60, 60, 40, 20, 90]])
    maps = rotated_boxes(boxes, SIZE)
    right = crop_resize(pixels, maps, SIZE, device="cpu")
    with FrameStream(pixels, 4, SIZE) as stream:
        stream.buffer()[...] = pixels
        found = stream.submit(maps)
    assert np.abs(host(found) - right).max() < LEVELS
    torch = pytest.importorskip("torch")
    there = rotated_boxes(torch.from_numpy(boxes).cuda(), SIZE)
    assert there.is_cuda and np.allclose(host(there), maps, atol=1e-5)
    found = crop_resize(torch.from_numpy(pixels).cuda(), there, SIZE)
    assert found.is_cuda and np.abs(host(found) - right).max() < LEVELS


SANITIZED = """
import numpy as np
from octopus import crop_resize
from octopus.backends.cuda import memory
from octopus.backends.cuda.device import current

frame = memory.upload(np.random.default_rng(0).integers(0, 256, (40, 61, 3), np.uint8))
maps = [[[3, 1, -40], [1, -3, 900]], [[0.7, 0, 0], [0, 0.7, 0]], [[np.nan, 0, 0]] * 2]
maps = memory.upload(np.array(maps, np.float32))
boxes = memory.upload(np.array([[0, 0, 61, 40], [60, 39, 61, 40], [-9, -9, 70, 50]], np.float32))
for filter in ("nearest", "bilinear", "bicubic"):
    for options in ({}, {"outside": "pad"}, {"outside": "pad", "pad_mode": "reflect"}):
        crop_resize(frame, maps, (37, 45), filter=filter, dtype="uint8", **options)
        crop_resize(frame, boxes, (37, 45), filter=filter, edge="image", letterbox=True, **options)
current().sync()
"""


def test_compute_sanitizer_finds_nothing(tmp_path):
    sanitize("memcheck", SANITIZED, tmp_path)
