"""The answers lie as near to those of other libraries as the table of ``docs/parity.md`` says."""

import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from octopus import NV12, P010, crop_resize
from octopus_study.baselines.native_methods import to_nv12
from octopus_study.reference import crops as reference

cv2 = pytest.importorskip("cv2")
Image = pytest.importorskip("PIL.Image")
PAGE = Path(__file__).parents[2] / "docs" / "parity.md"
TIES = 0.01  # the share of samples that may lie between two pixels
MATRIX, RANGE = "bt601", "limited"  # what OpenCV's conversion takes
SIZE = HEIGHT, WIDTH = 48, 56
GREY = (114,) * 4  # Ultralytics' padding
GENERATOR = np.random.default_rng(3)
FRAME = GENERATOR.integers(0, 256, (240, 320, 3), np.uint8)
CORNERS = np.sort(GENERATOR.integers(0, (240, 320), (60, 2, 2)), axis=1)  # (N, first and last, y and x)
BOXES = np.concatenate([CORNERS[:, 0, ::-1], CORNERS[:, 1, ::-1] + 1], axis=1).astype(np.int32)
CODED = to_nv12(FRAME, RANGE)
PLANES = CODED[:240], CODED[240:]
# The same in ten bits, of which the last two are a pattern that no eight bits have.
DEEP = tuple(plane.astype(np.uint16) << 8 | np.arange(320, dtype=np.uint16) % 4 << 6 for plane in PLANES)


def rotated():
    """Return an affine map for each box: turned about its middle, by angles all around; (N, 2, 3)."""
    angles = 2 * np.pi * np.arange(len(BOXES)) / len(BOXES)
    middle, sides = (BOXES[:, :2] + BOXES[:, 2:]) / 2 - 0.5, BOXES[:, 2:] - BOXES[:, :2]
    turn = np.array([[np.cos(angles), -np.sin(angles)], [np.sin(angles), np.cos(angles)]]).transpose(2, 0, 1)
    linear = turn * (sides / (WIDTH, HEIGHT))[:, None]
    shift = middle - linear @ np.array([(WIDTH - 1) / 2, (HEIGHT - 1) / 2])
    return np.concatenate([linear, shift[:, :, None]], axis=2).astype(np.float32)


MAPS = rotated()


def each(resize, dtype=np.float32, frame=FRAME):
    """Return what `resize` makes of every crop, in levels, (N, height, width, 3)."""
    crops = (np.ascontiguousarray(frame[y1:y2, x1:x2].astype(dtype)) for x1, y1, x2, y2 in BOXES.tolist())
    return np.stack([np.asarray(resize(crop), np.float64) for crop in crops])


def opencv(interpolation=cv2.INTER_LINEAR, dtype=np.float32, frame=FRAME):
    return each(lambda crop: cv2.resize(crop, (WIDTH, HEIGHT), interpolation=interpolation), dtype, frame)


def opencv_letterbox(crop):
    """Resize and pad by Ultralytics' sizes, from exact ratios: of a rounded one a tie could fall to either side."""
    ratio = min(Fraction(HEIGHT, crop.shape[0]), Fraction(WIDTH, crop.shape[1]))
    height, width = (max(round(side * ratio), 1) for side in crop.shape[:2])
    above, before = (HEIGHT - height) // 2, (WIDTH - width) // 2
    ends = above, HEIGHT - height - above, before, WIDTH - width - before
    return cv2.copyMakeBorder(cv2.resize(crop, (width, height)), *ends, cv2.BORDER_CONSTANT, value=GREY)


def opencv_warped():
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    frame, border = FRAME.astype(np.float32), cv2.BORDER_REPLICATE
    maps = MAPS.astype(np.float64)
    return np.stack([cv2.warpAffine(frame, one, (WIDTH, HEIGHT), flags=flags, borderMode=border) for one in maps])


def pil(plane, filter=Image.Resampling.BILINEAR):
    return Image.fromarray(plane).resize((WIDTH, HEIGHT), filter)


def pil_exact(crop):
    return np.stack([pil(np.ascontiguousarray(crop[..., channel])) for channel in range(3)], axis=-1)


def torch_each(resize):
    """Return what a function of PyTorch makes of every crop."""
    torch = pytest.importorskip("torch")

    def resized(crop):
        return resize(torch.from_numpy(crop).permute(2, 0, 1)[None])[0].permute(1, 2, 0).float()

    return each(resized)


def interpolate(mode="bilinear", *, dtype="float32", **options):
    torch = pytest.importorskip("torch")
    if mode != "nearest-exact":
        options["align_corners"] = False
    function = torch.nn.functional.interpolate
    return torch_each(lambda crop: function(crop, SIZE, mode=mode, **options).to(getattr(torch, dtype)))


def torchvision_antialias():
    functional = pytest.importorskip("torchvision.transforms.v2.functional")
    return torch_each(lambda crop: functional.resize(crop, list(SIZE), antialias=True))


def roi_align():
    torch, ops = pytest.importorskip("torch"), pytest.importorskip("torchvision.ops")
    frame = torch.from_numpy(FRAME).permute(2, 0, 1).float()[None]
    boxes = [torch.from_numpy(BOXES).float()]
    return ops.roi_align(frame, boxes, SIZE, 1.0, 1, aligned=True).permute(0, 2, 3, 1).numpy()


def cvcuda(dtype):
    library, torch = pytest.importorskip("cvcuda"), pytest.importorskip("torch")

    def resized(crop):
        tensor = library.as_tensor(torch.from_numpy(crop).cuda(), "HWC")
        made = library.resize(tensor, (*SIZE, 3), library.Interp.LINEAR)
        return torch.as_tensor(made.cuda(), device="cuda").cpu()

    return each(resized, dtype)


def ffmpeg():
    """Return the crops of a frame that swscale converted pixel by pixel, each with the chroma of its 2 x 2."""
    av, reformatter = pytest.importorskip("av"), pytest.importorskip("av.video.reformatter")
    kind = reformatter.Interpolation
    flags = kind.POINT | kind.FULL_CHR_H_INT | kind.ACCURATE_RND
    ends = {"src_colorspace": "ITU601", "dst_colorspace": "ITU601", "src_color_range": "MPEG"}
    coded = av.VideoFrame.from_ndarray(CODED, format="nv12")
    ends |= {"format": "rgb24", "dst_color_range": "JPEG"}
    frame = reformatter.VideoReformatter().reformat(coded, interpolation=flags, **ends)
    return opencv(frame=frame.to_ndarray())


def definition(planes):
    """Return crops of the frame that is converted whole, clamped and not rounded, in float64."""
    frame = reference.rgb_of_video(*planes, MATRIX, RANGE)
    return reference.crop_resize(frame, BOXES, SIZE, np.zeros(3), np.ones(3), "NHWC")


# By the options of the page and what stands there as the same.
OTHERS = {
    ("the defaults", "OpenCV: `resize` of the float32 crop"): opencv,
    ("the defaults", "PyTorch: `interpolate` of the float32 crop"): interpolate,
    ("the defaults", "CV-CUDA: `resize` of the float32 crop"): lambda: cvcuda(np.float32),
    ('edge="image"', "torchvision: `roi_align`, aligned, one sample"): roi_align,
    ('dtype="uint8"', "OpenCV: `resize` of the uint8 crop"): lambda: opencv(dtype=np.uint8),
    ('dtype="uint8"', "CV-CUDA: `resize` of the uint8 crop"): lambda: cvcuda(np.uint8),
    ('dtype="bfloat16"', "PyTorch: `interpolate` of the float32 crop, rounded"): lambda: interpolate(dtype="bfloat16"),
    ("antialias=True", "PIL: `resize` of each channel in float32"): lambda: each(pil_exact),
    ("antialias=True", "PyTorch: `interpolate` with `antialias=True`"): lambda: interpolate(antialias=True),
    ("antialias=True", "torchvision: `resize` with `antialias=True`"): torchvision_antialias,
    ('antialias=True, dtype="uint8"', "PIL: `resize` in 8 bits"): lambda: each(pil, np.uint8),
    ("letterbox=True", "OpenCV: `resize` and `copyMakeBorder`, sizes as of Ultralytics' `LetterBox`"):
        lambda: each(opencv_letterbox),
    ('filter="nearest"', "OpenCV: `INTER_NEAREST_EXACT`"): lambda: opencv(cv2.INTER_NEAREST_EXACT),
    ('filter="nearest"', "PyTorch: `nearest-exact`"): lambda: interpolate("nearest-exact"),
    ('filter="nearest"', "PIL: `NEAREST`"): lambda: each(lambda crop: pil(crop, Image.Resampling.NEAREST), np.uint8),
    ('filter="bicubic"', "OpenCV: `INTER_CUBIC` of the float32 crop"): lambda: opencv(cv2.INTER_CUBIC),
    ('filter="bicubic"', "PyTorch: bicubic `interpolate` of the float32 crop"): lambda: interpolate("bicubic"),
    ("affine maps as the boxes", "OpenCV: `warpAffine` with `WARP_INVERSE_MAP`"): opencv_warped,
    ("affine maps as the boxes", "float64: the definition"):
        lambda: reference.warp(FRAME, MAPS, SIZE, np.zeros(3), np.ones(3), "NHWC"),
    ("NV12 as the frame", "OpenCV: `cvtColor`, then `resize`"):
        lambda: opencv(frame=cv2.cvtColor(CODED, cv2.COLOR_YUV2RGB_NV12)),
    ("NV12 as the frame", "FFmpeg: `swscale`, then `resize`"): ffmpeg,
    ("NV12 as the frame", "float64: the definition"): lambda: definition(PLANES),
    ("P010 as the frame", "float64: the definition"): lambda: definition(DEEP),
}  # fmt: skip
# What isn't an option; everything else of the first column is.
INPUTS = {
    "the defaults": (FRAME, BOXES),
    "affine maps as the boxes": (FRAME, MAPS),
    "NV12 as the frame": (NV12(*PLANES, matrix=MATRIX, range=RANGE), BOXES),
    "P010 as the frame": (P010(*DEEP, matrix=MATRIX, range=RANGE), BOXES),
}


def table():
    """Return the largest difference by options and the same elsewhere, as the page prints them."""
    lines = re.findall(r"^\| (.*) \|$", PAGE.read_text("utf-8"), re.M)[2:]
    rows = [line.split(" | ") for line in lines]
    return {(options.replace("`", ""), same): limit for options, same, limit, _ in rows}


def octopus(options, device):
    """Return the crops of Octopus in levels, (N, height, width, 3)."""
    frame, boxes = INPUTS.get(options, (FRAME, BOXES))
    named = {} if options in INPUTS else eval(f"dict({options})")
    small = named.get("dtype") == "bfloat16"  # which NumPy doesn't have: its bits
    out = np.empty((len(BOXES), *SIZE, 3), np.uint16) if small else None
    made = crop_resize(frame, boxes, SIZE, layout="NHWC", device=device, out=out, **named)
    crops = made[0] if isinstance(made, tuple) else made
    return (crops.astype(np.uint32) << 16).view(np.float32) if small else np.asarray(crops, np.float64)


def test_every_row_of_the_page_is_held():
    assert set(table()) == set(OTHERS)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize(("options", "same"), table())
def test_the_largest_difference_is_that_of_the_page(options, same, device):
    if same.startswith("CV-CUDA") and device == "cpu":
        pytest.skip("CV-CUDA works on NVIDIA GPUs alone")
    difference = np.abs(octopus(options, device) - OTHERS[options, same]())
    assert np.isfinite(difference).all()
    limit, _, ties = table()[options, same].partition(", ")
    if ties:
        assert (difference > float(limit)).mean() <= TIES
    else:
        assert difference.max() <= float(limit)
        assert difference.mean() <= float(limit) / 2
