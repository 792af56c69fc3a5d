"""The CUDA kernels with options without a GPU: their answers in Numba's simulator."""

from __future__ import annotations

import pytest
from gpu import SETS, name_of

SCRIPT = "simulate_options.py"
NAMES = [name_of(options) for options in SETS]


@pytest.mark.parametrize("name", NAMES)
def test_every_set_of_options_equals_the_reference(answers, name):
    assert answers[name] <= 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_transforms_are_written_with_letterbox_alone(answers, name):
    assert answers[f"transform-{name}"] <= (1e-5 if "letterbox" in name else 0)


@pytest.mark.parametrize("kind", ["bilinear", "antialias"])
def test_other_dtypes_and_layouts(answers, kind):
    assert answers[f"float16-{kind}"] <= 0.07
    assert answers[f"uint8-{kind}"] <= 0.5 + 1e-3


@pytest.mark.parametrize("kind", ["bilinear", "antialias"])
def test_what_cannot_be_made_fills_its_item(answers, kind):
    assert answers[f"bad-{kind}"] == 1.0
    assert answers[f"bad-uint8-{kind}"] == 1.0
