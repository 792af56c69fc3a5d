"""Filters and affine maps without a GPU: the CUDA kernels' answers in Numba's simulator."""

from __future__ import annotations

from itertools import product

import pytest
from gpu import PAD_MODES

SCRIPT = "simulate_sampled.py"
MODES = ("", *PAD_MODES)


@pytest.mark.parametrize("filter", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("mode", MODES)
def test_maps_equal_the_reference(answers, filter, mode):
    assert answers[f"maps-{filter}-{mode}"] <= 1e-3


@pytest.mark.parametrize("filter", ["nearest", "bicubic"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("edge", ["box", "image"])
@pytest.mark.parametrize("boxed", ["", "-letterbox"])
def test_boxes_with_every_option_equal_the_reference(answers, filter, mode, edge, boxed):
    name = f"{filter}-{mode}-{edge}{boxed}"
    assert answers[name] <= 1e-3
    assert answers[f"transform-{name}"] <= (1e-5 if boxed else 0)


@pytest.mark.parametrize("maps", ["", "-maps"])
def test_every_kind_of_frame_and_result(answers, maps):
    for channels in (1, 2, 4, 5):
        assert answers[f"channels-{channels}{maps}"] <= 2e-3
    assert answers[f"float16{maps}"] <= 0.07
    assert answers[f"uint8{maps}"] <= 0.5 + 1e-3


@pytest.mark.parametrize(("kind", "dtype"), product(("boxes", "maps"), ("float16", "uint8")))
def test_what_cannot_be_used_fills_its_item(answers, kind, dtype):
    assert answers[f"bad-{kind}-{dtype}"] == 1.0
