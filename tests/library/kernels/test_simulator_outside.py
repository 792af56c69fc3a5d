"""Boxes beyond the frame, float32 frames and many channels without a GPU: the kernels' answers in Numba's simulator."""

from __future__ import annotations

from itertools import product

import pytest
from gpu import PAD_MODES, SETS, name_of

SCRIPT = "simulate_outside.py"
BEYOND = [f"{mode}-{name_of(options)}" for mode, options in product(PAD_MODES, SETS)]
CHANNELS = [
    f"channels-{count}{name}"
    for count, name in product((2, 5, 13), ("", "-antialias", "-letterbox", "-antialias-letterbox"))
]
LIMITS = {"float32": 2e-3, "float16": 0.26, "uint8": 0.5 + 2e-3, "beyond": 2e-3}


@pytest.mark.parametrize("name", BEYOND)
def test_every_way_beyond_the_frame_equals_the_reference(answers, name):
    assert answers[name] <= 1e-3
    assert answers[f"transform-{name}"] <= (1e-5 if "letterbox" in name else 0)


@pytest.mark.parametrize("mode", PAD_MODES)
@pytest.mark.parametrize("side", [1, 2])
def test_frames_of_one_pixel_go_on_for_ever_too(answers, mode, side):
    assert answers[f"tiny-{mode}-{side}"] <= 1e-3


@pytest.mark.parametrize("name", CHANNELS)
def test_other_numbers_of_channels(answers, name):
    assert answers[name] <= 1e-3


@pytest.mark.parametrize("kind", LIMITS)
@pytest.mark.parametrize("filtered", ["", "-antialias"])
def test_frames_of_float32_are_taken_as_they_are(answers, kind, filtered):
    assert answers[f"floats-{kind}{filtered}"] <= LIMITS[kind]


def test_float16_overflows_to_infinity(answers):
    assert answers["infinite-float16"] == 1.0


@pytest.mark.parametrize("kind", ["float32", "float32-antialias", "uint8", "uint8-antialias"])
def test_what_cannot_be_made_fills_its_item(answers, kind):
    assert answers[f"bad-{kind}"] == 1.0
