"""Calls that look like one before are launched and no more, and as safe as the first; those on a GPU without one."""

import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product

import fake_torch
import numpy as np
import pretended
import pytest
from cases.crops import BOXED
from pretended import OnGpu, memory
from profiled import looked_at

from octopus import CropPlan, InputError, crop_resize
from octopus.arrays.memo import MOST
from octopus.backends.cuda.memory import upload
from octopus.crop import api

RNG = np.random.default_rng(7)
FRAME, RESULT = RNG.integers(0, 256, (40, 60, 3), np.uint8), np.zeros((2, 3, 24, 36), np.float32)
BOXES = np.array([[1, 2, 9, 12], [3, 4, 30, 20]], np.int32)

torch = pytest.fixture(pretended.torch_installed)


def crop_with(maker, model):
    return CropPlan(model, 500, (24, 36)).run if maker is CropPlan else partial(crop_resize, size=(24, 36))


@pytest.fixture(params=[crop_resize, CropPlan], ids=["crop_resize", "CropPlan"])
def crop(request, gpu):
    return crop_with(request.param, upload(FRAME))


def test_calls_that_look_alike_are_launched_and_no_more(gpu, crop):
    kept = []

    def run(frame=(40, 60), shifts=(0, 0, 0), boxes=BOXES, **options):
        pixels = memory((frame[0], frame[1], 3), np.uint8, shifts[0])[:, :60]
        placed = memory(boxes.shape, boxes.dtype, shifts[1])
        arrays = OnGpu(pixels), OnGpu(placed), OnGpu(memory((len(boxes), 3, 24, 36), np.float32, shifts[2]))
        kept.append(arrays)  # so that all addresses differ
        long = looked_at(crop, *arrays[:2], out=arrays[2], **options)
        values = gpu.launches[-1].values
        assert (values[0], *values[4:6]) == tuple(array.pointer for array in arrays)
        return long

    assert run() and not run() and not run()
    first, *_, last = gpu.launches
    assert (first.kernel, first.grid, first.block) == (last.kernel, last.grid, last.block)
    assert first.values[6:] == last.values[6:]
    flips = np.zeros((2, 2), np.int32)
    for other in (
        {"shifts": (0, 0, 8)}, {"shifts": (2, 0, 0)}, {"shifts": (0, 4, 0)}, {"boxes": BOXES[:1]}, {"frame": (40, 64)},
        {"boxes": BOXES.astype(np.float32)}, {"frame": (41, 60)}, {"stream": 5}, {"flip": OnGpu(flips[0])},
        {"flip": OnGpu(flips[:, 0])}, {"count": OnGpu(np.array(1))}, {"count": OnGpu(np.array([1]))},
    ):  # fmt: skip
        assert run(**other) and not run(**other), other
    flips, counts = OnGpu(np.ones((2, 2), np.int32)[:, 0]), OnGpu(np.array([2]))
    assert run(count=counts, flip=flips) and not run(count=counts, flip=flips)  # in any order
    assert gpu.launches[-1].values[-15:-12] == (counts.pointer, flips.pointer, 8)


def test_calls_follow_the_stream_and_plans_wait_for_the_run_before(gpu, crop):
    frame, boxes, long = upload(FRAME), upload(BOXES), []
    runs = [(5, {}), (5, {}), (6, {}), (6, {}), (5, {}), (6, {"flip": [0, 1]}), (5, {})]
    for stream, options in runs:  # flips from the host take more than a launch
        long.append(looked_at(crop, frame, boxes, stream=stream, **options))
        assert gpu.launches[-1].stream == stream
    planned = not isinstance(crop, partial)
    assert long == [True, False, planned, False, planned, True, planned]
    assert gpu.waits == ([(5, 1), (6, 5), (5, 6), (6, 5), (5, 6)] if planned else [])


def test_boxes_that_are_copied_stay_in_the_order_of_their_stream(gpu, crop):
    """Many boxes go through memory on the GPU, which `crop_resize` has for each stream."""
    frame, boxes = upload(FRAME), np.tile(BOXES, (150, 1))
    long = [looked_at(crop, frame, boxes, stream=stream) for stream in (5, 5, 6, 6, 5, 5)]
    assert long == [True, False] * 3
    there = [made.values[4] for made in gpu.launches]
    assert [to for to, *_ in gpu.copies[-6:]] == there
    assert len(set(there)) == (2 if isinstance(crop, partial) else 1)


def test_calls_for_another_gpu_are_refused(gpu, crop):
    frame, boxes = upload(FRAME), upload(BOXES)
    crop(frame, boxes)
    gpu.device = 1
    for given in (boxes, BOXES):
        with pytest.raises(InputError, match="GPU 1 is current but this thread works with GPU 0"):
            crop(frame, given)
    gpu.device = 0
    assert len(gpu.launches) == 1 and not looked_at(crop, frame, boxes)


@pytest.mark.parametrize("stream", [5, 2])
@pytest.mark.parametrize("count", [2, 300])
def test_a_graph_takes_boxes_on_the_gpu_but_none_from_the_host(gpu, crop, stream, count):
    frame, boxes = upload(FRAME), np.tile(BOXES, (count // 2, 1))
    there = upload(boxes)
    for given in (there, boxes):
        crop(frame, given, stream=stream)
    gpu.captured.add(stream)
    assert not looked_at(crop, frame, there, stream=stream)
    with pytest.raises(InputError, match="graph is captured"):
        crop(frame, boxes, stream=stream)
    assert len(gpu.launches) == 3
    gpu.captured.clear()
    assert not looked_at(crop, frame, boxes, stream=stream)


@pytest.mark.parametrize("count", [2, 240, 242])
def test_boxes_from_the_host_are_checked_and_copied_at_every_call(gpu, crop, count):
    frame, boxes = upload(FRAME), np.tile(BOXES, (count // 2, 1)).astype(np.float64)
    crop(frame, boxes)
    del gpu.copies[:]
    boxes += 0.5
    given = boxes.astype(np.float32).tobytes()
    gpu.meanwhile["launch"] = lambda: boxes.fill(np.nan)  # as another thread may
    assert not looked_at(crop, frame, boxes)
    made = gpu.launches[-1]
    inside = count <= 240
    assert ([made.content[: 16 * count]] if inside else [copy[2] for copy in gpu.copies]) == [given]


@pytest.mark.parametrize("name, first", [("frame", 0), ("flip", 1 << 15), ("boxes", 1 << 16)])
def test_a_result_in_what_is_read_is_refused_at_every_call(gpu, crop, name, first):
    block = memory(1 << 17)
    boxes, flip = block[1 << 16 :][:32].view(np.int32).reshape(2, 4), block[1 << 15 :][:8].view(np.int32)
    given = {"frame": OnGpu(block[:7200].reshape(FRAME.shape)), "boxes": OnGpu(boxes), "flip": OnGpu(flip)}

    def run(place):
        crop(**given, out=OnGpu(block[place : place + RESULT.nbytes].view(np.float32).reshape(RESULT.shape)))

    run(1 << 13)
    with pytest.raises(InputError, match=f"out lies in the memory of {name}"):
        run(first)
    assert len(gpu.launches) == 1


@pytest.mark.parametrize("count", [2, 300])
def test_a_call_within_a_call_keeps_boxes_of_its_own(gpu, count):
    """As a signal's handler makes one, at any time."""
    frame, crop = upload(FRAME), partial(crop_resize, size=(24, 36))
    outer, inner = (np.tile(BOXES + shift, (count // 2, 1)) for shift in (0, 1))
    crop(frame, outer)
    gpu.meanwhile["device"] = lambda: crop(frame, inner)
    crop(frame, outer)
    found = [made.content[:32] for made in gpu.launches] if count == 2 else [c[2] for c in gpu.copies[1:]]
    assert found == [boxes.astype(np.float32).tobytes() for boxes in (outer, inner, outer)]


def test_boxes_are_never_copied_to_memory_that_was_given_back(gpu):
    """What holds that memory is forgotten before the last of the calls that use it."""
    frames = [upload(np.zeros((40 + number, 60, 3), np.uint8)) for number in range(MOST + 9)]
    out, boxes = upload(np.zeros((300, 3, 2, 2), np.float32)), np.tile(BOXES, (150, 1))
    for frame in (*frames, frames[MOST // 2]):
        long = looked_at(crop_resize, frame, boxes, (2, 2), out=out)
        assert gpu.copies[-1][0] not in gpu.freed
    assert not long


@pytest.mark.parametrize("why", ["read by the host", "of two libraries", "with a stream of their own"])
def test_calls_that_wait_are_looked_at_every_time(gpu, why):
    frame, boxes, outside = upload(FRAME), OnGpu(BOXES), "clip"
    if why == "read by the host":
        boxes, outside = upload(BOXES), "error"
    elif why == "with a stream of their own":
        frame, boxes = OnGpu(FRAME), OnGpu(BOXES, 7)
    plan = CropPlan(frame, 5, (24, 36), outside=outside)
    for crop in (plan.run, partial(crop_resize, size=(24, 36), outside=outside)):
        out, waits = OnGpu(RESULT) if outside == "clip" else None, len(gpu.waits)
        assert all(looked_at(crop, frame, boxes, out=out) for _ in range(3))
        assert gpu.waits[waits:] == [(1, 7)] * (3 if why == "with a stream of their own" else 0)


def test_what_the_driver_refuses_is_told_and_leaves_the_plan_free(gpu, crop):
    frame, many = upload(FRAME), np.tile(BOXES, (150, 1))
    for _ in range(2):
        for name, status in (("launch", 700), ("copy", 2)):
            gpu.statuses[name] = status
            with pytest.raises(RuntimeError, match=f"the CUDA driver answers error {status}"):
                crop(frame, many)
            gpu.statuses.clear()
        crop(frame, many)
    assert not looked_at(crop, frame, many)


@pytest.mark.parametrize("maker", [crop_resize, CropPlan])
def test_tensors_are_cropped_on_torchs_stream_of_the_moment(torch, maker):
    frame, boxes = (fake_torch.Tensor(array, "cuda:0") for array in (FRAME, BOXES))
    crop, long = crop_with(maker, frame), []
    for torch.handle in (7, 7, 8, 8):
        long.append(looked_at(crop, frame, boxes))
        assert torch.launches[-1].stream == torch.handle
    assert long == [True, False, maker is CropPlan, False]
    assert torch.used == [8] * (maker is CropPlan)  # whose memory torch would give to others too soon
    frame.requires_grad = True
    with pytest.raises(InputError, match="frame requires grad"):
        crop(frame, boxes)


def test_the_first_call_of_a_kind_is_not_captured(gpu):
    gpu.captured.add(5)
    with pytest.raises(InputError, match="reserves memory, which a graph can't capture"):
        crop_resize(OnGpu(FRAME), BOXES, 8, stream=5)


LARGER, FIXED, THREE = RNG.integers(0, 256, (41, 64, 3), np.uint8), FRAME + 1, np.array([1.0, 2, 3])
FIXED.flags.writeable = False
OTHERS = [{"frame": frame} for frame in (LARGER, LARGER[1:], LARGER[1:, :60], LARGER[:40, 4:], FIXED)]
OTHERS += [{"frame": frame} for frame in (FRAME.astype(np.uint16), FRAME / np.float32(3), FRAME[..., :1].copy())]
OTHERS += [{"boxes": BOXES.astype(dtype)} for dtype in ("i8", "f4", "f8")]
OTHERS += [{"boxes": boxes} for boxes in (np.repeat(BOXES, 2, 0)[::2], BOXES[:1], BOXES.tolist())]
OTHERS += [{"size": size} for size in (9, (8, 9), [8, 9], np.array([9, 8]), np.int64(9))]
OTHERS += [
    {"mean": 3}, {"mean": 3.0}, {"mean": [1, 2, 3]}, {"mean": (1, 2, 4)}, {"mean": THREE}, {"std": THREE}, {},
    {"scale": THREE}, {"dtype": "uint8"}, {"dtype": np.uint8}, {"dtype": "float16"}, {"layout": "NHWC"},
    {"edge": "image"}, {"antialias": True}, {"filter": "nearest"},
    BOXED, {"outside": "error"}, BOXED | {"pad_value": 5}, {"outside": "pad"}, {"outside": "pad", "pad_mode": "edge"},
]  # fmt: skip


def test_calls_alike_on_the_cpu_are_not_looked_at_again_and_others_are_right(monkeypatch):
    monkeypatch.setattr(api, "_thread", api._Memo())
    for again, other in product((False, True), OTHERS):
        call = {"frame": FRAME, "boxes": BOXES, "size": 8} | other
        assert looked_at(crop_resize, **call, device="cpu") != again, other
        found = crop_resize(**call, device="cpu")
        frame, boxes = call.pop("frame"), call.pop("boxes")
        right = CropPlan(frame, 2, device="cpu", **call).run(frame.copy(), boxes)
        assert np.array_equal(np.concatenate(found, None), np.concatenate(right, None)), other


def test_what_is_equal_but_of_another_kind_is_no_call_alike():
    call = {"antialias": True, "letterbox": False, "mean": 1.0, "size": 1, "std": 1, "device": "cpu"}
    crop_resize(FRAME, BOXES, **call)
    for name, value in (
        ("antialias", 1), ("letterbox", 0), ("mean", True), ("size", True), ("size", 1.0), ("std", [True] * 3),
    ):  # fmt: skip
        with pytest.raises(InputError, match=f"{name} must be"):
            crop_resize(FRAME, BOXES, **call | {name: value})


WRONG = {
    "lies outside": ("clip", (70, 0, 80, 9)), "reaches outside": ("error", (50, 0, 61, 9)),
    "reaches further": ("pad", (0, 0, 2**25, 9)), "has a side": ("pad", (-20000, 0, 9, 9)),
    "is empty": ("clip", (5, 5, 5, 9)), "is NaN, or infinite": ("pad", (0, np.nan, 9, 9)),
}  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("words", WRONG)
def test_boxes_are_refused_in_the_same_words_at_every_call(gpu, words, device):
    outside, box = WRONG[words]
    frame = FRAME if device == "cpu" else upload(FRAME)
    plan = CropPlan(frame, 2, 8, outside=outside, device=device)
    runs = partial(crop_resize, size=8, outside=outside, device=device), plan.run
    for run, dtype in product(runs, ("f4", "f8") if words == "is NaN, or infinite" else ("i4", "i8", "f4", "f8")):
        good, messages = BOXES.astype(dtype), set()
        wrong = good.copy()
        wrong[1] = box
        run(frame, good)
        for form in (wrong, wrong.tolist()):  # a call like the one before, and none
            with pytest.raises(InputError, match=rf"^box 1 = .* {words}") as error:
                run(frame, form)
            messages.add(str(error.value))
        assert len(messages) == 1 and not looked_at(run, frame, good)


@pytest.fixture(params=[crop_resize, CropPlan], ids=["crop_resize", "CropPlan"])
def crop_here(request):
    plan = CropPlan(FRAME, 2, 8, device="cpu")
    return plan.run if request.param is CropPlan else partial(crop_resize, size=8, device="cpu")


def test_a_result_that_became_read_only_is_refused(crop_here):
    out = np.empty((2, 3, 8, 8), np.float32)
    assert crop_here(FRAME, BOXES, out=out) is crop_here(FRAME, BOXES, out=out) is out
    out.flags.writeable = False
    with pytest.raises(InputError, match="out is read-only"):
        crop_here(FRAME, BOXES, out=out)


def test_the_newest_calls_are_remembered_by_their_thread_or_plan(crop_here):
    frames, box = np.zeros((MOST + 50, 5, 3), np.uint8), [[0, 0, 5, 1]]
    for height in (*range(1, len(frames)), MOST, 2):
        long = looked_at(crop_here, frames[:height], box)
    assert long and not looked_at(crop_here, frames[:MOST], box)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(looked_at, crop_here, frames[:MOST], box).result() == isinstance(crop_here, partial)


def test_what_a_call_was_given_is_nobodys_afterwards(crop_here):
    given = [FRAME.copy(), BOXES.copy(), np.empty((2, 3, 8, 8), np.float32)]
    alive = [weakref.ref(array) for array in given]
    for _ in range(2):
        crop_here(*given[:2], out=given[2])
    given.clear()
    assert all(array() is None for array in alive)
