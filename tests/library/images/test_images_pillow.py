"""The resizing of images against the libraries whose answers it promises: Pillow and torchvision."""

import numpy as np
import pytest
from images_case import noise, run, spec_of

from octopus import RaggedBatch, images
from octopus.images.cpu import CpuEngine
from octopus_study.reference import images as reference

FILTERS = ["bilinear", "bicubic", "lanczos", "nearest"]
MODES = {1: "L", 3: "RGB", 4: "CMYK"}  # four channels of RGBA would be weighed by the last one
SIDES = [
    ((1, 1), (1, 1)), ((1, 1), (9, 7)), ((1, 50), (20, 1)), ((50, 1), (1, 20)), ((3, 2), (100, 1)),
    ((17, 33), (17, 33)), ((17, 33), (17, 5)), ((17, 33), (5, 33)), ((2000, 3), (2, 40)), ((2, 3000), (50, 3)),
    ((5, 1500), (1, 1)), ((40, 60), (400, 2)), ((64, 64), (16, 128)), ((30, 30), (9, 10)), ((33, 9), (11, 27)),
]  # fmt: skip


def pillow(image, size, filter, rounding="pillow12"):
    """The installed Pillow's answer, or that of an order of passes: since version 13 a call may begin with either."""
    module = pytest.importorskip("PIL.Image")
    kind, steps = getattr(module.Resampling, filter.upper()), [size[::-1]]
    if rounding == "pillow12":
        steps = [(size[1], image.shape[0]), *steps]
    elif int(pytest.importorskip("PIL").__version__.split(".")[0]) < 13:
        pytest.skip("Pillow is older than what rounding='pillow' means")
    picture = module.fromarray(image.squeeze(2) if image.shape[2] == 1 else image, MODES[image.shape[2]])
    for step in steps:
        picture = picture.resize(step, kind)
    return np.asarray(picture).reshape(*size, -1)


def random_sides(rng, count):
    """Pairs of sizes from 1 to 180 pixels, small ones as frequent as large ones."""
    sides = np.exp(rng.uniform(0, np.log(181), (count, 2, 2))).astype(int)
    return [(tuple(before), tuple(after)) for before, after in sides.tolist()]


def tall_sides(rng, count):
    """Pairs of sizes on both sides of the limit at which Pillow's vertical pass comes first: both passes shrink."""
    for _ in range(count):
        height, width, lost = (int(rng.integers(1, most)) for most in (60, 60, 90))
        yield (height + 2 * lost + int(rng.integers(-1, 3)), width + lost), (height, width)


@pytest.mark.parametrize(("rounding", "channels"), [("pillow", 3), ("pillow", 1), ("pillow12", 4), ("pillow12", 3)])
@pytest.mark.parametrize("filter", FILTERS)
def test_the_installed_pillow_bit_for_bit(filter, channels, rounding):
    """By functions and plans, of images with channels last and first, and of a batch of them."""
    rng = np.random.default_rng(channels)
    sides = SIDES + random_sides(rng, 120) + list(tall_sides(rng, 60))
    given, sizes = [noise(rng, *before, channels) for before, _ in sides], [after for _, after in sides]
    options = {"filter": filter, "rounding": rounding, "dtype": "uint8", "layout": "NHWC"}
    made = images.resize_each(given, sizes, source="HWC", **options)
    right = [pillow(image, size, filter, rounding) for image, size in zip(given, sizes, strict=True)]
    assert [pair for pair, *both in zip(sides, made, right, strict=True) if not np.array_equal(*both)] == []
    planes = [np.ascontiguousarray(image.transpose(2, 0, 1)) for image in given]
    pixels = int(np.prod(sizes, axis=1).sum())
    plan = images.ImagePlan("resize_each", planes, len(planes), result_pixels=pixels, source="CHW", **options)
    assert np.array_equal(plan.run(planes, sizes).values, made.values)
    answer = images.resize(RaggedBatch.from_list(given), (9, 31), source="HWC", **options)
    assert np.array_equal(answer, [pillow(image, (9, 31), filter, rounding) for image in given])


@pytest.mark.parametrize("rounding", ["pillow", "pillow12"])
@pytest.mark.parametrize("filter", FILTERS)
def test_reference_is_pillow(filter, rounding):
    rng = np.random.default_rng(5)
    for before, after in SIDES + random_sides(rng, 20) + list(tall_sides(rng, 20)):
        image = noise(rng, *before)
        expected = pillow(image, after, filter, rounding)
        assert np.array_equal(reference.resized(image, after, filter, rounding=rounding), expected), (before, after)


def torch_resized(image, size, filter, antialias):
    """What torchvision makes of a tensor of floats; (H, W, C)."""
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchvision.transforms.v2.functional")
    mode = pytest.importorskip("torchvision.transforms").InterpolationMode(filter)
    tensor = torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1), np.float32))
    return functional.resize(tensor, list(size), interpolation=mode, antialias=antialias).numpy().transpose(1, 2, 0)


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("filter", ["bilinear", "bicubic"])
def test_torchvision(filter, antialias):
    rng = np.random.default_rng(9)
    exact, whole = (
        CpuEngine(spec_of(filter=filter, antialias=antialias, layout="NHWC", rounding=rounding))
        for rounding in ("none", "uint8")
    )
    for before, (height, width) in SIDES + random_sides(rng, 60):
        image, after = noise(rng, *before), (height, max(width, 2))  # one column wide torch 2.14 repeats the first row
        expected = torch_resized(image, after, filter, antialias)
        result = run([image], [after], exact.spec, engine=exact).reshape(expected.shape)
        assert np.abs(result - expected).max() <= 1e-3 * 255, (before, after)
        rounded = run([image], [after], whole.spec, engine=whole).reshape(expected.shape)
        assert np.abs(rounded - expected.round().clip(0, 255)).max() <= 1, (before, after)
