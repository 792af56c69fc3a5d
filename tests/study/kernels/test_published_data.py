"""The library on the data of the study: all boxes of the pool, and the published grid of tiles."""

import cv2
import numpy as np
import pytest

from octopus import TilePlan, crop_resize
from octopus.backends.cuda import memory
from octopus_study.data.distributions import satellite_tiles
from octopus_study.data.synthetic import drone_frame, drone_pool
from octopus_study.reference import crops as reference

MEAN, STD = np.float32((123.675, 116.28, 103.53)), np.float32((58.395, 57.12, 57.375))
LEVELS = 0.255  # 1e-3 of the range 0 to 255


def opencv(frame, boxes, size):
    """Float crops, resized one by one."""
    crops = [
        cv2.resize(frame[y1:y2, x1:x2].astype(np.float32), size[::-1], interpolation=cv2.INTER_LINEAR)
        for x1, y1, x2, y2 in boxes
    ]
    return np.stack(crops).reshape(len(boxes), *size, frame.shape[2])


def test_every_box_of_the_pool_equals_opencv():
    pool = drone_pool()
    frame = drone_frame(pool)
    for start in range(0, len(pool), 256):
        boxes = pool[start : start + 256]
        expected = (opencv(frame, boxes, (112, 112)) - MEAN) / STD  # some boxes are larger, some smaller
        found = crop_resize(frame, boxes, 112, mean=MEAN, std=STD, device="cpu", layout="NHWC")
        assert np.abs(found - expected).max() * min(STD) < LEVELS


@pytest.mark.gpu
def test_the_whole_pool_equals_the_reference():
    pool = drone_pool()[:256]
    frame = drone_frame(pool)
    found = crop_resize(frame, pool, mean=3.0, std=2.0, device="cuda")
    expected = reference.crop_resize(frame, pool, (224, 224), np.full(3, 3.0), np.full(3, 2.0))
    assert np.abs(found - expected).max() * 2 < 1e-3 * 255


@pytest.mark.gpu
def test_a_scene_of_8192_pixels_equals_numpy():
    tiles = satellite_tiles(8192, 8192)
    for shape, dtype in (((8192, 8192), np.uint16), ((8192, 8192, 3), np.uint8)):
        image = np.random.default_rng(1).integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)
        right = np.array([image[y1:y2, x1:x2].mean() / 100 for x1, y1, x2, y2 in tiles.tolist()])
        plan = TilePlan(memory.upload(image), tiles, scale=100)
        for _ in range(3):
            flags, means = plan.run(memory.upload(image), float(np.median(right)))
            assert np.array_equal(means.copy_to_host(), right)
            assert np.array_equal(flags.copy_to_host(), right > np.median(right))
