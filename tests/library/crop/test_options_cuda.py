"""`edge`, `antialias`, `letterbox` and several frames on a GPU: the CPU's answers, on the frame's side, and no wait."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from gpu import (
    CHANNELS,
    DTYPES,
    FRAME_DTYPES,
    LAYOUTS,
    SETS,
    host,
    name_of,
    new_results,
    random_frame,
    refuse_allocation,
    slow_stream,
    synchronize,
)

from octopus import CropPlan, InputError, crop_resize, map_back
from octopus.arrays.views import view
from octopus.backends.cuda import memory
from octopus.backends.cuda.device import current
from octopus.crop.options import CropOptions
from octopus.crop.spec import make_spec
from octopus_study.reference import crops as reference

pytestmark = pytest.mark.gpu

BOXES = np.array(
    [(0, 0, 1, 1), (299, 199, 300, 200), (0, 0, 300, 200), (0, 0, 300, 1), (5, 7, 9, 10), (1, 1, 299, 199),
     (20.5, 30.25, 53, 160)], np.float32,
)  # fmt: skip
INDEX = np.array([2, 0, 1, 0, 2, 2, 1])


@pytest.fixture(scope="module")
def frames():
    return np.stack([random_frame(200, 300, seed=seed) for seed in range(3)])


def parts(result, boxed):
    """Crops and transform, or None, whatever the options."""
    return result if boxed else (result, None)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("options", SETS, ids=name_of)
@pytest.mark.parametrize("several", [False, True], ids=["one-frame", "frames"])
def test_every_set_of_options_equals_the_reference(frames, options, several):
    frame, index = (frames, INDEX) if several else (frames[0], None)
    for size in ((40, 56), (1, 1), (17, 300), (224, 224)):
        call = {"mean": 3.0, "std": 2.0, "frame_index": index, **options}
        if options["letterbox"]:
            call["pad_value"] = (1, 114, 200)
        found = crop_resize(frame, BOXES, size, device="cuda", **call)
        crops, transform = parts(found, options["letterbox"])
        expected = reference.crop_resize(
            frame, BOXES, size, np.full(3, 3.0), np.full(3, 2.0), pad_value=np.array([1, 114, 200.0]),
            frame_index=index, **options,
        )  # fmt: skip
        assert np.abs(crops - expected).max() < 0.01
        if transform is not None:
            assert np.allclose(transform, reference.transforms(BOXES, size), rtol=1e-5, atol=1e-3)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("frame_dtype", FRAME_DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_combination_of_types_equals_the_cpu(channels, frame_dtype, layout, dtype):
    frames = np.stack([random_frame(200, 300, channels, frame_dtype, seed) for seed in range(3)])
    std = np.iinfo(frame_dtype).max / 255 * 2
    for antialias, width in ((False, 47), (True, 47), (True, 48)):
        call = {"mean": 3.0, "std": std, "dtype": dtype, "layout": layout, "edge": "image", "letterbox": True,
                "antialias": antialias, "frame_index": INDEX}  # fmt: skip
        found, _ = crop_resize(frames, BOXES, (33, width), device="cuda", **call)
        expected, _ = crop_resize(frames, BOXES, (33, width), device="cpu", **call)
        assert found.dtype == expected.dtype
        limit = {"float32": 0.01, "float16": 0.13, "uint8": 1}[dtype]
        difference = np.abs(found.astype(np.float64) - expected.astype(np.float64))
        assert difference.max() <= limit
        assert (difference > 0.01).mean() < 0.01  # a tie may be rounded either way, but seldom


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("width", [48, 33])
def test_filters_of_every_width_equal_the_cpu(channels, layout, width):
    """Three pixels, four, up to eight, up to twenty and more, at both ends of the frame, growing and shrinking."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(width)
    frame = random_frame(160, 1201, channels, "uint8", seed=7)
    frame = np.concatenate([frame, frame[:, :3]], axis=1)  # rows of whole words
    sides = np.stack([width * np.geomspace(0.3, 24, 60), np.geomspace(5, 150, 60)[rng.permutation(60)]], 1)
    room = np.array([1200, 160]) - sides
    low = rng.uniform(0, 1, (60, 2)) * room
    low[::3], low[1::3] = 0, room[1::3]
    boxes = np.concatenate([low, low + sides], 1).astype(np.float32)
    for edge, first in itertools.product(
        ("box", "image"), (0, 1, 4)
    ):  # rows that begin at a word, and elsewhere
        call = {"mean": 3.0, "std": 2.0, "layout": layout, "edge": edge, "antialias": True}
        pixels = frame[:, first : first + 1200]
        expected = crop_resize(pixels, boxes, (24, width), device="cpu", **call)
        on_gpu = torch.from_numpy(frame).cuda()[:, first : first + 1200]
        found = crop_resize(on_gpu, torch.from_numpy(boxes).cuda(), (24, width), **call)
        assert np.abs(host(found) - expected).max() < 0.01


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_torch_tensors_stay_on_the_gpu_with_their_transform(frames, kind):
    torch = pytest.importorskip("torch")
    on_gpu, boxes = torch.from_numpy(frames).cuda(), torch.from_numpy(BOXES).cuda()
    options = {"letterbox": True, "edge": "image"}
    expected, back = crop_resize(frames, BOXES, (32, 48), frame_index=INDEX, device="cpu", **options)
    for index in (torch.from_numpy(INDEX.astype(kind)).cuda(), INDEX, INDEX.tolist()):
        found, transform = crop_resize(on_gpu, boxes, (32, 48), frame_index=index, **options)
        assert isinstance(transform, torch.Tensor) and transform.is_cuda
        assert np.abs(host(found) - expected).max() < 0.01
        assert np.allclose(host(transform), back, rtol=1e-5, atol=1e-3)
    corners = torch.tensor([[0.0, 0, 48, 32]], device="cuda").expand(len(BOXES), 4)
    assert np.allclose(host(map_back(corners, transform)), map_back(host(corners), back), atol=0.01)


def test_an_index_on_the_gpu_that_cannot_be_used_fills_its_item(frames):
    on_gpu, boxes = memory.upload(frames), memory.upload(np.tile(BOXES[2], (4, 1)))
    for antialias in (False, True):
        index = memory.upload(np.array([0, -1, 3, 2], np.int32))
        options = {"frame_index": index, "letterbox": True, "antialias": antialias}
        crops, transform = (host(array) for array in crop_resize(on_gpu, boxes, (20, 40), **options))
        for array in (crops, transform):
            assert np.isnan(array[1:3]).all()
            assert np.isfinite(array[[0, 3]]).all()
        assert (host(crop_resize(on_gpu, boxes, (20, 40), dtype="uint8", **options)[0])[1:3] == 0).all()


def test_boxes_on_the_gpu_are_clipped_before_they_are_fitted(frames):
    frame = memory.upload(frames[0])
    reaching = memory.upload(np.array([[-20, -9, 50, 60], [280, 150, 340, 260]], np.int32))
    inside = memory.upload(np.array([[0, 0, 50, 60], [280, 150, 300, 200]], np.int32))
    for antialias in (False, True):
        options = {"letterbox": True, "edge": "image", "antialias": antialias}
        for found, right in zip(
            crop_resize(frame, reaching, (9, 30), **options),
            crop_resize(frame, inside, (9, 30), **options),
            strict=True,
        ):
            assert np.array_equal(host(found), host(right))


def test_a_plan_replays_in_a_cuda_graph_with_new_boxes_and_a_new_index(frames):
    torch = pytest.importorskip("torch")
    on_gpu, boxes = torch.from_numpy(frames).cuda(), torch.from_numpy(BOXES).cuda()
    index = torch.from_numpy(INDEX).cuda()
    plan = CropPlan(on_gpu, len(BOXES), (32, 32), letterbox=True, antialias=True, index_dtype="int64")
    out, transform = plan.run(on_gpu, boxes, frame_index=index)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plan.run(on_gpu, boxes, frame_index=index, out=out)
    boxes.copy_(boxes.flip(0).clone())
    index.zero_()
    out.fill_(torch.nan)
    transform.fill_(torch.nan)
    graph.replay()
    torch.cuda.synchronize()
    expected, back = crop_resize(
        frames[0], BOXES[::-1].copy(), (32, 32), letterbox=True, antialias=True, device="cpu"
    )
    assert np.abs(host(out) - expected).max() < 0.01
    assert np.allclose(host(transform), back, rtol=1e-5, atol=1e-3)


def test_a_plan_with_options_allocates_nothing_when_it_runs(frames, monkeypatch):
    on_gpu, boxes = memory.upload(frames), memory.upload(BOXES)
    plan = CropPlan(on_gpu, len(BOXES), (64, 64), letterbox=True, edge="image")

    monkeypatch.setattr(memory, "allocate", refuse_allocation)
    plan.run(on_gpu, boxes, frame_index=INDEX)
    plan.run(on_gpu, BOXES, frame_index=INDEX)
    synchronize()


def test_an_index_from_the_host_is_not_overwritten_by_the_next(frames):
    on_gpu = memory.upload(frames)
    plan = CropPlan(on_gpu, len(BOXES), (64, 64), allocate=False)
    outs = new_results(3, len(BOXES), (64, 64))
    synchronize()
    streams = [slow_stream(), current().create_stream(), current().create_stream()]
    for number, (out, stream) in enumerate(zip(outs, streams, strict=True)):
        plan.run(on_gpu, BOXES, frame_index=np.full(len(BOXES), number), out=out, stream=stream)
    synchronize()
    for number, out in enumerate(outs):
        expected = crop_resize(frames[number], BOXES, (64, 64), device="cpu")
        assert np.abs(host(out) - expected).max() < 0.01


@pytest.mark.parametrize("options", SETS, ids=name_of)
def test_a_part_of_a_batch_is_a_launch_with_later_addresses(frames, options):
    """The engine takes any slice of a batch, so that boxes from the host can travel in pieces."""
    from octopus.crop.cuda import CudaEngine

    on_gpu, boxes, index = memory.upload(frames), memory.upload(BOXES), memory.upload(INDEX)
    pixels = view(on_gpu, "frame")
    spec = make_spec(pixels, CropOptions((24, 36), **options))
    stream = current().default_stream
    engine = CudaEngine(spec, len(BOXES), pixels, "float32", "int64", stream)
    out = memory.DeviceArray(spec.shape(len(BOXES)), np.float32)
    transform = memory.DeviceArray((len(BOXES), 4), np.float32)
    item = spec.nbytes(1)
    for first, count in ((0, 3), (3, 1), (4, 3)):
        engine.launch(
            pixels, boxes.pointer + 16 * first, "float32", count, out.pointer + item * first, stream,
            frame_index=index.pointer + 8 * first, index_dtype="int64", transform=transform.pointer + 16 * first,
        )  # fmt: skip
    synchronize()
    expected = crop_resize(on_gpu, boxes, (24, 36), frame_index=index, **options)
    crops, back = parts(expected, options["letterbox"])
    assert np.array_equal(host(out), host(crops))
    if back is not None:
        assert np.array_equal(host(transform), host(back))


def test_frames_of_a_larger_tensor_are_read_in_place(frames):
    torch = pytest.importorskip("torch")
    part = torch.from_numpy(frames).cuda()[::2, 10:160, 20:220]
    boxes = [[0, 0, 200, 150], [3, 4, 30, 40]]
    expected = crop_resize(
        np.ascontiguousarray(frames[::2, 10:160, 20:220]), boxes, (16, 16), frame_index=[1, 0], device="cpu"
    )
    assert np.abs(host(crop_resize(part, boxes, (16, 16), frame_index=[1, 0])) - expected).max() < 0.01


def test_sides_and_dtypes_of_an_index_that_do_not_match_are_refused(frames):
    on_gpu, boxes = memory.upload(frames), memory.upload(BOXES)
    index = memory.upload(INDEX.astype(np.int32))
    with pytest.raises(InputError, match="keep both on one side"):
        crop_resize(on_gpu, BOXES, frame_index=index)
    with pytest.raises(InputError, match="int32, int64, found int16"):
        crop_resize(on_gpu, boxes, frame_index=memory.upload(INDEX.astype(np.int16)))
    with pytest.raises(InputError, match=r"frame_index\[0\] = 3"):
        crop_resize(on_gpu, boxes, frame_index=np.full(len(BOXES), 3))
    with pytest.raises(InputError, match="convert one of them"):
        torch = pytest.importorskip("torch")
        map_back(np.zeros((1, 2)), torch.zeros((1, 4)))


def test_antialiasing_and_reading_beyond_equal_torchvision(frames):
    torch = pytest.importorskip("torch")
    torchvision = pytest.importorskip("torchvision")
    frame = torch.from_numpy(frames[0]).cuda()
    planes = frame.permute(2, 0, 1).float()
    whole = torch.from_numpy(BOXES).cuda()
    rois = torch.cat([torch.zeros_like(whole[:, :1]), whole], dim=1)
    right = torchvision.ops.roi_align(planes[None], rois, (40, 56), sampling_ratio=1, aligned=True)
    assert (crop_resize(frame, whole, (40, 56), edge="image") - right).abs().max() < 0.05
    boxes = BOXES[:-1].astype(int)
    found = crop_resize(frame, boxes, (13, 17), antialias=True)
    for item, (x1, y1, x2, y2) in zip(found, boxes, strict=True):
        crop = planes[None, :, y1:y2, x1:x2]
        right = torch.nn.functional.interpolate(crop, (13, 17), mode="bilinear", antialias=True)[0]
        assert (item - right).abs().max() < 0.01
