"""The four lines of memory, measured in fresh processes."""

import pytest
from worker_targets import MIB

from octopus.errors import InputError
from octopus_study.errors import MeasureError
from octopus_study.measure import Case, measure_memory, memory_rows, validate_rows

CASE = Case("stage_timing", "synthetic-visdrone", "visdrone", 100)
SLACK = 2 * MIB  # the kernel counts pages per CPU and sums them up late


def test_the_growth_is_that_of_the_run_alone():
    lines = measure_memory("worker_targets:blocks", kwargs={"keep": 48, "fixed": 32})
    assert lines.payload == 48 * MIB
    assert abs(lines.device_delta - 48 * MIB) < SLACK
    assert lines.fixed > 32 * MIB
    assert lines.allocator_peak is None


def test_temporaries_count_on_a_cpu():
    lines = measure_memory("worker_targets:blocks", kwargs={"keep": 8, "scratch": 64, "allocator": 77})
    assert abs(lines.device_delta - 64 * MIB) < SLACK
    assert lines.allocator_peak == 77


def test_garbage_of_the_imports_does_not_hide_the_growth():
    lines = measure_memory("worker_targets:littered", kwargs={"litter": 64, "keep": 32})
    assert abs(lines.device_delta - 32 * MIB) < SLACK
    assert lines.fixed < 48 * MIB


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("worker_targets:broken", "ImportError: No module named 'cvcuda'"),
        ("worker_targets:silent", "worker_targets:silent was not measured: its process ended with code 3"),
        ("worker_targets:absent", "has no attribute 'absent'"),
        ("no_such_module:blocks", "No module named 'no_such_module'"),
    ],
)
def test_a_failing_process_says_why(target, said):
    with pytest.raises(MeasureError, match=said):
        measure_memory(target)


@pytest.mark.parametrize(("target", "meter"), [("blocks", "rss"), ("worker_targets:blocks", "vram")])
def test_wrong_orders_are_refused(target, meter):
    with pytest.raises(InputError, match="module:function"):
        measure_memory(target, meter=meter)


def test_rows_have_four_lines_and_missing_ones_say_why():
    rows = memory_rows(CASE, "octopus", "worker_targets:blocks", kwargs={"keep": 4})
    validate_rows(rows)
    quantities = ["payload", "allocator_peak", "device_delta", "fixed"]
    assert [row.quantity for row in rows] == [f"memory_{name}" for name in quantities]
    assert {(row.layer, row.unit) for row in rows} == {("memory", "bytes")}
    assert rows[0].value == 4 * MIB
    assert rows[1].answer == "unavailable: the method has no allocator of its own"


def test_a_failing_method_gives_four_unavailable_rows():
    rows = memory_rows(CASE, "cvcuda", "worker_targets:broken")
    validate_rows(rows)
    assert len(rows) == 4
    assert all(row.value is None and "No module named 'cvcuda'" in row.answer for row in rows)


def test_a_peak_that_stays_is_the_reason_for_no_growth():
    rows = memory_rows(CASE, "octopus", "worker_targets:unforgetting")
    validate_rows(rows)
    assert rows[2].value is None
    assert rows[2].reason.endswith("forget the peak of resident memory (clear_refs): Not a directory")
    assert rows[3].value is not None
