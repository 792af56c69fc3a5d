"""Digits and units as a reader sees them."""

import math

import pytest
from frames import TIME, number

from octopus_study.report.tables import cells
from octopus_study.report.text import interval_text, quantity_text, range_text
from octopus_study.status import read_answer
from octopus_study.units import significant


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.19234, "ms", "0.192 ms"),
        (0.0068, "ms", "6.80 µs"),
        (1234.4, "ms", "1.23 s"),
        (0.9491, "fraction", "94.9 %"),
        (0.9991, "fraction", "99.91 %"),
        (0.99982, "fraction", "99.98 %"),
        (1.0, "fraction", "100 %"),
        (5.0, "ratio", "5.00\u00d7"),
        (204 * 2**20, "bytes", "204 MiB"),
        (3.5 * 2**10, "bytes", "3.50 KiB"),
        (12 * 2**30, "bytes", "12.0 GiB"),
        (41.0, "px", "41 px"),
        (10500.0, "count", "10\u202f500"),
        (-1.5, "ms", "\u22121.50 ms"),
        (4588.0, "GB/s", "4588 GB/s"),
        (math.nan, "ms", "\u2013 ms"),
    ],
)
def test_quantity_text(value: float, unit: str, text: str) -> None:
    assert quantity_text(value, unit) == text


def test_rounding_up_to_the_next_power_of_ten_gains_no_digit() -> None:
    assert significant(99.97) == "100"


def test_an_interval_has_digits_enough_to_tell_its_ends_apart() -> None:
    assert interval_text(1.0002, 1.0001, 1.0004, "ratio") == "1.0001\u20131.0004\u00d7"
    assert interval_text(647.56, 647.56, 647.56, "MB") == "648\u2013648 MB"
    assert interval_text(1.0, math.nan, math.nan, "ms") == ""
    assert interval_text(-0.02, -0.03, -0.01, "fraction") == "\u22123.00\u00a0to\u00a0\u22121.00 %"


def test_a_value_beside_its_interval_has_as_many_digits() -> None:
    narrow, wide = (number(TIME, "ms", 0.22241, *ends) for ends in ((0.22233, 0.22249), (0.21, 0.24)))
    assert (narrow.text, narrow.precise) == ("0.222 ms", "0.2224 ms")
    assert wide.precise == wide.text == "0.222 ms"
    assert cells.with_interval(narrow) == "0.2224 [0.2223\u20130.2225] ms"


def test_a_range_is_in_the_unit_of_its_greatest_value() -> None:
    assert range_text(0.45, 0.99982, "fraction") == "45.0\u201399.98 %"
    assert range_text(0.99981, 0.99982, "fraction") == "99.98 %"
    assert range_text(0.01, 0.02, "ms") == "10.0\u201320.0 µs"
    assert range_text(15.21, 129.1, "ratio") == "15.2\u2013129\u00d7"


@pytest.mark.parametrize(
    ("note", "why"),
    [
        ("different: largest error 0.0088 exceeds 0.0044; rounds to uint8", "rounds to uint8"),
        ("different: largest error 0.0088 exceeds 0.0044", "by as much as 0.00880, more than 0.00440"),
        (
            "unavailable: RuntimeError: NVCV_ERROR_OVERFLOW: Output size exceeds 2147483647.",
            "CV-CUDA takes no tensor of 2\u00b3\u00b9 bytes or more",
        ),
        ("unavailable: DALI is not installed (pip install -e './workflow[x]')", "DALI is not installed"),
        ("unavailable: it can't be loaded: [ONNXRuntimeError] : 1 : FAIL : twice", "it can't be loaded"),
        ("unavailable: MemoryError: Can't allocate 31 bytes on device 0.", "too little memory was free"),
        ("unavailable: beside others 6,021 bytes are needed, 4,584 are free", "too little memory was free"),
        ("unavailable: it needs 6,021 bytes on the GPU for this batch, 4,584 are free", "too little memory was free"),
        (
            "unavailable: The memory of a.memory:probe was not measured: exit status 1, ModuleNotFoundError: No a",
            "the process that measures it failed",
        ),
        (
            "unavailable: one batch takes 0.77 s: too slow for 20 blocks beside the others (arena.max_seconds = 3)",
            "too slow for 20 blocks beside the others",
        ),
    ],
)
def test_a_reason_is_the_cause_alone(note: str, why: str) -> None:
    assert read_answer(note).reason == why
