"""Video, orders of channels, and what items have of their own, on a GPU: the CPU's answers, without a wait."""

from __future__ import annotations

import numpy as np
import pytest
from crop_case import Exported
from gpu import DTYPES, LAYOUTS, host, random_frame, sanitize

from octopus import NV12, P010, CropPlan, InputError, crop_resize

pytestmark = pytest.mark.gpu

RANDOM = np.random.default_rng(3)
CORNERS = RANDOM.uniform(0, 150, (40, 2))
BOXES = np.concatenate([CORNERS, CORNERS + RANDOM.uniform(3, 150, (40, 2))], axis=1).astype(np.float32)
FLIPS = RANDOM.integers(0, 4, 40)
MEAN, STD = (
    RANDOM.uniform(50, 150, (40, 3)).astype(np.float32),
    RANDOM.uniform(20, 60, (40, 3)).astype(np.float32),
)
OPTIONS = [{}, {"letterbox": True}, {"antialias": True}, {"edge": "image", "outside": "pad"}]
LIMITS = {"float32": 0.02, "float16": 0.13, "uint8": 1}


def video(kind, first=0):
    """Two planes with a pitch of their own; from column `first` on."""
    dtype = np.uint8 if kind is NV12 else np.uint16
    luma = random_frame(240, 340, 1, dtype, 1)[..., 0][:, first : first + 320]
    chroma = random_frame(120, 352, 1, dtype, 2)[..., 0][:, first : first + 320]
    return luma, chroma


def frames_of(kind, torch, move=True):
    """The same frame for the CPU and for the GPU, and what to call it."""
    if kind in (NV12, P010):
        planes, given = video(kind), {"matrix": "bt709", "range": "limited"}
        there = [torch.from_numpy(plane).cuda() for plane in planes] if move else planes
        return kind(*planes, **given), kind(*there, **given), {}
    frame = random_frame(240, 320, len(kind))
    return frame, torch.from_numpy(frame).cuda() if move else frame, {"channels": kind}


def crops_of(result):
    return result[0] if isinstance(result, tuple) else result


def wrong(found, expected, dtype):
    """What is behind a difference that no rounding explains, or nothing."""
    difference = np.abs(host(found).astype(np.float64) - expected.astype(np.float64))
    # A tie may be rounded either way, and weights in fixed point are 1 / 65536 off, but seldom seen.
    return difference.max() > LIMITS[dtype] or (difference > LIMITS["float32"]).mean() > 0.01


@pytest.mark.parametrize(
    "kind", [NV12, P010, "BGR", "RGBA", "BGRA"], ids=lambda kind: getattr(kind, "__name__", kind)
)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_frames_of_every_kind_equal_the_cpu(kind, layout, dtype):
    torch = pytest.importorskip("torch")
    frame, there, named = frames_of(kind, torch)
    boxes = torch.from_numpy(BOXES).cuda()
    for width, given, options in [
        (47, BOXES, {}),
        (48, BOXES, {}),
        *[(48, boxes, options) for options in OPTIONS],
    ]:
        call = {"dtype": dtype, "layout": layout, **named, **options}
        call |= {} if dtype == "uint8" else {"mean": (100, 110, 120), "std": (50, 60, 70)}
        expected = crops_of(crop_resize(frame, BOXES, (33, width), device="cpu", **call))
        found = crops_of(crop_resize(there, given, (33, width), **call))
        assert not wrong(found, expected, dtype), (options, width)


class Interface:
    """A plane that offers `__cuda_array_interface__` and nothing else."""

    def __init__(self, plane):
        self._plane = plane

    @property
    def __cuda_array_interface__(self):
        return self._plane.__cuda_array_interface__


@pytest.mark.parametrize("offered", [Exported, Interface])
@pytest.mark.parametrize("kind", [NV12, P010])
def test_planes_that_offer_one_protocol_alone_equal_the_cpu(kind, offered):
    """In the shapes of a decoder's planes, luma (H, W, 1) and chroma (H/2, W/2, 2), each at its pitch."""
    torch = pytest.importorskip("torch")
    frame, there, _ = frames_of(kind, torch)
    wide = torch.zeros(240, 352, dtype=there.y.dtype, device="cuda")
    luma, chroma = wide[:, :320], wide.clone()[:120, :320]
    luma[...], chroma[...] = there.y, there.uv
    planes = offered(luma[..., None]), offered(chroma.view(120, 160, 2))
    exported = kind(*planes, matrix="bt709", range="limited")
    expected = crop_resize(frame, BOXES, 48, device="cpu")
    assert not wrong(crop_resize(exported, BOXES, 48), expected, "float32")


@pytest.mark.parametrize("kind", [NV12, P010, "BGRA"], ids=lambda kind: getattr(kind, "__name__", kind))
def test_frames_from_the_host_equal_the_cpu(kind):
    torch = pytest.importorskip("torch")
    frame, there, named = frames_of(kind, torch, move=False)
    expected = crop_resize(frame, BOXES, 48, device="cpu", **named)
    assert not wrong(crop_resize(there, BOXES, 48, device="cuda", **named), expected, "float32")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["RGB", NV12], ids=["RGB", "NV12"])
def test_flips_and_means_of_items_equal_the_cpu(kind, layout, dtype):
    torch = pytest.importorskip("torch")
    frame, there, named = frames_of(kind, torch)
    std = STD * (0.5 if dtype == "uint8" else 1)
    on_gpu = [torch.from_numpy(values).cuda() for values in (BOXES, FLIPS, MEAN, std)]
    for options in OPTIONS:
        call = {"dtype": dtype, "layout": layout, **named, **options}
        expected = crops_of(
            crop_resize(frame, BOXES, (33, 48), flip=FLIPS, mean=MEAN, std=std, device="cpu", **call)
        )
        for boxes, flip, mean, deviation in (
            on_gpu,
            (BOXES, FLIPS, MEAN, std),
            (on_gpu[0], FLIPS, MEAN, std),
        ):
            found = crop_resize(there, boxes, (33, 48), flip=flip, mean=mean, std=deviation, **call)
            assert not wrong(crops_of(found), expected, dtype), options


def test_the_way_back_from_a_flipped_item_is_the_cpus():
    torch = pytest.importorskip("torch")
    frame = random_frame(240, 320)
    _, expected = crop_resize(frame, BOXES, (40, 56), letterbox=True, flip=FLIPS, device="cpu")
    _, found = crop_resize(torch.from_numpy(frame).cuda(), BOXES, (40, 56), letterbox=True, flip=FLIPS)
    assert np.allclose(host(found), expected, rtol=1e-5, atol=1e-3)


def test_a_graph_makes_as_many_items_as_the_detector_counted():
    """Boxes, count and flips change between replays, where nothing but the GPU reads them."""
    torch = pytest.importorskip("torch")
    frame = torch.from_numpy(random_frame(240, 320)).cuda()
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
            boxes.copy_(torch.from_numpy(np.roll(BOXES, made, axis=0)))
            flips.copy_(torch.from_numpy(np.roll(FLIPS, made).astype(np.uint8)))
            count.fill_(made)
            graph.replay()
            expected = crop_resize(frame, np.roll(BOXES, made, axis=0), 32, flip=np.roll(FLIPS, made))
            assert torch.equal(crops[:made], expected[:made]), dtype
            assert (crops[made:] == 7).all()


@pytest.mark.parametrize("frame", ["pad", "antialias", "video-antialias", "five", "map"])
def test_every_kernel_counts(frame):
    torch = pytest.importorskip("torch")
    pixels = torch.from_numpy(random_frame(240, 320, 5 if frame == "five" else 3)).cuda()
    if frame == "video-antialias":
        pixels = frames_of(NV12, torch)[1]
    options = {"pad": {"outside": "pad"}, "five": {}, "map": {}}.get(frame, {"antialias": True})
    boxes = torch.from_numpy(BOXES).cuda()
    if frame == "map":
        boxes = torch.tensor([[0.5, 0.1, 20], [-0.1, 0.5, 30]], device="cuda").repeat(40, 1, 1)
    out = torch.full((40, 5 if frame == "five" else 3, 16, 16), 7.0, device="cuda")
    expected = crop_resize(pixels, boxes, 16, **options)
    crop_resize(pixels, boxes, 16, out=out, count=torch.tensor([9], device="cuda"), **options)
    assert torch.equal(out[:9], expected[:9]) and (out[9:] == 7).all()


def test_what_lies_on_the_wrong_side_is_named():
    torch = pytest.importorskip("torch")
    frame = torch.from_numpy(random_frame(240, 320)).cuda()
    there = torch.from_numpy(FLIPS).cuda()
    with pytest.raises(InputError, match="flip is on the GPU but the boxes are on the host"):
        crop_resize(frame, BOXES, 8, flip=there)
    with pytest.raises(InputError, match="count is on the GPU but the boxes are on the host"):
        crop_resize(frame, BOXES, 8, count=there[0])
    with pytest.raises(InputError, match=r"mean .*float32"):
        crop_resize(frame, torch.from_numpy(BOXES).cuda(), 8, mean=torch.from_numpy(MEAN).cuda().double(),
                    std=torch.from_numpy(STD).cuda())  # fmt: skip


SANITIZED = """
import numpy as np
from octopus import NV12, crop_resize
rng = np.random.default_rng(0)
planes, frame = rng.integers(0, 256, (300, 300), np.uint8), rng.integers(0, 256, (200, 300, 4), np.uint8)
video = NV12(planes[:200], planes[200:], matrix="bt601", range="full")
boxes = np.array([(0, 0, 1, 1), (299, 199, 300, 200), (0, 0, 300, 200), (5, 7, 9, 10), (280, 0, 300, 200)])
items = {"flip": [0, 1, 2, 3, 1], "count": 5, "device": "cuda"}
for layout in ("NCHW", "NHWC"):
    crop_resize(video, boxes, (33, 300), layout=layout, **items)
    for size in ((33, 300), (7, 8)):
        crop_resize(frame, boxes, size, layout=layout, channels="BGRA", antialias=True, **items)
        crop_resize(np.ascontiguousarray(frame[..., :3]), boxes, size, layout=layout, antialias=True, **items)
    crop_resize(frame, boxes, (33, 300), layout=layout, dtype="uint8", channels="BGRA", **items)
crop_resize(video, boxes, (33, 30), filter="bicubic", edge="image", **items)
crop_resize(frame, np.tile([[3, 0.2, -20], [-0.1, 4, -9]], (5, 1, 1)), (33, 70), **items)
"""


@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_compute_sanitizer_finds_nothing(tool, tmp_path):
    sanitize(tool, SANITIZED, tmp_path)
