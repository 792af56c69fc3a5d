"""The simple CUDA kernel, and all that leads a call to it, without a GPU: see `simulate_images_simple`."""

from __future__ import annotations

import pytest

SCRIPT = "simulate_images_simple.py"
LIMITS = {
    "bilinear": 1e-6,
    "bicubic": 1e-6,
    "bilinear-sharp": 1e-6,
    "lanczos": 1e-6,
    "nearest": 2e-4,  # of uint16
    "bicubic-pillow": 1e-6,
    "bicubic-uint8": 1e-6,
    "bicubic-float32": 1e-6,
    "float16": 0.07,
    "bfloat16": 0.51,
    "uint8": 0.5,
    "letterbox": 1e-4,
    "transform": 1e-6,
    "ragged-crop": 1e-4,
    "rows-CTPP": 1e-6,
    "rows-PPC": 1e-6,
    "rows-padded": 0,
    "each": 1e-4,
    "staged": 1e-4,
    "staged-ragged": 1e-4,
    "plan": 0,
    "graph-of-fewer": 0,
    "staged-plan": 1e-4,
    "plan-out": 1e-4,
}


@pytest.mark.parametrize("name", LIMITS)
def test_the_answer_is_that_of_the_reference(answers, name):
    assert answers[name] <= LIMITS[name]


def test_rows_come_with_grid_and_mask(answers):
    assert answers["grid"] == answers["mask"] == 1


def test_images_on_the_host_are_one_upload(answers):
    assert answers["staged-uploads"] == answers["staged-ragged-uploads"] == 1


def test_a_plan_reserves_nothing_uploads_64_bytes_per_image_and_launches_once(answers):
    assert answers["plan-cost"] == [0, [3 * 64], ["images_kernel"]]


def test_a_plan_for_images_on_the_host_uploads_once_and_copies_the_way_back(answers):
    assert answers["staged-plan-cost"] == [0, 2]
