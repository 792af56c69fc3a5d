"""A small job for every method on crops, and what each should answer."""

import cv2
import numpy as np

from octopus_study import names
from octopus_study.baselines.availability import Unavailable
from octopus_study.baselines.job import make_job
from octopus_study.baselines.native_methods import from_nv12, to_nv12
from octopus_study.baselines.registry import make as make_method
from octopus_study.reference import crops as reference

NAMES = list(names.arena_methods())
FRAME = np.random.default_rng(0).integers(0, 256, (200, 300, 3), np.uint8)
BOXES = np.array([[0, 0, 1, 1], [299, 199, 300, 200], [0, 0, 300, 200], [5, 7, 9, 10], [10, 20, 60, 90]], np.int32)
SIZE, MEAN, STD = (40, 56), (10.0, 20.0, 30.0), (2.0, 4.0, 8.0)
EXACT = 0.255  # levels
ROUNDED = 0.5 + 1e-3  # by half a level between two passes
FIXED = 1.0  # OpenCV's fixed point, with weights of 11 bits, and its rounding
HALF = 256 * 2.0**-9  # four roundings to half precision


def job(device, boxes=BOXES):
    """The boxes on the frame, with a poisoned result."""
    made = make_job(FRAME, boxes, SIZE, MEAN, STD, device)
    made.poison()
    return made


def padded_items(boxes=BOXES, dtype=np.uint8):
    """Crops, each in the corner of an item as large as the largest."""
    width, height = (boxes[:, 2:] - boxes[:, :2]).max(axis=0)
    items = np.zeros((len(boxes), height, width, 3), dtype)
    for item, (x1, y1, x2, y2) in zip(items, boxes, strict=True):
        item[: y2 - y1, : x2 - x1] = FRAME[y1:y2, x1:x2]
    return items


def padded(boxes=BOXES):
    """These items in float64, resized whole by OpenCV."""
    items = padded_items(boxes, np.float64)
    resized = [cv2.resize(item, SIZE[::-1], interpolation=cv2.INTER_LINEAR) for item in items]
    return ((np.stack(resized) - MEAN) / STD).transpose(0, 3, 1, 2)


def scalar():
    """Crops normalised with the mean of the channels' means and deviations."""
    mean, std = np.full(3, np.mean(MEAN)), np.full(3, np.mean(STD))
    return reference.crop_resize(FRAME, BOXES, SIZE, mean, std)


def colours_halved():
    """Crops in float64 of the frame that is left of an NV12 one."""
    frame = from_nv12(to_nv12(FRAME))
    return reference.crop_resize(frame, BOXES, SIZE, np.array(MEAN), np.array(STD), edge="image")


def cropped(edge):
    return reference.crop_resize(FRAME, BOXES, SIZE, np.array(MEAN), np.array(STD), edge=edge)


def expected(method):
    """What a method should answer, by the reason for which it is said to differ."""
    right = {
        "": lambda: cropped(method.edge),
        "rounds": lambda: cropped(method.edge),
        "resizes": padded,
        "reads": colours_halved,
        "one": scalar,
    }
    return right[method.why_different.partition(" ")[0]]()


def limit(method):
    """How far a method may be from that."""
    if method.name == "roiconvert":
        return FIXED
    if method.why_different.startswith("rounds"):
        return ROUNDED
    return HALF if method.name.endswith("fp16") else EXACT


def levels(found, right):
    """Largest difference in levels of the frame; NaN if any value is."""
    assert found.dtype == np.float32
    assert found.shape == right.shape
    return np.abs((found - right) * np.array(STD)[:, None, None]).max()


def make(name, device):
    try:
        return make_method(name, job(device))
    except Unavailable as reason:
        return str(reason)
