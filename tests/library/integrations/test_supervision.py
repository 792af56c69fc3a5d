"""Slices of supervision's `InferenceSlicer` as one batch: the same detections as slice by slice."""

import numpy as np
import pytest

sv = pytest.importorskip("supervision", reason="supervision is not installed")

import octopus  # noqa: E402
from octopus.errors import InputError  # noqa: E402
from octopus.integrations.supervision import batched  # noqa: E402


def picture(height=300, width=500):
    """Dark noise with white squares of 24 pixels, none at a border of slices."""
    made = np.random.default_rng(5).integers(0, 100, (height, width, 3), np.uint8)
    for y in range(20, height - 30, 70):
        for x in range(15, width - 30, 90):
            made[y : y + 24, x : x + 24] = 255
    return made


def around(item, level):
    """The box of what is brighter than a level, (H, W, C), where there is any."""
    rows, columns = np.nonzero((item > level).all(-1))
    if not len(rows):
        return sv.Detections.empty()
    box = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    return sv.Detections(xyxy=np.array([box], np.float32), confidence=np.array([0.9]), class_id=np.array([0]))


def one_by_one(tiles):
    return [around(tile, 200) for tile in tiles]


def sliced(callback, image, **asked):
    return sv.InferenceSlicer(callback, overlap_wh=asked.pop("overlap_wh", 20), batch_size=16, **asked)(image)


@pytest.mark.parametrize("asked", [{"slice_wh": 100}, {"slice_wh": (140, 100)}, {"slice_wh": 96, "overlap_wh": 0}])
def test_the_same_is_found(asked):
    """Slices that are not resized; without overlap they are smaller where the image ends, and padded."""
    shapes = []

    def find(batch):
        shapes.append(batch.shape)
        return [around(item, 200) for item in batch]

    wide, high = np.broadcast_to(asked["slice_wh"], 2)
    callback = batched(find, (int(high), int(wide)), dtype="uint8", layout="NHWC", pad_value=0)
    expected, found = (sliced(call, picture(), **asked) for call in (one_by_one, callback))
    assert len(found) == len(expected) > 5
    assert np.abs(found.xyxy - expected.xyxy).max() < 1
    assert np.array_equal(found.class_id, expected.class_id)
    assert {shape[1:] for shape in shapes} == {(high, wide, 3)} and max(shape[0] for shape in shapes) == 16


def test_boxes_of_resized_slices_are_led_back():
    def find(batch):
        assert batch.shape[1:] == (3, 50, 80) and batch.dtype == np.float32 and batch.max() < 1.001
        return [around(item.transpose(1, 2, 0), 0.6) for item in batch]

    callback = batched(find, (50, 80), scale=255, antialias=True, pad_value=0)
    expected, found = (sliced(call, picture(), slice_wh=100) for call in (one_by_one, callback))
    assert len(found) == len(expected)
    assert np.abs(found.xyxy - expected.xyxy).max() <= 3  # an item's pixel is two of the slice's


def test_images_of_pillow():
    image = pytest.importorskip("PIL.Image").fromarray(picture())
    callback = batched(lambda batch: [around(item, 200) for item in batch], 100, dtype="uint8", layout="NHWC")
    found, expected = (sliced(callback, given, slice_wh=100) for given in (image, picture()))
    assert len(found) and np.array_equal(found.xyxy, expected.xyxy)


def test_errors():
    def masks(batch):
        found = [around(item, 200) for item in batch]
        for one, item in zip(found, batch, strict=True):
            if len(one):
                one.mask = np.zeros((1, *item.shape[:2]), bool)
        return found

    plain = {"dtype": "uint8", "layout": "NHWC"}
    assert sliced(batched(masks, 100, **plain), picture(), slice_wh=100).mask is not None  # not resized
    with pytest.raises(InputError, match="masks and oriented boxes are not led back"):
        sliced(batched(masks, 50, **plain), picture(), slice_wh=100)
    with pytest.raises(ValueError, match="Lengths must match"):
        sliced(batched(lambda batch: [], 100), picture(), slice_wh=100)
    with pytest.raises(ValueError, match=r"must return `list\[Detections\]`"):
        sliced(batched(lambda batch: sv.Detections.empty(), 100), picture(), slice_wh=100)
    with pytest.raises(InputError, match="whose number of slices varies"):
        batched(masks, 100, out=np.empty((4, 3, 100, 100), np.float32))
    with pytest.raises(InputError, match="dtype"):
        sliced(batched(masks, 100, dtype="int8"), picture(), slice_wh=100)


def test_detections_are_boxes():
    """Of whole numbers they are supervision's own crops; others it rounds first."""
    generator = np.random.default_rng(2)
    corners = generator.uniform(0, [450, 250], (20, 2))
    found = sv.Detections(xyxy=np.column_stack([corners, corners + generator.uniform(3, 80, (20, 2))]))
    found.xyxy = found.xyxy.round()
    for box, crop in zip(found.xyxy, octopus.crop_resize(picture(), found, 32, device="cpu"), strict=True):
        own = octopus.images.resize([sv.crop_image(picture(), box)], 32, antialias=False)
        assert np.abs(crop - own[0]).max() < 0.01
    assert octopus.crop_resize(picture(), sv.Detections.empty(), 32, device="cpu").shape == (0, 3, 32, 32)
