"""Sizes are those of the image processors of transformers, whose answers are tested in `integrations`."""

import random

import numpy as np
import pytest

from octopus import images

pytest.importorskip("transformers")


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
    for factor, least, most in ((28, 3136, 1_003_520), (32, 65_536, 16_777_216), (28, 100_000, 120_000), (1, 1, 99)):
        sides = [(draw.randint(1, 9000), draw.randint(1, 9000)) for _ in range(30_000)]
        sides = [pair for pair in sides if max(pair) / min(pair) <= 200]
        sides += [(factor * k // 2, factor * n // 2) for k in range(1, 60) for n in range(1, 60) if factor > 1]
        sides = [pair for pair in sides if max(pair) / min(pair) <= 200]
        expected = [module.smart_resize(*pair, factor, least, most) for pair in sides]
        found = images.smart_sizes(sides, factor, least, most)
        assert np.array_equal(found, expected)
