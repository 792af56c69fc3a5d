"""The four lines of memory, measured in fresh processes."""

from __future__ import annotations

import numpy as np
import pytest
from memory_targets import MIB

from octopus.errors import InputError
from octopus_study.errors import MeasureError
from octopus_study.measure import Case, _memory_child, measure_memory, memory_rows, payload, validate_rows

CASE = Case("stage_timing", "synthetic-visdrone", "visdrone", 100)
SLACK = 2 * MIB  # the kernel counts pages per CPU and sums them up late


def test_payload_is_exact():
    frame = np.zeros((1080, 1920, 3), np.uint8)
    assert payload(frame) == 1080 * 1920 * 3
    assert payload(frame, ((1000, 3, 224, 224), "float32")) == 1080 * 1920 * 3 + 1000 * 3 * 224 * 224 * 4
    assert payload() == 0
    with pytest.raises(InputError, match="found str"):
        payload("frame")


def test_the_growth_is_that_of_the_run_alone():
    lines = measure_memory("memory_targets:blocks", kwargs={"keep": 48, "fixed": 32})
    assert lines.payload == 48 * MIB
    assert abs(lines.device_delta - 48 * MIB) < SLACK
    assert lines.fixed > 32 * MIB
    assert lines.allocator_peak is None


def test_temporaries_count_on_a_cpu():
    lines = measure_memory("memory_targets:blocks", kwargs={"keep": 8, "scratch": 64, "allocator": 77})
    assert abs(lines.device_delta - 64 * MIB) < SLACK
    assert lines.allocator_peak == 77


def test_garbage_of_the_imports_does_not_hide_the_growth():
    lines = measure_memory("memory_targets:littered", kwargs={"litter": 64, "keep": 32})
    assert abs(lines.device_delta - 32 * MIB) < SLACK
    assert lines.fixed < 48 * MIB


def test_the_sampling_thread_sees_the_same(monkeypatch):
    """Where the kernel can't reset the peak, a thread watches."""
    monkeypatch.setattr(_memory_child, "_reset_peak", lambda: False)
    growth, kept = _memory_child.ResidentMemory().growth(lambda: np.ones(64 * MIB, np.uint8))
    assert kept.nbytes == 64 * MIB
    assert 60 * MIB <= growth <= 64 * MIB + 16 * MIB


def test_output_of_the_method_does_not_disturb():
    assert measure_memory("memory_targets:chatty").payload == MIB


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("memory_targets:broken", "ImportError: No module named 'cvcuda'"),
        ("memory_targets:silent", "memory_targets:silent was not measured: its process ended with code 3"),
        ("memory_targets:absent", "has no attribute 'absent'"),
        ("no_such_module:blocks", "No module named 'no_such_module'"),
    ],
)
def test_a_failing_process_says_why(target, said):
    with pytest.raises(MeasureError, match=said):
        measure_memory(target)


def test_a_stuck_process_is_ended():
    with pytest.raises(MeasureError, match="its process gave no answer for 1 s"):
        measure_memory("memory_targets:stuck", timeout=1)


@pytest.mark.parametrize(("target", "meter"), [("blocks", "rss"), ("memory_targets:blocks", "vram")])
def test_wrong_orders_are_refused(target, meter):
    with pytest.raises(InputError, match="module:function"):
        measure_memory(target, meter=meter)


def test_rows_have_four_lines_and_missing_ones_say_why():
    rows = memory_rows(CASE, "octopus", "memory_targets:blocks", kwargs={"keep": 4}, answer="same")
    validate_rows(rows)
    assert [row.quantity for row in rows] == [
        "memory_payload",
        "memory_allocator_peak",
        "memory_device_delta",
        "memory_fixed",
    ]
    assert {(row.layer, row.unit) for row in rows} == {("memory", "bytes")}
    assert rows[0].value == 4 * MIB
    assert rows[1].answer == "unavailable: the method has no allocator of its own"


def test_a_failing_method_gives_four_unavailable_rows():
    rows = memory_rows(CASE, "cvcuda", "memory_targets:broken")
    validate_rows(rows)
    assert len(rows) == 4
    assert all(row.value is None and "No module named 'cvcuda'" in row.answer for row in rows)
