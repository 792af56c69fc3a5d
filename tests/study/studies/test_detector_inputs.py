"""Every way to a detector's input gives the letterboxed frame, and leads its boxes back to the frame."""

from __future__ import annotations

import fake_tensors
import numpy as np
import pytest
from fake_tensors import Tensor

from octopus_study.reference import crops as reference
from octopus_study.studies.detector.inputs import INPUT_METHODS, InputJob, OctopusInput, OpenCvBytesInput, OpenCvInput

MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
FRAMES = {"wide": (54, 96, 3), "tall": (96, 40, 3), "square": (50, 50, 3)}
SIZES = [(32, 32), (33, 47), (80, 64)]
LEVELS = {
    OctopusInput: 0.05,
    OpenCvInput: 0.05,
    OpenCvBytesInput: 1.0,
}  # of 255; bytes: weights of 11 bits, then rounding


@pytest.fixture(autouse=True)
def torch(monkeypatch):
    return fake_tensors.install(monkeypatch)


def picture(shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def make_job(shape, size, device="cpu"):
    return InputJob(shape, size, MEAN, STD, device, 1)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("shape", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("kind", INPUT_METHODS, ids=lambda kind: kind.name)
def test_the_input_is_the_reference_letterboxed(kind, shape, size):
    job = make_job(shape, size)
    way = kind(job)
    for seed in range(3):  # what a frame leaves behind must not reach the next
        frame = picture(shape, seed)
        planes = way.prepare(frame).numpy()
        assert planes.dtype == np.float32
        assert planes.shape == (1, 3, *size)
        levels = np.abs(planes - job.expected(frame)) * np.array(STD)[:, None, None]
        assert levels.max() <= LEVELS[kind]


def test_bytes_are_rounded_where_pixels_are_interpolated_and_not_where_they_are_picked():
    shape, errors = (54, 96, 3), {}
    for size in ((32, 32), (30, 30)):  # 96 to 32: every sample lies on the middle of a pixel
        job = make_job(shape, size)
        error = OpenCvBytesInput(job).prepare(picture(shape)).numpy() - job.expected(picture(shape))
        errors[size] = np.abs(error).max() * min(STD)
    assert errors[32, 32] < 1e-3 < 0.3 < errors[30, 30]


@pytest.mark.parametrize("shape", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("kind", INPUT_METHODS, ids=lambda kind: kind.name)
def test_boxes_come_back_to_the_frame(kind, shape):
    job = make_job(shape, (32, 48))
    way, at = kind(job), make_job(shape, (32, 48)).place
    way.prepare(picture(shape))
    whole = [at.left, at.top, at.left + at.width, at.top + at.height]
    boxes = np.array([whole, [3, 5, 20, 21]], np.float32)
    back = way.back(Tensor(boxes)).numpy()
    assert np.allclose(back[0], job.box[0], atol=1e-3)
    scale_x, scale_y, shift_x, shift_y = reference.transforms(job.box, job.size)[0]
    scale, shift = np.array([scale_x, scale_y] * 2), np.array([shift_x, shift_y] * 2)
    assert np.allclose(back, boxes * scale + shift, atol=1e-3)
    assert way.back(Tensor(boxes[:0])).numpy().shape == (0, 4)
