"""The CUDA kernels with options without a GPU: their answers in Numba's simulator."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

SETS = [
    "-".join(filter(None, names)) for names in product(("box", "image"), ("", "letterbox"), ("", "antialias"))
]


@pytest.fixture(scope="module")
def found():
    script = Path(__file__).with_name("simulate_options.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", SETS)
def test_every_set_of_options_equals_the_reference(found, name):
    assert found[name] <= 1e-3


@pytest.mark.parametrize("name", SETS)
def test_transforms_are_written_with_letterbox_alone(found, name):
    assert found[f"transform-{name}"] <= (1e-5 if "letterbox" in name else 0)


@pytest.mark.parametrize("kind", ["bilinear", "antialias"])
def test_other_dtypes_and_layouts(found, kind):
    assert found[f"float16-{kind}"] <= 0.07
    assert found[f"uint8-{kind}"] <= 0.5 + 1e-3


@pytest.mark.parametrize("kind", ["bilinear", "antialias"])
def test_what_cannot_be_made_fills_its_item(found, kind):
    assert found[f"bad-{kind}"] == 1.0
    assert found[f"bad-uint8-{kind}"] == 1.0
