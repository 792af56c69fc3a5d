"""The answers are those of the image processors of transformers, in values, grids and masks.

The processors are made of their classes, so that nothing is fetched. On a GPU they resize in float and round once, as
`rounding="uint8"` does; here torchvision is made to do so on the CPU, where it else resizes in fixed point, as
`rounding="torch"` does. What lies halfway between two levels may be rounded either way where it is rounded once.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from octopus import images

torch = pytest.importorskip("torch")
functional = pytest.importorskip("torchvision.transforms.v2.functional")
transformers = pytest.importorskip("transformers")

REAL = functional.resize
CLIP = {"mean": [0.48145466, 0.4578275, 0.40821073], "std": [0.26862954, 0.26130258, 0.27577711]}
IMAGENET = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
HALF = {"mean": [0.5] * 3, "std": [0.5] * 3}
LEVEL = 1.01 / 255  # one level of uint8, before `std`
LEVELS = {"uint8": 1, "torch": 0}  # by which a value may be off, for each rounding
UNEQUAL = 0.01  # share of values that may be off
LAST_BITS = 2e-6  # of what was normalised by sums in another order
QWEN3 = {"patch_size": 16, "size": {"shortest_edge": 65536, "longest_edge": 16777216}, "image_mean": HALF["mean"],
         "image_std": HALF["std"]}  # fmt: skip
SIDES = [(97, 143), (300, 201), (56, 56), (33, 640), (700, 380), (30, 41)]


def pictures(sides=SIDES):
    generator = np.random.default_rng(3)
    smooth = [generator.integers(0, 256, (3, h // 3 + 2, w // 3 + 2), np.uint8) for h, w in sides]
    return [
        torch.from_numpy(np.ascontiguousarray(one.repeat(3, 1).repeat(3, 2)[:, :h, :w]))
        for one, (h, w) in zip(smooth, sides, strict=True)
    ]


def in_float(image, size, *, interpolation, antialias):
    """`resize` as torchvision does it on a GPU."""
    return (
        REAL(image.float(), size, interpolation=interpolation, antialias=antialias)
        .round()
        .clamp(0, 255)
        .to(image.dtype)
    )


@pytest.fixture(params=LEVELS)
def rounding(request, monkeypatch):
    """Either rounding, with torchvision made to round so."""
    if request.param == "uint8":
        monkeypatch.setattr(functional, "resize", in_float)
    return request.param


def check(found, expected, std, rounding):
    assert found.shape == expected.shape
    difference = (found - expected).abs()
    assert difference.max() <= LEVELS[rounding] * LEVEL / min(std) + LAST_BITS
    assert (difference > LEVEL / max(std) / 4).float().mean() <= UNEQUAL


def processor(name, **options):
    return getattr(transformers, name)(**options)


@pytest.mark.parametrize(
    ("options", "normal", "patch", "limits"),
    [
        pytest.param({}, CLIP, 14, {}, id="Qwen2-VL"),
        pytest.param(
            {"size": {"shortest_edge": 3136, "longest_edge": 50_176}},
            CLIP,
            14,
            {"max_pixels": 50_176},
            id="Qwen2.5-VL",
        ),
        pytest.param(QWEN3, HALF, 16, {"min_pixels": 65536, "max_pixels": 16777216}, id="Qwen3-VL"),
    ],
)
def test_rows_and_grids_of_the_qwen_family(rounding, options, normal, patch, limits):
    given = pictures()
    expected = processor("Qwen2VLImageProcessor", **options)(given, return_tensors="pt")
    sizes = images.smart_sizes([image.shape[1:] for image in given], 2 * patch, **limits)
    rows, grid = images.patch_rows(given, sizes, patch=patch, rounding=rounding, scale=255, **normal)
    assert grid.dtype == torch.int64 and torch.equal(grid, expected["image_grid_thw"])
    check(rows, expected["pixel_values"], normal["std"], rounding)


def test_rows_are_the_same_where_nothing_is_resized():
    given = pictures([(56, 84), (140, 112)])
    expected = processor("Qwen2VLImageProcessor")(given, return_tensors="pt")
    rows, grid = images.patch_rows(given, [[56, 84], [140, 112]], scale=255, **CLIP)
    assert torch.equal(grid, expected["image_grid_thw"])
    torch.testing.assert_close(rows, expected["pixel_values"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "options", "call"),
    [
        pytest.param("SiglipImageProcessor", {}, {"filter": "bicubic", **HALF}, id="SigLIP"),
        pytest.param(
            "CLIPImageProcessor",
            {},
            {"filter": "bicubic", "crop": "center", "shortest": 224, **CLIP},
            id="CLIP",
        ),
        pytest.param(
            "BitImageProcessor",
            {"size": {"shortest_edge": 256}, "image_mean": IMAGENET["mean"], "image_std": IMAGENET["std"]},
            {"filter": "bicubic", "crop": "center", "shortest": 256, **IMAGENET},
            id="DINOv2",
        ),
        pytest.param(
            "CLIPImageProcessor",
            {"size": {"shortest_edge": 201}},
            {"filter": "bicubic", "crop": "center", "shortest": 201, **CLIP},
            id="CLIP-padded",
        ),
    ],
)
def test_batches_of_one_size(rounding, name, options, call):
    given = pictures()
    expected = processor(name, **options)(given, return_tensors="pt")["pixel_values"]
    check(images.resize(given, 224, rounding=rounding, scale=255, **call), expected, call["std"], rounding)


def test_rows_masks_and_shapes_of_siglip2(rounding):
    given = pictures()
    expected = processor("Siglip2ImageProcessor")(given, return_tensors="pt")
    sizes = images.fit_sizes([image.shape[1:] for image in given])
    rows, mask, shapes = images.patch_rows(
        given,
        sizes,
        patch=16,
        order="PPC",
        filter="bilinear",
        max_rows=256,
        rounding=rounding,
        scale=255,
        **HALF,
    )
    assert torch.equal(mask, expected["pixel_attention_mask"].to(mask.dtype))
    assert torch.equal(shapes, torch.as_tensor(expected["spatial_shapes"]))
    check(rows, expected["pixel_values"], HALF["std"], rounding)
    assert not rows[mask == 0].any()


def test_fit_sizes_are_those_of_siglip2():
    module = pytest.importorskip("transformers.models.siglip2.image_processing_siglip2")
    draw = random.Random(6)
    for patch, most in ((16, 256), (16, 1024), (14, 729), (32, 1)):
        sides = [(draw.randint(1, 6000), draw.randint(1, 6000)) for _ in range(2000)]
        expected = [module.get_image_size_for_max_num_patches(*pair, patch, most) for pair in sides]
        assert np.array_equal(images.fit_sizes(sides, patch, most), expected)


def test_smart_sizes_are_those_of_smart_resize():
    module = pytest.importorskip("transformers.models.qwen2_vl.image_processing_qwen2_vl")
    draw = random.Random(5)
    for factor, least, most in (
        (28, 3136, 1_003_520),
        (32, 65_536, 16_777_216),
        (28, 100_000, 120_000),
        (1, 1, 99),
    ):
        sides = [(draw.randint(1, 9000), draw.randint(1, 9000)) for _ in range(30_000)]
        sides = [pair for pair in sides if max(pair) / min(pair) <= 200]
        sides += [
            (factor * k // 2, factor * n // 2) for k in range(1, 60) for n in range(1, 60) if factor > 1
        ]
        sides = [pair for pair in sides if max(pair) / min(pair) <= 200]
        expected = [module.smart_resize(*pair, factor, least, most) for pair in sides]
        found = images.smart_sizes(sides, factor, least, most)
        assert np.array_equal(found, expected)
