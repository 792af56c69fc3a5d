"""Slices as one batch are SAHI's own, to the byte, and what is found in them is merged as by SAHI."""

import numpy as np
import pytest

slicing = pytest.importorskip("sahi.slicing", reason="SAHI is not installed")
predict = pytest.importorskip("sahi.predict")
base = pytest.importorskip("sahi.models.base")

from sahi.prediction import ObjectPrediction  # noqa: E402

import octopus  # noqa: E402
from octopus.errors import InputError  # noqa: E402
from octopus.integrations.sahi import slices  # noqa: E402


def picture(height=300, width=500, squares=40):
    """Dark noise with white squares."""
    generator = np.random.default_rng(5)
    made = generator.integers(0, 200, (height, width, 3), np.uint8)
    for y, x in generator.integers(0, [height - 12, width - 12], (squares, 2)).tolist():
        made[y : y + 12, x : x + 12] = 255
    return made


@pytest.mark.parametrize(("height", "width", "down", "across"), [
    (128, 128, 0.2, 0.2), (64, 200, 0.5, 0.1), (100, 100, 0, 0),
    (300, 500, 0.2, 0.2), (400, 200, 0.2, 0.3), (None, None, 0.2, 0.2),  # the image's size, a larger one, SAHI's choice
])  # fmt: skip
def test_slices_are_sahis(height, width, down, across):
    ratios = {"overlap_height_ratio": down, "overlap_width_ratio": across}
    expected = slicing.slice_image(picture(), slice_height=height, slice_width=width, **ratios)
    found = slices(picture(), height, width, **ratios, dtype="uint8", layout="NHWC", device="cpu")
    assert np.array_equal(found.batch, np.stack(expected.images))
    assert found.shift_amount == expected.starting_pixels
    assert found.full_shape == [[300, 500]] * len(expected)
    assert found.transform is None


def test_resized_slices_and_the_way_back():
    found = slices(picture(), 128, 96, size=(64, 64), scale=255, antialias=True, device="cpu")
    boxes = slicing.get_slice_bboxes(300, 500, 128, 96)
    expected = octopus.crop_resize(picture(), boxes, 64, letterbox=True, scale=255, antialias=True, device="cpu")
    assert np.array_equal(found.batch, expected)
    inside = np.array([[[8.0, 0, 56, 64]]] * len(boxes))
    assert np.allclose(octopus.map_back(inside, found.transform)[:, 0], boxes)


class Squares(base.DetectionModel):
    """Finds the box around each row of white pixels."""

    def load_model(self):
        self.model = self

    def perform_inference(self, image):
        self.perform_batch_inference([image])

    def perform_batch_inference(self, images):
        assert all(isinstance(one, np.ndarray) and one.dtype == np.uint8 for one in images)
        self._original_predictions = [[self.around(one[y0 : y0 + 20] == 255, y0) for y0 in range(0, len(one), 20)]
                                      for one in images]  # fmt: skip

    @staticmethod
    def around(white, first):
        rows, columns = np.nonzero(white.all(-1))
        return [columns.min(), rows.min() + first, columns.max() + 1, rows.max() + first + 1] if len(rows) else None

    def _create_object_prediction_list_from_original_predictions(self, shift_amount_list, full_shape_list):
        pairs = zip(self._original_predictions, shift_amount_list, full_shape_list, strict=True)
        self._object_prediction_list_per_image = [
            [ObjectPrediction(bbox=[int(side) for side in box], category_id=0, category_name="square", score=0.9,
                              shift_amount=shift, full_shape=full)
             for box in boxes if box is not None] for boxes, shift, full in pairs
        ]  # fmt: skip


def merged(found):
    """What a postprocess of SAHI makes of predictions, as sorted boxes."""
    kind = predict.POSTPROCESS_NAME_TO_CLASS["GREEDYNMM"]
    made = kind(match_threshold=0.5, match_metric="IOS", class_agnostic=False)(found)
    return sorted(one.bbox.to_xyxy() for one in made)


def test_what_is_found_is_merged_as_by_sahi():
    model, image = Squares(confidence_threshold=0.3, device="cpu"), picture()
    asked = {"slice_height": 128, "slice_width": 128}
    expected = predict.get_sliced_prediction(image, model, **asked, perform_standard_pred=False, verbose=0)
    cut = slices(image, **asked, dtype="uint8", layout="NHWC", device="cpu")
    model.perform_batch_inference(list(cut.batch))
    model.convert_original_predictions(shift_amount=cut.shift_amount, full_shape=cut.full_shape)
    lists = model.object_prediction_list_per_image
    found = [one.get_shifted_object_prediction() for one_slice in lists for one in one_slice]
    assert len(found) > 20
    assert merged(found) == sorted(one.bbox.to_xyxy() for one in expected.object_prediction_list)


def test_errors():
    with pytest.raises(ValueError, match="Overlap ratio must be less than 1"):
        slices(picture(), 64, 64, overlap_width_ratio=1.0)
    with pytest.raises(InputError, match="dtype"):
        slices(picture(), 64, 64, dtype="int8")
    with pytest.raises(InputError, match="layout"):
        slices(picture(), 64, 64, size=32, layout="HWC")


@pytest.mark.gpu
def test_on_a_gpu():
    torch = pytest.importorskip("torch")
    expected = slices(picture(), 128, 96, size=64, device="cpu")
    found = slices(torch.from_numpy(picture()).cuda(), 128, 96, size=64)
    assert found.batch.is_cuda and found.shift_amount == expected.shift_amount
    assert np.abs(found.batch.cpu().numpy() - expected.batch).max() < 0.01
    assert np.allclose(found.transform.cpu().numpy(), expected.transform)
