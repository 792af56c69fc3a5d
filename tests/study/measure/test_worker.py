"""Processes that work for this one: what they answer, how they die or hang; the four lines of memory."""

import os
import time
from collections.abc import Iterator

import pytest
from worker_targets import MIB

from octopus.errors import InputError
from octopus_study.errors import MeasureError, Unavailable
from octopus_study.measure import Case, measure_memory, memory_rows, validate_rows
from octopus_study.measure.worker import Worker, WorkerError


def of(name: str) -> str:
    return f"worker_targets:{name}"


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker("the process") as worker:
        yield worker


def test_arguments_and_results_travel_whatever_a_library_prints(worker):
    assert worker.ask(of("echo"), 1, seconds=20, two=[2]) == ((1,), {"two": [2]})
    assert len(worker.ask(of("large"), 1 << 22, seconds=20)) == 1 << 22
    assert worker.ask(of("read_input"), seconds=20) == b""


@pytest.mark.parametrize(("target", "kind", "said"), [
    ("wrong", InputError, "^so not$"),
    ("fails", Unavailable, "^ZeroDivisionError: division by zero$"),
    ("absent", Unavailable, "has no attribute 'absent'"),
])  # fmt: skip
def test_a_call_that_raises_raises_here_and_the_process_goes_on(worker, target, kind, said):
    process = worker.ask(of("process"), seconds=20)
    with pytest.raises(kind, match=said):
        worker.ask(of(target), seconds=20)
    assert worker.ask(of("process"), seconds=20) == process == worker.pid != os.getpid()


@pytest.mark.parametrize(("target", "said"), [
    ("dies", "the process ended with code 1: CUDA error: out of memory"),
    ("killed", "the process ended by SIGKILL"),
    ("leaves_a_child", "the process ended with code 7"),
])  # fmt: skip
def test_a_process_that_dies_says_how_with_its_last_words(worker, target, said):
    began = time.monotonic()
    with pytest.raises(WorkerError, match=said):
        worker.ask(of(target), seconds=60)
    assert time.monotonic() - began < 15
    with pytest.raises(WorkerError, match="the process is not running"):
        worker.tell(of("echo"))
    worker.start()
    assert worker.ask(of("echo"), seconds=20)


def test_a_process_that_hangs_is_killed_in_time(worker):
    process = worker.ask(of("process"), seconds=20)
    with pytest.raises(WorkerError, match=r"the process gave no answer for 0\.5 s: still loading"):
        worker.ask(of("hangs"), seconds=0.5)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    assert worker.pid == 0


def test_something_else_may_be_done_until_the_answer_comes(worker):
    looks = []
    with pytest.raises(WorkerError):
        worker.ask(of("hangs"), seconds=1.8, meanwhile=lambda: looks.append(1))
    assert len(looks) >= 2


def test_only_the_process_gets_its_environment(worker):
    with Worker("another", {"OCTOPUS_TOLD": "this"}) as other:
        assert other.ask(of("environment"), "OCTOPUS_TOLD", seconds=20) == "this"
    assert worker.ask(of("environment"), "OCTOPUS_TOLD", seconds=20) is None


def test_an_object_is_kept_and_read_between_requests(worker):
    worker.keep(of("Counter"), 100)
    assert worker.hear(20) is None
    before, end = worker.ask("found", seconds=20), time.monotonic() + 20
    while worker.ask("found", seconds=20) - before <= 5:
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_process_ends_with_what_uses_it_and_closing_twice_is_nothing():
    with Worker("the process") as worker:
        process = worker.ask(of("process"), seconds=20)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    worker.close()
    with pytest.raises(ZeroDivisionError), Worker("the process") as worker:
        worker.tell(of("hangs"))
        raise ZeroDivisionError
    assert worker.pid == 0


CASE = Case("stage_timing", "synthetic-visdrone", "visdrone", 100)
SLACK = 2 * MIB  # the kernel counts pages per CPU and sums them up late


@pytest.mark.parametrize(("given", "growth", "fixed", "peak"), [
    ({"keep": 48, "fixed": 32}, 48, 32, None), ({"keep": 8, "scratch": 64, "allocator": 77}, 64, 0, 77),
], ids=["of the run alone", "of temporaries, on a CPU"])  # fmt: skip
def test_the_growth_is_measured(given, growth, fixed, peak):
    lines = measure_memory("worker_targets:blocks", kwargs=given)
    assert (lines.payload, lines.allocator_peak) == (given["keep"] * MIB, peak)
    assert abs(lines.device_delta - growth * MIB) < SLACK
    assert lines.fixed > fixed * MIB


def test_garbage_of_the_imports_does_not_hide_the_growth():
    lines = measure_memory("worker_targets:littered", kwargs={"litter": 64, "keep": 32})
    assert abs(lines.device_delta - 32 * MIB) < SLACK
    assert lines.fixed < 48 * MIB


@pytest.mark.parametrize(("target", "said"), [
    ("worker_targets:broken", "ImportError: No module named 'cvcuda'"),
    ("worker_targets:silent", "worker_targets:silent was not measured: its process ended with code 3"),
    ("worker_targets:absent", "has no attribute 'absent'"),
    ("no_such_module:blocks", "No module named 'no_such_module'"),
])  # fmt: skip
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
