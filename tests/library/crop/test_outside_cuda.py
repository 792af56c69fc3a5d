"""Boxes beyond the frame, float32 frames and any number of channels on a GPU: the reference's answers."""

from __future__ import annotations

import numpy as np
import pytest
from gpu import PAD_MODES, SETS, host, name_of, random_frame

from octopus import CropPlan, InputError, crop_resize
from octopus.backends.cuda import memory
from octopus.backends.cuda.device import current
from octopus_study.reference import crops as reference

pytestmark = pytest.mark.gpu

BOXES = np.array(
    [
        (-0.3, 4, 20, 30),
        (250.5, 150, 300.25, 240),
        (-900, -700, -800, -650),
        (-20, -30, 330, 260),
        (5, 7, 9, 10),
    ],
    np.float32,
)
INDEX = np.array([1, 0, 1, 1, 0])


def floats(channels=3):
    return np.random.default_rng(4).normal(40, 90, (2, 200, 300, channels)).astype(np.float32)


def bytes_of(channels=3):
    return np.stack([random_frame(200, 300, channels, seed=seed) for seed in range(2)])


def compare(frames, boxes, size, *, several=False, dtype="float32", limit=0.01, **options):
    """Crops and transform on the GPU, boxes from either side, against the reference."""
    channels = frames.shape[-1]
    frame, index = (frames, INDEX[: len(boxes)]) if several else (frames[0], None)
    pad = np.arange(channels) * 7.0
    call = {"mean": 3.0, "std": 2.0, "frame_index": index, **options}
    constant = options.get("outside") == "pad" and options.get("pad_mode", "constant") == "constant"
    if constant or options.get("letterbox"):
        call["pad_value"] = pad
    expected = reference.crop_resize(
        frame,
        boxes,
        size,
        np.full(channels, 3.0),
        np.full(channels, 2.0),
        pad_value=pad,
        frame_index=index,
        **options,
    )
    if dtype == "uint8":
        expected = expected.clip(0, 255)
    uploaded = memory.upload(frame)
    for given in (boxes, memory.upload(boxes)):
        result = crop_resize(uploaded, given, size, dtype=dtype, **call)
        crops, transform = result if options.get("letterbox") else (result, None)
        assert np.abs(host(crops).astype(np.float64) - expected).max() <= limit
        if transform is not None:
            cut = boxes if options.get("outside") == "pad" else reference.cut(boxes, frames[0])
            assert np.allclose(host(transform), reference.transforms(cut, size), rtol=1e-5, atol=1e-2)


@pytest.mark.parametrize("several", [False, True], ids=["one-frame", "frames"])
@pytest.mark.parametrize("mode", PAD_MODES)
@pytest.mark.parametrize("options", SETS, ids=name_of)
def test_pixels_beyond_the_frame_are_made(options, mode, several):
    compare(bytes_of(), BOXES, (40, 56), several=several, outside="pad", pad_mode=mode, **options)


@pytest.mark.parametrize("options", SETS, ids=name_of)
def test_boxes_from_either_side_are_cut_alike(options):
    compare(bytes_of(), BOXES[[0, 1, 3, 4]], (40, 56), **options)


@pytest.mark.parametrize("mode", PAD_MODES)
@pytest.mark.parametrize("antialias", [False, True])
def test_a_frame_of_one_pixel_goes_on_for_ever_too(mode, antialias):
    options = {"outside": "pad", "pad_mode": mode, "antialias": antialias, "edge": "image"}
    compare(bytes_of()[:, :1, :1].copy(), BOXES, (17, 9), **options)


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("options", [SETS[0], SETS[-1]], ids=name_of)
def test_frames_of_float32_are_taken_as_they_are(dtype, layout, options):
    limit = {"float32": 0.01, "float16": 0.2, "uint8": 0.51}[dtype]
    compare(floats(), BOXES[[0, 1, 3, 4]], (33, 47), dtype=dtype, limit=limit, layout=layout, **options)


@pytest.mark.parametrize("channels", [2, 5, 13, 64])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("options", [SETS[0], SETS[-1]], ids=name_of)
def test_any_number_of_channels(channels, layout, options):
    boxes = BOXES[[0, 1, 3, 4]]
    compare(bytes_of(channels), boxes, (33, 47), layout=layout, **options)
    compare(
        floats(channels),
        BOXES,
        (33, 47),
        several=True,
        outside="pad",
        pad_mode="reflect",
        layout=layout,
        **options,
    )


def test_channels_of_one_plan_do_not_become_those_of_another():
    frame = memory.upload(bytes_of(5)[0])
    plans = [CropPlan(frame, 9, (8, 8), mean=mean) for mean in (np.arange(5), 9.0)]
    found = [host(plan.run(frame, BOXES[3:])) for plan in plans]
    assert np.abs(found[0] - found[1] - (9 - np.arange(5))[:, None, None]).max() < 1e-3


@pytest.mark.parametrize("antialias", [False, True])
def test_boxes_that_cannot_be_made_fill_their_item(antialias):
    boxes = np.array(
        [(np.nan, 0, 3, 3), (5, 5, 5, 9), (0, 0, 16385, 3), (-(2.0**25), 0, 9, 9), (0, 0, np.inf, 9),
         (-900, -800, -700, -600)], np.float32,
    )  # fmt: skip
    options = {"outside": "pad", "pad_mode": "edge", "letterbox": True, "antialias": antialias}
    result = crop_resize(memory.upload(bytes_of()[0]), memory.upload(boxes), (20, 40), **options)
    for array in result:
        assert np.isnan(host(array)[:5]).all() and np.isfinite(host(array)[5]).all()


def test_boxes_on_the_gpu_are_read_back_to_be_refused():
    frame, out = memory.upload(bytes_of()[0]), memory.DeviceArray((2, 3, 8, 8), np.float32).fill_words(5)
    good, bad = np.array([[1, 2, 30, 40], [0, 0, 300, 200]]), np.array([[1, 2, 30, 40], [0, 0, 301, 200]])
    with pytest.raises(InputError, match=r"box 1 = \(0, 0, 301, 200\) reaches outside the frame of 300x200"):
        crop_resize(frame, memory.upload(bad), (8, 8), outside="error", out=out)
    assert (host(out) == 5).all()
    crop_resize(frame, memory.upload(good), (8, 8), outside="error", out=out)
    assert np.array_equal(host(out), host(crop_resize(frame, good, (8, 8))))


def test_boxes_are_not_read_back_into_a_graph():
    torch = pytest.importorskip("torch")
    frame = torch.from_numpy(bytes_of()[0]).cuda()
    boxes = torch.from_numpy(BOXES[4:]).cuda()
    plan = CropPlan(frame, 1, (8, 8), outside="error")
    out = plan.run(frame, boxes)
    with (
        torch.cuda.graph(torch.cuda.CUDAGraph()),
        pytest.raises(InputError, match='outside="error" reads the boxes'),
    ):
        out.zero_()  # a graph must not be empty
        plan.run(frame, boxes)


def test_a_padding_plan_replays_in_a_graph():
    torch = pytest.importorskip("torch")
    frame, boxes = torch.from_numpy(bytes_of()[0]).cuda(), torch.from_numpy(BOXES).cuda()
    plan = CropPlan(frame, len(BOXES), (32, 32), outside="pad", pad_mode="reflect")
    out = plan.run(frame, boxes)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plan.run(frame, boxes, out=out)
    boxes.copy_(boxes.flip(0).clone())
    out.fill_(torch.nan)
    graph.replay()
    torch.cuda.synchronize()
    right = reference.crop_resize(
        bytes_of()[0], BOXES[::-1], (32, 32), np.zeros(3), np.ones(3), outside="pad", pad_mode="reflect"
    )
    assert np.abs(host(out) - right).max() < 0.01
    current().sync()
