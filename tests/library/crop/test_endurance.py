"""A plan that runs a hundred thousand times: the same answers at the end as at the beginning, and no memory lost."""

import ctypes
import gc
import os
from pathlib import Path

import numpy as np
import pytest
from gpu import synchronize

from octopus import CropPlan, crop_resize
from octopus.backends.cuda import memory

pytestmark = [pytest.mark.gpu, pytest.mark.alone]

RUNS, CHECK_EVERY, MAX_BOXES = 100_000, 1000, 64
SLACK = 8 << 20  # bytes by which the memory in use may differ for reasons of others


def random_boxes(rng, count, width=300, height=200):
    x, y = (np.sort(rng.uniform(0, width, (count, 2)), axis=1), np.sort(rng.uniform(0, height, (count, 2)), axis=1))
    boxes = np.stack([x[:, 0], y[:, 0], x[:, 1] + 0.01, y[:, 1] + 0.01], axis=1)
    return boxes.clip(0, [width, height, width, height]).astype(np.float32)


def batches(rng):
    """Boxes on the host and their copies on the GPU, of many different sizes."""
    for _ in range(200):
        boxes = random_boxes(rng, int(rng.integers(1, MAX_BOXES + 1)))
        yield boxes, memory.upload(boxes)


def resident():
    """Bytes of this process, after the pieces that the checks left behind are given back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def free_memory():
    """Bytes on the GPU, after deferred frees are done."""
    synchronize()
    return memory.free_bytes()


def test_a_hundred_thousand_runs_lose_nothing():
    rng = np.random.default_rng(7)
    frame = rng.integers(0, 256, (200, 300, 3), np.uint8)
    on_gpu, known = memory.upload(frame), list(batches(rng))
    plan = CropPlan(on_gpu, MAX_BOXES, mean=100.0, std=50.0)
    for boxes, on_device in known:  # fills what keeps host memory for later results
        plan.run(on_gpu, on_device).copy_to_host()
        crop_resize(frame, boxes, mean=100.0, std=50.0, device="cpu")
    held = None
    for run in range(RUNS):
        boxes, on_device = known[int(rng.integers(len(known)))]
        found = plan.run(on_gpu, on_device if run % 2 else boxes)
        if run % CHECK_EVERY == 0:
            expected = crop_resize(frame, boxes, mean=100.0, std=50.0, device="cpu")
            assert np.abs(found.copy_to_host() - expected).max() < 1e-3
            del found, expected
            now = free_memory(), resident()
            # The first tenth may still fill caches.
            held = now if run <= RUNS // 10 else held
    synchronize()
    assert held[0] - now[0] <= SLACK
    assert now[1] - held[1] <= SLACK
