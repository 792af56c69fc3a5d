"""Crops on a GPU beside those of the table: interchange, streams, graphs, and nothing hidden."""

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from cases.crops import BOXED, LAYOUTS, boxes_of, maps_of, random_frame
from exported import Exported
from gpu import host, new_results, overwrite_freed_memory, refuse_allocation, sanitize, slow_stream, synchronize

from octopus import NV12, P010, CropPlan, FrameStream, InputError, crop_resize, map_back, rotated_boxes
from octopus.backends.cuda import memory
from octopus.backends.cuda.device import current
from octopus.crop.cuda import MAP_BYTES, UPLOAD_BYTES

pytestmark = pytest.mark.gpu

SIZE = (33, 47)
FRAMES = np.stack([random_frame(seed=seed) for seed in range(3)])
FRAME, BOXES, INDEX = FRAMES[0], boxes_of(200, 300, "error"), np.array([2, 0, 1, 0, 2, 2, 1])
MAPS = np.float32(maps_of(200, 300, SIZE))
LEFT, RIGHT = (np.tile(np.float32([[x, x, x + 50, x + 60]]), (4, 1)) for x in (0, 90))
CLOSE = 0.02  # levels


def crops_of(result):
    return result[0] if isinstance(result, tuple) else result


def assert_close(found, *call, limit=CLOSE, **options):
    """Crops on the GPU are those of the CPU."""
    synchronize()
    expected = crops_of(crop_resize(*call, device="cpu", **options))
    assert np.abs(host(crops_of(found)).astype(np.float64) - expected).max() < limit


def on_gpu(array):
    return pytest.importorskip("torch").from_numpy(np.ascontiguousarray(array)).cuda()


@pytest.mark.parametrize("kind", ["int32", "int64", "float32", "float64"])
def test_tensors_stay_tensors_on_the_gpu_with_their_transform(kind):
    torch = pytest.importorskip("torch")
    frames, boxes, options = on_gpu(FRAMES), on_gpu(BOXES.round().astype(kind)), BOXED | {"edge": "image"}
    expected, back = crop_resize(FRAMES, BOXES.round(), SIZE, frame_index=INDEX, device="cpu", **options)
    with torch.cuda.stream(torch.cuda.Stream()):
        for index in (on_gpu(INDEX), on_gpu(INDEX.astype("int32")), INDEX, INDEX.tolist()):
            found, transform = crop_resize(frames, boxes, SIZE, frame_index=index, **options)
            assert isinstance(transform, torch.Tensor) and found.is_cuda and transform.is_cuda
            assert np.abs(host(found) - expected).max() < CLOSE
            assert np.allclose(host(transform), back, rtol=1e-5, atol=1e-3)
    corners = torch.tensor([[0.0, 0, 47, 33]], device="cuda").expand(len(BOXES), 4)
    assert np.allclose(host(map_back(corners, transform)), map_back(host(corners), back), atol=0.01)
    assert crop_resize(frames[0], boxes, SIZE, dtype=torch.float16).dtype == torch.float16


def test_parts_of_larger_tensors_are_read_in_place():
    frames, boxes = on_gpu(FRAMES), [[0, 0, 200, 150], [3, 4, 30, 40]]
    part = np.ascontiguousarray(FRAMES[::2, 10:160, 20:220])
    found = crop_resize(frames[::2, 10:160, 20:220], boxes, (16, 16), frame_index=[1, 0])
    assert_close(found, part, boxes, (16, 16), frame_index=[1, 0])
    assert_close(crop_resize(frames[0, 10:160, 20:220], boxes, (16, 16)), part[0], boxes, (16, 16))


def test_other_families_stay_what_they_are():
    cupy = pytest.importorskip("cupy")
    from numba import cuda

    for array in (cupy.asarray(FRAME), cuda.to_device(FRAME), memory.upload(FRAME)):
        found = crop_resize(array, BOXES, (8, 8))
        assert type(found) is type(array)
        assert_close(cupy.asnumpy(found) if isinstance(found, cupy.ndarray) else found, FRAME, BOXES, (8, 8))
    assert_close(crop_resize(Exported(on_gpu(FRAME)), BOXES, (9, 9)), FRAME, BOXES, (9, 9))


class Interface:
    """A plane that offers `__cuda_array_interface__` and nothing else."""

    def __init__(self, plane):
        self._plane = plane

    @property
    def __cuda_array_interface__(self):
        return self._plane.__cuda_array_interface__


@pytest.mark.parametrize("offered", [Exported, Interface])
@pytest.mark.parametrize("kind", [NV12, P010])
def test_planes_of_video_may_offer_one_protocol_alone(kind, offered):
    """In the shapes of a decoder's planes, luma (H, W, 1) and chroma (H/2, W/2, 2), each at its pitch."""
    dtype = np.uint8 if kind is NV12 else np.uint16
    y, uv = random_frame(240, 352, 1, dtype, 1), random_frame(120, 352, 1, dtype, 2)
    there = on_gpu(y)[:, :320], on_gpu(uv)[:, :320].reshape(120, 320)
    coding, boxes = {"matrix": "bt709", "range": "limited"}, np.array([(0, 0, 320, 240), (3.5, 7, 99, 200)])
    planes = offered(there[0]), offered(there[1].view(120, 160, 2))
    frame = kind(y[:, :320, 0], uv[:, :320, 0], **coding)
    assert_close(crop_resize(kind(*planes, **coding), boxes, 48), frame, boxes, 48)
    assert_close(crop_resize(frame, boxes, 48, device="cuda"), frame, boxes, 48)  # from the host


@pytest.mark.parametrize("antialias", [False, True])
def test_boxes_on_the_gpu_that_cannot_be_made_fill_their_item(antialias):
    boxes = np.array([(np.nan, 0, 3, 3), (5, 5, 5, 9), (400, 0, 500, 5), (1, 1, 9, 9)], np.float32)
    far = np.array([(np.nan, 0, 3, 3), (0, 0, 16385, 3), (-(2.0**25), 0, 9, 9), (-900, -800, -700, -600)], np.float32)
    for given, more in ((boxes, {}), (far, {"outside": "pad", "pad_mode": "edge"})):
        options = BOXED | {"antialias": antialias} | more
        for array in crop_resize(memory.upload(FRAME), memory.upload(given), SIZE, **options):
            assert np.isnan(host(array)[:3]).all() and np.isfinite(host(array)[3]).all()
    index = memory.upload(np.array([0, -1, 3, 2], np.int32))
    options = BOXED | {"frame_index": index, "antialias": antialias}
    whole = memory.upload(np.tile(BOXES[:1], (4, 1)))
    for array in crop_resize(memory.upload(FRAMES), whole, SIZE, **options):
        assert np.isnan(host(array)[1:3]).all() and np.isfinite(host(array)[[0, 3]]).all()
    assert (host(crop_resize(memory.upload(FRAMES), whole, SIZE, dtype="uint8", **options)[0])[1:3] == 0).all()


def test_maps_on_the_gpu_that_cannot_be_used_fill_their_item():
    maps = np.tile(np.array([[[1, 0, 3], [0, 1, 4]]], np.float32), (5, 1, 1))
    maps[0, 0, 0], maps[1, 1, 2], maps[2, 0, 0] = np.nan, np.inf, 2**23
    for options in ({}, {"outside": "pad", "pad_mode": "reflect"}):
        found = host(crop_resize(memory.upload(FRAME), memory.upload(maps), SIZE, **options))
        assert np.isnan(found[:3]).all() and np.isfinite(found[3:]).all()
        found = host(crop_resize(memory.upload(FRAME), memory.upload(maps), SIZE, dtype="uint8", **options))
        assert (found[:3] == 0).all() and found[3:].any()


@pytest.mark.parametrize("size", [(32, 32), (7, 50), (100, 150), (224, 224)])
def test_the_nearest_pixel_of_a_whole_box_is_the_same_on_every_device(size):
    """Also where a sample lies on the edge of two pixels: no device may round its way across."""
    boxes = BOXES[[0, 3, 4, 2]]
    right = crop_resize(FRAME, boxes, size, filter="nearest", dtype="uint8", device="cpu")
    found = crop_resize(memory.upload(FRAME), memory.upload(boxes), size, filter="nearest", dtype="uint8")
    assert np.array_equal(host(found), right)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("width", [48, 33])
def test_filters_of_every_width_equal_the_cpu(channels, layout, width):
    """Three pixels, four, up to eight, up to twenty and more, at both ends of the frame, growing and shrinking."""
    rng = np.random.default_rng(width)
    frame = random_frame(160, 1204, channels, seed=7)  # rows of whole words
    sides = np.stack([width * np.geomspace(0.3, 24, 60), np.geomspace(5, 150, 60)[rng.permutation(60)]], 1)
    low = rng.uniform(0, 1, (60, 2)) * (np.array([1200, 160]) - sides)
    low[::3], low[1::3] = 0, (np.array([1200, 160]) - sides)[1::3]
    boxes, there = np.concatenate([low, low + sides], 1).astype(np.float32), on_gpu(frame)
    for edge, first in product(("box", "image"), (0, 1, 4)):  # rows that begin at a word, and elsewhere
        call = {"mean": 3.0, "std": 2.0, "layout": layout, "edge": edge, "antialias": True}
        found = crop_resize(there[:, first : first + 1200], on_gpu(boxes), (24, width), **call)
        assert_close(found, frame[:, first : first + 1200], boxes, (24, width), **call)


def test_boxes_on_the_gpu_are_read_back_to_be_refused():
    frame, out = memory.upload(FRAME), memory.DeviceArray((2, 3, 8, 8), np.float32).fill_bytes(np.float32(5).tobytes())
    good, bad = np.array([[1, 2, 30, 40], [0, 0, 300, 200]]), np.array([[1, 2, 30, 40], [0, 0, 301, 200]])
    with pytest.raises(InputError, match=r"box 1 = \(0, 0, 301, 200\) reaches outside the frame, 200 pixels high"):
        crop_resize(frame, memory.upload(bad), (8, 8), outside="error", out=out)
    assert (host(out) == 5).all()
    crop_resize(frame, memory.upload(good), (8, 8), outside="error", out=out)
    assert np.array_equal(host(out), host(crop_resize(frame, good, (8, 8))))
    with pytest.raises(InputError, match=r"map 0 = .* takes samples outside the frame, 200 pixels high"):
        crop_resize(frame, memory.upload(np.float32([[[1, 0, -2], [0, 1, 4]]])), (8, 8), outside="error")


@pytest.mark.parametrize("options", [{}, BOXED, {"dtype": "uint8", "layout": "NHWC"}], ids=str)
def test_boxes_from_the_host_give_what_those_on_the_gpu_give(options):
    """Few of them are an argument of the kernel, more are copied, many in parts."""
    rng = np.random.default_rng(3)
    corners = rng.uniform(0, 150, (5000, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(1, 49, (5000, 2))], 1).astype(np.float32)
    frame, plan = memory.upload(FRAME), CropPlan(memory.upload(FRAME), len(boxes), (8, 12), **options)

    def answer(call, given):
        found = call(frame, given)
        return [host(part) for part in (found if isinstance(found, tuple) else (found,))]

    calls = (plan.run, lambda frame, boxes: crop_resize(frame, boxes, (8, 12), **options))
    for count, call in product((1, 28, 240, 241, 5000, 2), calls):
        found, expected = answer(call, boxes[:count]), answer(call, memory.upload(boxes[:count]))
        assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True)), count


@pytest.mark.parametrize("indexed", [False, True])
def test_more_maps_than_travel_at_a_time_or_than_a_grid_holds(indexed):
    for count, size in ((UPLOAD_BYTES // MAP_BYTES + 300, (2, 3)), (65_535 + 500, (1, 2))):
        maps = np.tile(np.array([[[1, 0, 0], [0, 1, 0]]], np.float32), (count, 1, 1))
        maps[:, 0, 2] = np.arange(count) % 290
        index = np.arange(count) % 3 if indexed else None
        frames, call = FRAMES if indexed else FRAME, {"frame_index": index, "dtype": "uint8"}
        right = crop_resize(frames, maps, size, device="cpu", **call)
        assert np.array_equal(host(crop_resize(memory.upload(frames), maps, size, **call)), right)
        assert np.array_equal(crop_resize(frames, maps, size, device="cuda", **call), right)


@pytest.mark.parametrize("shape, options", [
    ((4,), {}), ((4,), BOXED | {"antialias": True}), ((4,), {"outside": "pad", "pad_mode": "reflect"}),
    ((4,), {"filter": "bicubic"}), ((2, 3), {"filter": "nearest"}), ((2, 3), {}),
], ids=str)  # fmt: skip
def test_a_plan_replays_in_a_cuda_graph_with_new_boxes_and_a_new_index(shape, options):
    torch = pytest.importorskip("torch")
    given = BOXES if shape == (4,) else MAPS
    frames, boxes, index = on_gpu(FRAMES), on_gpu(given), on_gpu(INDEX[: len(given)])
    plan = CropPlan(frames, len(given), SIZE, index_dtype="int64", box_shape=shape, **options)
    results = plan.run(frames, boxes, frame_index=index)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plan.run(frames, boxes, frame_index=index, out=crops_of(results))
    boxes.copy_(boxes.flip(0).clone())
    index.zero_()
    for result in results if isinstance(results, tuple) else (results,):
        result.fill_(torch.nan)
    graph.replay()
    torch.cuda.synchronize()
    right = crop_resize(frames[0], given[::-1].copy(), SIZE, **options)
    for found, other in zip(*(one if isinstance(one, tuple) else (one,) for one in (results, right)), strict=True):
        assert torch.equal(found, other) and not torch.isnan(found).any()


def test_a_graph_makes_as_many_items_as_the_detector_counted():
    """Boxes, count and flips change between replays, where nothing but the GPU reads them."""
    torch = pytest.importorskip("torch")
    frame, given = on_gpu(FRAME), np.tile(BOXES, (6, 1))[:40]
    turns = np.random.default_rng(3).integers(0, 4, 40).astype(np.uint8)
    boxes, flips = torch.zeros((40, 4), device="cuda"), torch.zeros(40, dtype=torch.uint8, device="cuda")
    counts = {dtype: torch.zeros((), dtype=dtype, device="cuda") for dtype in (torch.int32, torch.int64)}
    plan = CropPlan(frame, 40, 32)
    for dtype, count in counts.items():
        plan.run(frame, boxes, count=count, flip=flips)  # loads the kernel
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            crops = plan.run(frame, boxes, count=count, flip=flips)
        for made in (0, 1, 17, 40, 99):
            crops.fill_(7)
            boxes.copy_(on_gpu(np.roll(given, made, axis=0)))
            flips.copy_(on_gpu(np.roll(turns, made)))
            count.fill_(made)
            graph.replay()
            expected = crop_resize(frame, np.roll(given, made, axis=0), 32, flip=np.roll(turns, made))
            assert torch.equal(crops[:made], expected[:made]), dtype
            assert (crops[made:] == 7).all()


def test_no_graph_takes_what_the_host_reads_or_gives():
    torch = pytest.importorskip("torch")
    frame, boxes = on_gpu(FRAME), on_gpu(BOXES)
    checked, plain = CropPlan(frame, 9, (8, 8), outside="error"), CropPlan(frame, 9, (8, 8))
    for plan, given, words in ((checked, boxes, 'outside="error" reads the boxes'), (plain, LEFT, "graph is captured")):
        out = plan.run(frame, given)
        torch.cuda.synchronize()
        with torch.cuda.graph(torch.cuda.CUDAGraph()), pytest.raises(InputError, match=words):
            out.zero_()  # a graph must not be empty
            plan.run(frame, given)


@pytest.mark.parametrize("options", [{}, BOXED | {"edge": "image"}, {"filter": "bicubic"}], ids=str)
def test_a_plan_allocates_nothing_when_it_runs(options, monkeypatch):
    frames, several = memory.upload(FRAMES), {"frame_index": INDEX}
    plan = CropPlan(frames, len(BOXES), SIZE, **options)
    maps = CropPlan(frames, len(BOXES), SIZE, filter="bicubic", box_shape=(2, 3))
    boxes, there = memory.upload(BOXES), memory.upload(MAPS)
    monkeypatch.setattr(memory, "allocate", refuse_allocation)
    for given in (boxes, BOXES):
        assert_close(plan.run(frames, given, **several), FRAMES, BOXES, SIZE, **several, **options)
    for given in (there, MAPS):
        found = maps.run(frames, given, frame_index=INDEX[:6])
        assert_close(found, FRAMES, MAPS, SIZE, limit=0.5, filter="bicubic", frame_index=INDEX[:6])


def test_boxes_on_the_gpu_cause_no_wait():
    frame, boxes = memory.upload(FRAME), memory.upload(BOXES)
    plan = CropPlan(frame, len(BOXES), (64, 64))
    plan.run(frame, boxes)
    synchronize()
    stream = slow_stream()
    started = time.perf_counter()
    plan.run(frame, boxes, stream=stream)
    assert time.perf_counter() - started < 0.01
    stream.sync()
    assert time.perf_counter() - started > 0.015


def test_runs_on_several_streams_keep_their_own_boxes_and_index():
    frames, there = memory.upload(FRAMES), memory.upload(RIGHT)
    plan = CropPlan(frames, 4, (64, 64), allocate=False)
    outs = new_results(4, 4, (64, 64))
    plan.run(frames, LEFT, frame_index=[0] * 4, out=outs[0])
    synchronize()
    slow, quick = slow_stream(), current().create_stream()
    runs = [(LEFT, 0, slow), (RIGHT, 1, quick), (LEFT, 2, quick), (RIGHT, 0, quick)]
    for out, (boxes, number, stream) in zip(outs, runs, strict=True):
        plan.run(frames, boxes, frame_index=[number] * 4, out=out, stream=stream)
    for out, (boxes, number, _) in zip(outs, runs, strict=True):
        assert_close(out, FRAMES[number], boxes, (64, 64))
    own = CropPlan(memory.upload(FRAME), 4, (64, 64))  # whose memory has the last run's crops
    own.run(memory.upload(FRAME), memory.upload(LEFT), stream=slow_stream())
    assert_close(own.run(memory.upload(FRAME), there, stream=quick), FRAME, RIGHT, (64, 64))


def test_boxes_in_quick_succession_do_not_overwrite_each_other():
    frame, results = memory.upload(FRAME), new_results(20, 64, (64, 64))
    plan = CropPlan(frame, 64, (64, 64), allocate=False)
    boxes = [np.tile([[shift, shift, shift + 50, shift + 60]], (64, 1)) for shift in range(20)]
    for out, given in zip(results, boxes, strict=True):
        plan.run(frame, given, out=out)
    for out, given in zip(results, boxes, strict=True):
        assert_close(out, FRAME, given, (64, 64))


def test_memory_is_given_back_only_behind_the_work_that_uses_it():
    """Boxes of a call that is queued still are neither overwritten by new memory nor by the host."""
    frame, (out, other) = memory.upload(FRAME), new_results(2, 4, (64, 64))
    boxes = memory.pinned((4, 4), np.float32)
    boxes[:] = LEFT
    crop_resize(frame, boxes, (64, 64), out=out)
    synchronize()
    stream = slow_stream()
    crop_resize(frame, boxes, (64, 64), out=out, stream=stream)
    boxes[:] = RIGHT
    crop_resize(frame, np.array(RIGHT), (64, 64), out=other, stream=stream)
    overwrite_freed_memory((4, 4))
    assert_close(out, FRAME, LEFT, (64, 64))
    assert_close(other, FRAME, RIGHT, (64, 64))


def test_boxes_of_another_library_are_waited_for():
    torch, cupy = pytest.importorskip("torch"), pytest.importorskip("cupy")
    frame, out = cupy.asarray(FRAME), cupy.empty((4, 3, 64, 64), np.float32)
    boxes, later = on_gpu(LEFT), on_gpu(RIGHT)
    crop_resize(frame, boxes, (64, 64), out=out)
    torch.cuda.synchronize()
    slow = slow_stream()
    with torch.cuda.stream(torch.cuda.ExternalStream(int(slow.handle))):
        boxes.copy_(later)
        crop_resize(frame, boxes, (64, 64), out=out)
    synchronize()
    assert_close(cupy.asnumpy(out), FRAME, RIGHT, (64, 64))


def test_another_thread_may_crop_too():
    expected = crop_resize(FRAME, BOXES, (9, 9), device="cuda")
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(crop_resize, FRAME, BOXES, (9, 9), device="cuda").result()
    assert np.array_equal(found, expected)


def test_channels_of_one_plan_do_not_become_those_of_another():
    frame = memory.upload(random_frame(channels=5))
    plans = [CropPlan(frame, 9, (8, 8), mean=mean) for mean in (np.arange(5), 9.0)]
    found = [host(plan.run(frame, BOXES)) for plan in plans]
    assert np.abs(found[0] - found[1] - (9 - np.arange(5))[:, None, None]).max() < 1e-3


def test_frames_from_the_host_and_rotated_boxes_as_tensors():
    boxes = np.array([[150.5, 100.25, 80, 41, 33], [60, 60, 40, 20, 90]])
    maps = rotated_boxes(boxes, SIZE)
    with FrameStream(FRAME, 4, SIZE) as stream:
        stream.buffer()[...] = FRAME
        assert_close(stream.submit(maps), FRAME, maps, SIZE, limit=0.06)
    there = rotated_boxes(on_gpu(boxes), SIZE)
    assert there.is_cuda and np.allclose(host(there), maps, atol=1e-5)
    assert_close(crop_resize(on_gpu(FRAME), there, SIZE), FRAME, maps, SIZE, limit=0.06)


def test_what_lies_on_the_wrong_side_is_named():
    torch = pytest.importorskip("torch")
    frame, frames, boxes, there = on_gpu(FRAME), on_gpu(FRAMES), on_gpu(BOXES), on_gpu(INDEX)
    mean = {"mean": torch.ones(7, 3, device="cuda").double(), "std": torch.ones(7, 3, device="cuda")}
    for call, words in (
        (lambda: crop_resize(frame, BOXES, device="cpu"), "copy it to the host"),
        (lambda: crop_resize(FRAME, boxes, device="cpu"), "copy them to the host"),
        (lambda: crop_resize(frame, BOXES, (8, 8), out=np.zeros((7, 3, 8, 8), np.float32)), "on cuda"),
        (lambda: crop_resize(frame, boxes.short()), "int32, int64, float32, float64"),
        (lambda: crop_resize(frames, BOXES, frame_index=there), "keep both on one side"),
        (lambda: crop_resize(frames, boxes, frame_index=there.short()), "int32, int64, found int16"),
        (lambda: crop_resize(frames, boxes, frame_index=np.full(7, 3)), r"frame_index\[0\] = 3"),
        (lambda: map_back(np.zeros((1, 2)), torch.zeros((1, 4))), "convert one of them"),
        (lambda: crop_resize(frame, BOXES, 8, flip=there), "flip is on the GPU but the boxes are on the host"),
        (lambda: crop_resize(frame, BOXES, 8, count=there[0]), "count is on the GPU but the boxes are on the host"),
        (lambda: crop_resize(frame, boxes, 8, **mean), r"mean .*float32"),
    ):
        with pytest.raises(InputError, match=words):
            call()


SANITIZED = """
import numpy as np
from octopus import NV12, crop_resize
rng = np.random.default_rng(0)
planes, frame = rng.integers(0, 256, (300, 300), np.uint8), rng.integers(0, 256, (200, 300, 4), np.uint8)
video = NV12(planes[:200], planes[200:], matrix="bt601", range="full")
colours, odd = np.ascontiguousarray(frame[..., :3]), np.ascontiguousarray(frame[:40, :61, :3])
boxes = np.array([(0, 0, 1, 1), (299, 199, 300, 200), (0, 0, 300, 200), (5, 7, 9, 10), (280, 0, 300, 200)])
maps = [[[3, 1, -40], [1, -3, 900]], [[0.7, 0, 0], [0, 0.7, 0]]]
items = {"flip": [0, 1, 2, 3, 1], "count": 5, "device": "cuda"}
for layout in ("NCHW", "NHWC"):
    for dtype in ("float32", "float16", "uint8"):
        crop_resize(colours, boxes, (33, 300), dtype=dtype, layout=layout, device="cuda")
    crop_resize(video, boxes, (33, 300), layout=layout, **items)
    for size in ((33, 300), (7, 8)):
        crop_resize(frame, boxes, size, layout=layout, channels="BGRA", antialias=True, **items)
        crop_resize(colours, boxes, size, layout=layout, antialias=True, **items)
    crop_resize(frame, boxes, (33, 300), layout=layout, dtype="uint8", channels="BGRA", **items)
crop_resize(video, boxes, (33, 30), filter="bicubic", edge="image", **items)
for filter in ("nearest", "bilinear", "bicubic"):
    for options in ({}, {"outside": "pad"}, {"outside": "pad", "pad_mode": "reflect"}):
        crop_resize(odd, maps, (37, 45), filter=filter, dtype="uint8", device="cuda", **options)
        reaching = np.array([[0, 0, 61, 40], [60, 39, 61, 40], [-9, -9, 70, 50]])
        crop_resize(odd, reaching, (37, 45), filter=filter, edge="image", letterbox=True, device="cuda", **options)
"""


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck"])
def test_compute_sanitizer_finds_nothing(tool, tmp_path):
    sanitize(tool, SANITIZED, tmp_path)
