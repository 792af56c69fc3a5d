"""Results of more than 2**31 elements: the last ones are right."""

import gc
import math

import numpy as np
import pytest

from octopus import crop_resize, images
from octopus.backends import cpu

RNG = np.random.default_rng(0)
SIDE = 26_880  # of an image whose bytes are more than 2**31
ON_GPU = [pytest.param(filter, "cuda", marks=pytest.mark.gpu) for filter in ("bilinear", "nearest")]


@pytest.fixture(autouse=True)
def room():
    if cpu.free_bytes() < 6 << 30:
        pytest.skip("less than 6 GiB of memory are free")
    yield
    gc.collect()


def brought(array, device):
    if device == "cpu":
        return array
    from octopus.backends.cuda import memory

    return memory.upload(array)


def last(answer, count):
    """Elements at the end of a result, on the host."""
    flat = answer if isinstance(answer, np.ndarray) else answer.copy_to_host()
    return flat.reshape(-1)[-count:]


@pytest.mark.parametrize(("filter", "device"), [("nearest", "cpu"), *ON_GPU])
@pytest.mark.parametrize("operation", ["patch_rows", "resize_each"])
def test_images(operation, filter, device):
    large, small = RNG.integers(0, 256, (300, 200, 3), np.uint8), RNG.integers(0, 256, (60, 50, 3), np.uint8)
    large[-20:, -20:] = 201
    options = {"filter": filter, "dtype": "uint8"}
    options |= {"patch": 14, "merge": 1, "temporal": 1} if operation == "patch_rows" else {"layout": "NHWC"}

    def made(given, sizes):
        answer = getattr(images, operation)([brought(one, device) for one in given], sizes, **options)
        return answer[0] if operation == "patch_rows" else answer.values

    alone = last(made([small], [[56, 84]]), 56 * 84 * 3)
    answer = made([large, small], [[SIDE, SIDE], [56, 84]])
    assert math.prod(answer.shape) > 2**31
    found = last(answer, alone.size + 14 * 14 * 3)
    assert (found[: 14 * 14 * 3] == 201).all()  # of the large image, from 2**31 elements on
    assert np.array_equal(found[14 * 14 * 3 :], alone)


@pytest.mark.parametrize(("filter", "device"), [("bilinear", "cpu"), *ON_GPU[:1]])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_crops(layout, filter, device):
    frame, count = brought(RNG.integers(0, 256, (70, 90, 3), np.uint8), device), 2**31 // (3 * 512 * 512) + 2
    boxes = np.tile(np.float32([0, 0, 9, 9]), (count, 1))
    boxes[-1] = 20, 30, 70, 60
    options = {"dtype": "uint8", "layout": layout, "filter": filter}
    alone = last(crop_resize(frame, boxes[-1:], 512, **options), 3 * 512 * 512)
    answer = crop_resize(frame, boxes, 512, **options)
    assert math.prod(answer.shape) > 2**31 and np.array_equal(last(answer, alone.size), alone)
