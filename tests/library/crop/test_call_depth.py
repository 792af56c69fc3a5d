"""How much of the library a call goes through that looks like one before: few functions, and few files to read."""

from __future__ import annotations

from functools import partial

import fake_torch
import numpy as np
import pretended_gpu
import pytest
from profiled import entered

from octopus import CropPlan, crop_resize

FILES, FUNCTIONS = 8, 20
FRAME, BOXES = np.zeros((40, 60, 3), np.uint8), np.array([[1, 2, 9, 12], [3, 4, 30, 20]])
OUT = np.zeros((2, 3, 24, 36), np.float32)
CALLS = ["run of a plan", "crop_resize with out", "crop_resize"]

pretended_torch = pytest.fixture(pretended_gpu.torch_installed)


def check(name, frame, boxes, out):
    call = partial(crop_resize, frame, boxes, (24, 36))
    if name == "run of a plan":
        call = partial(CropPlan(frame, 2, (24, 36)).run, frame, boxes)
    elif name == "crop_resize with out":
        call = partial(call, out=out)
    call()
    codes, _ = entered(call)
    assert len({code.co_filename for code in codes}) <= FILES, codes
    assert len(codes) <= FUNCTIONS, [code.co_name for code in codes]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_a_call_on_the_cpu_goes_through_little(library, name):
    made = np.asarray if library == "numpy" else pytest.importorskip("torch").from_numpy
    check(name, made(FRAME), made(BOXES), made(OUT))


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("there", [True, False])
def test_nor_does_one_on_a_gpu(pretended_torch, there, name):
    frame, boxes, out = (fake_torch.Tensor(array, "cuda:0") for array in (FRAME, BOXES, OUT))
    check(name, frame, boxes if there else BOXES, out)
    assert len(pretended_torch.launches) == 2


@pytest.mark.gpu
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("there", [True, False])
def test_nor_does_one_on_this_gpu(there, name):
    torch = pytest.importorskip("torch")
    frame, boxes, out = (torch.from_numpy(array).cuda() for array in (FRAME, BOXES, OUT))
    check(name, frame, boxes if there else BOXES, out)
