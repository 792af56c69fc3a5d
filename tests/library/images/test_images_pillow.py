"""The resizing of images against the libraries whose answers it promises: Pillow and torchvision."""

from __future__ import annotations

import numpy as np
import pytest
from images_case import noise, run, spec_of

from octopus.images.cpu import CpuEngine
from octopus_study.reference import images as reference

FILTERS = ["bilinear", "bicubic", "lanczos", "nearest"]
MODES = {1: "L", 3: "RGB", 4: "CMYK"}  # four channels of RGBA would be weighed by the last one
SIDES = [
    ((1, 1), (1, 1)), ((1, 1), (9, 7)), ((1, 50), (20, 1)), ((50, 1), (1, 20)), ((3, 2), (100, 1)),
    ((17, 33), (17, 33)), ((17, 33), (17, 5)), ((17, 33), (5, 33)), ((2000, 3), (2, 40)), ((2, 3000), (50, 3)),
    ((5, 1500), (1, 1)), ((40, 60), (400, 2)), ((64, 64), (16, 128)), ((30, 30), (9, 10)), ((33, 9), (11, 27)),
]  # fmt: skip


def pillow(image, size, filter):
    """Pillow's answer, the horizontal pass first: since version 13 a single call may begin with the other one."""
    module = pytest.importorskip("PIL.Image")
    kind = getattr(module.Resampling, filter.upper())
    (height, width), before = size, image.shape[0]
    picture = module.fromarray(image.squeeze(2) if image.shape[2] == 1 else image, MODES[image.shape[2]])
    return np.asarray(picture.resize((width, before), kind).resize((width, height), kind)).reshape(*size, -1)


def random_sides(rng, count):
    """Pairs of sizes from 1 to 180 pixels, small ones as frequent as large ones."""
    sides = np.exp(rng.uniform(0, np.log(181), (count, 2, 2))).astype(int)
    return [(tuple(before), tuple(after)) for before, after in sides.tolist()]


@pytest.mark.parametrize("filter", FILTERS)
def test_pillow_bit_for_bit(filter):
    rng = np.random.default_rng(FILTERS.index(filter))
    sides = SIDES + random_sides(rng, 500)
    images = [noise(rng, *before) for before, _ in sides]
    spec = spec_of(filter=filter, rounding="pillow", dtype="uint8", layout="NHWC")
    flat = run(images, [after for _, after in sides], spec)
    wrong, at = [], 0
    for image, (_, after) in zip(images, sides, strict=True):
        expected = pillow(image, after, filter)
        if not np.array_equal(flat[at : at + expected.size], expected.ravel()):
            wrong.append((image.shape, after))
        at += expected.size
    assert not wrong


@pytest.mark.parametrize("filter", FILTERS)
def test_reference_is_pillow(filter):
    rng = np.random.default_rng(5)
    for before, after in SIDES + random_sides(rng, 40):
        image = noise(rng, *before)
        expected = pillow(image, after, filter)
        assert np.array_equal(reference.resized(image, after, filter, rounding="pillow"), expected), (before, after)


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
        image, after = (
            noise(rng, *before),
            (height, max(width, 2)),
        )  # one column wide torch 2.14 repeats the first row
        expected = torch_resized(image, after, filter, antialias)
        result = run([image], [after], exact.spec, engine=exact).reshape(expected.shape)
        assert np.abs(result - expected).max() <= 1e-3 * 255, (before, after)
        rounded = run([image], [after], whole.spec, engine=whole).reshape(expected.shape)
        assert np.abs(rounded - expected.round().clip(0, 255)).max() <= 1, (before, after)
