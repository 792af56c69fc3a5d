"""The simple CUDA kernel, and all that leads a call to it, without a GPU: see `simulate_images_simple`."""

from __future__ import annotations

import pytest

SCRIPT = "simulate_images_simple.py"
NAMES = {
    0: ("rows-padded", "plan", "graph-of-fewer"),
    1e-6: (
        "bilinear", "bicubic", "bilinear-sharp", "lanczos", "bicubic-pillow", "bicubic-uint8", "bicubic-float32",
        "transform", "rows-CTPP", "rows-PPC",
    ),
    1e-4: (
        "out", "stream", "other-library", "host", "letterbox", "ragged-crop", "crop", "each", "staged",
        "staged-ragged", "staged-plan", "plan-out",
    ),
    2e-4: ("nearest",),  # of uint16
    0.07: ("float16",),
    0.5: ("uint8",),
    0.51: ("bfloat16",),
}  # fmt: skip
LIMITS = {name: limit for limit, names in NAMES.items() for name in names}


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


# Of calls of which more is wanted than a launch: copies by themselves and by launches, launches.
LONG = {name: [1, 0, 1] for name in ("out", "stream", "other-library", "host")}
LONG |= {"letterbox": [2, 0, 1], "rows-padded": [1, 0, 2]}


def test_a_call_like_the_one_before_is_one_launch_that_copies_its_table(answers):
    """And reserves no memory but for its result."""
    costs = answers["costs"]
    assert {name: costs.pop(name)[1:] for name in LONG} == LONG
    assert len(costs) == 14 and all(cost == [1, 0, 1, 1] for cost in costs.values())


def test_a_call_like_the_one_before_works_on_the_stream_that_is_current(answers):
    """In memory for tables of that stream, even if many others have been used since."""
    found, long, short = answers["elsewhere"], [1, 0, 1], [0, 1, 1]
    assert found["error"] <= 1e-4 and found["handles"] == [7, 9, 9, 7, 7]
    assert found["streams"] == [long, long, short, long, short] and found["then"][0] == short


def test_a_call_like_the_one_before_is_refused_where_that_would_be(answers):
    """While a graph is captured, on another GPU, and by the driver; a copy that fails is made in the other way."""
    captured, other_gpu, failed = answers["elsewhere"]["words"]
    assert "can't be captured in a graph" in captured and "GPU 1 is current" in other_gpu
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in failed
    assert answers["elsewhere"]["then"][1:] == [[0, 0, 0], [0, 0, 0], [1, 1, 1], [1, 1, 0], [0, 1, 1]]
