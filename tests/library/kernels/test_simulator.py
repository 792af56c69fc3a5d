"""The CUDA kernels without a GPU: their answers in Numba's simulator."""

from __future__ import annotations

import pytest

SCRIPT = "simulate.py"
LIMITS = {
    "float32-nchw": 1e-3,
    "float32-nhwc": 1e-3,
    "float16-nchw": 0.07,
    "uint8-nchw": 0.5 + 1e-3,
    "uint16-frame": 0.3,
    "int32-boxes": 1e-3,
}


@pytest.mark.parametrize("name", LIMITS)
def test_the_answer_is_that_of_the_reference(answers, name):
    assert answers[name] <= LIMITS[name]


def test_boxes_that_cannot_be_used_fill_their_item(answers):
    assert answers["bad-boxes-nan"] == 1.0
    assert answers["bad-boxes-zero"] == 1.0
