"""What items have of their own: a flip, a mean and a deviation; and a count."""

from __future__ import annotations

import inspect
import re
from itertools import product

import numpy as np
import pytest

from octopus import CropPlan, InputError, crop_resize, map_back
from octopus.crop.options import CALL_OPTIONS

RANDOM = np.random.default_rng(0)
FRAME = RANDOM.integers(0, 256, (100, 120, 3), np.uint8)
CORNERS = RANDOM.integers(0, 50, (6, 2))
BOXES = np.concatenate([CORNERS, CORNERS + RANDOM.integers(5, 50, (6, 2))], axis=1).astype(np.float32)
FLIPS = np.array([0, 1, 2, 3, 1, 0])
SIZE = (20, 30)
MEAN = RANDOM.uniform(0, 100, (6, 3)).astype(np.float32)
STD = RANDOM.uniform(5, 25, (6, 3)).astype(np.float32)
KINDS = list(product(("NCHW", "NHWC"), ("float32", "float16", "uint8")))


def crops(*args, **options):
    return crop_resize(*args, device="cpu", **options)


def flipped(item, flip, layout):
    across, down = (2, 1) if layout == "NCHW" else (1, 0)
    item = np.flip(item, across) if flip & 1 else item
    return np.flip(item, down) if flip & 2 else item


@pytest.mark.parametrize(("layout", "dtype"), KINDS)
def test_a_flipped_item_is_the_item_mirrored(layout, dtype):
    options = {"layout": layout, "dtype": dtype, "scale": 2}
    plain, found = crops(FRAME, BOXES, SIZE, **options), crops(FRAME, BOXES, SIZE, flip=FLIPS, **options)
    for item, result, flip in zip(plain, found, FLIPS, strict=True):
        assert np.array_equal(result, flipped(item, flip, layout))


def test_a_letterboxed_item_is_mirrored_whole_and_so_is_its_way_back():
    plain, way = crops(FRAME, BOXES, SIZE, letterbox=True)
    found, mirrored = crops(FRAME, BOXES, SIZE, letterbox=True, flip=FLIPS)
    points = RANDOM.random((6, 3, 2)) * SIZE[::-1]
    there = points.copy()
    there[:, :, 0] = np.where(FLIPS[:, None] & 1, SIZE[1] - points[:, :, 0], points[:, :, 0])
    there[:, :, 1] = np.where(FLIPS[:, None] & 2, SIZE[0] - points[:, :, 1], points[:, :, 1])
    for item, result, flip in zip(plain, found, FLIPS, strict=True):
        assert np.array_equal(result, flipped(item, flip, "NCHW"))
    np.testing.assert_allclose(map_back(there, mirrored), map_back(points, way), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int64, list])
def test_flips_may_be_of_any_integers(kind):
    given = [1, 0, 1, 1, 0, 1] if kind is list else np.array([1, 0, 1, 1, 0, 1], kind)
    assert np.array_equal(crops(FRAME, BOXES, 8, flip=given), crops(FRAME, BOXES, 8, flip=[1, 0, 1, 1, 0, 1]))


@pytest.mark.parametrize(
    "options", [{}, {"letterbox": True}, {"antialias": True}, {"channels": "BGR"}], ids=str
)
@pytest.mark.parametrize(("layout", "dtype"), KINDS)
def test_a_mean_of_each_item_is_that_of_a_call_for_it(layout, dtype, options):
    std = STD * (0.05 if dtype == "uint8" else 1)
    given = {"layout": layout, "dtype": dtype, **options}

    def items(boxes, mean, std):
        made = crops(FRAME, boxes, SIZE, mean=mean, std=std, **given)
        return np.asarray(made[0] if "letterbox" in options else made, np.float64)

    found = items(BOXES, MEAN, std)
    alone = np.concatenate([items(BOXES[i : i + 1], MEAN[i], std[i]) for i in range(6)])
    # Gains are rounded to float32 once more; a value in the middle of two may become either.
    limit = {"uint8": 1, "float16": np.abs(alone).max() * 2**-10, "float32": 1e-4}[dtype]
    assert np.abs(found - alone).max() <= limit


def test_a_plan_takes_means_at_a_run_or_when_it_is_made():
    plan = CropPlan(FRAME, 6, SIZE, scale=255, device="cpu")
    found = plan.run(FRAME, BOXES, mean=MEAN / 255, std=STD / 255)
    np.testing.assert_allclose(found, crops(FRAME, BOXES, SIZE, mean=MEAN, std=STD), rtol=1e-4, atol=1e-4)
    with pytest.raises(InputError, match="others when the plan was made"):
        CropPlan(FRAME, 6, SIZE, mean=3, device="cpu").run(FRAME, BOXES, mean=MEAN, std=STD)


@pytest.mark.parametrize("count", [0, 2, np.int64(6), np.array([4], np.int32), np.array(3)])
def test_items_behind_the_count_are_left_alone(count):
    out = np.full((6, 3, *SIZE), 7, np.float32)
    result, made = crops(FRAME, BOXES, SIZE, count=count, out=out), int(np.squeeze(count))
    assert result is out and (out[made:] == 7).all()
    assert np.array_equal(out[:made], crops(FRAME, BOXES[:made], SIZE))


def test_boxes_behind_the_count_may_be_anything():
    boxes = BOXES.copy()
    boxes[2:] = np.nan
    assert np.array_equal(crops(FRAME, boxes, 8, count=2)[:2], crops(FRAME, BOXES[:2], 8))


WRONG = {
    "count must lie between 0 and the 6 boxes, found 7": {"count": 7},
    "count must lie between 0 and the 6 boxes, found -1": {"count": -1},
    "count must be one integer": {"count": np.array([1, 2])},
    r"flip\[1\] = 4 must be 0, 1, 2 or 3; wrong entries: 1 of 6": {"flip": [0, 4, 0, 0, 0, 0]},
    r"flip must hold one integer per box, shape \(6,\)": {"flip": [1]},
    "flip must hold one integer per box": {"flip": np.ones(6)},
    "mean and std of each item go together": {"mean": MEAN},
    r"std\[2, 1\] = 0.0 must be positive": {
        "mean": MEAN,
        "std": np.where(np.arange(18) == 7, 0, 1).reshape(6, 3),
    },
    r"mean\[0, 0\] = nan must be finite": {"mean": MEAN * np.nan, "std": STD},
    "go together, two arrays of shape .* found only mean to be one": {"mean": MEAN, "std": STD[0]},
    "found only std to be one": {"mean": 3.0, "std": STD},
    r"mean\[0, 0\] = .* must be within float32 once divided by std": {
        "mean": MEAN + 1e30,
        "std": STD * 1e-30,
    },
    "count must be one integer, found True": {"count": True},
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_is_named(message):
    with pytest.raises(InputError, match=message):
        crops(FRAME, BOXES, 8, **WRONG[message])


def test_no_boxes_may_have_no_means():
    nothing = np.empty((0, 3), np.float32)
    assert crops(FRAME, [], SIZE, mean=nothing, std=nothing).shape == (0, 3, *SIZE)


@pytest.mark.parametrize(
    ("frame", "options", "words"),
    [
        (np.array(5), {}, "frame must have shape"),
        (FRAME, {"mean": [[1, [2, 3], 4]] * 6}, "mean must be one finite number or 3"),
        (FRAME, {"channels": np.array(["BGR", "RGB"])}, "channels=.* is unknown"),
    ],
)
def test_a_look_for_means_of_items_leaves_errors_to_the_checks(frame, options, words):
    with pytest.raises(InputError, match=words):
        crops(frame, BOXES, SIZE, **{"mean": 3, **options})


def test_flips_on_the_host_may_be_of_either_byte_order():
    swapped = FLIPS.astype(FLIPS.dtype.newbyteorder())
    assert np.array_equal(crops(FRAME, BOXES, 8, flip=swapped), crops(FRAME, BOXES, 8, flip=FLIPS))


def test_the_typed_call_knows_every_argument():
    section = inspect.getdoc(crop_resize).partition("Parameters\n")[2].partition("Returns\n")[0]
    named = {
        name for line in re.findall(r"^(\w[\w, ]*) :", section, re.MULTILINE) for name in line.split(", ")
    }
    given = set(inspect.signature(inspect.unwrap(crop_resize)).parameters) - {"options"}
    assert named == given | {*CALL_OPTIONS, "letterbox"}
