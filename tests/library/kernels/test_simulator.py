"""The CUDA kernels without a GPU: their answers in Numba's simulator."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

LIMITS = {
    "float32-nchw": 1e-3,
    "float32-nhwc": 1e-3,
    "float16-nchw": 0.07,
    "uint8-nchw": 0.5 + 1e-3,
    "uint16-frame": 0.3,
    "int32-boxes": 1e-3,
    "published": 0.5 / 2 + 1e-3,  # half a level, divided by the smallest std
}


@pytest.fixture(scope="module")
def found():
    script = Path(__file__).with_name("simulate.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", LIMITS)
def test_the_answer_is_that_of_the_reference(found, name):
    assert found[name] <= LIMITS[name]


def test_the_published_kernels_do_round_between_their_passes(found):
    assert found["published"] > 0.01


def test_boxes_that_cannot_be_used_fill_their_item(found):
    assert found["bad-boxes-nan"] == 1.0
    assert found["bad-boxes-zero"] == 1.0
