"""Processes that work for this one: what they answer, and what is said when they die, hang or speak too much."""

import os
import time
from collections.abc import Iterator

import pytest

from octopus.errors import InputError
from octopus_study.errors import Unavailable
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


@pytest.mark.parametrize(
    ("target", "kind", "said"),
    [
        ("wrong", InputError, "^so not$"),
        ("fails", Unavailable, "^ZeroDivisionError: division by zero$"),
        ("absent", Unavailable, "has no attribute 'absent'"),
    ],
)
def test_a_call_that_raises_raises_here_and_the_process_goes_on(worker, target, kind, said):
    process = worker.ask(of("process"), seconds=20)
    with pytest.raises(kind, match=said):
        worker.ask(of(target), seconds=20)
    assert worker.ask(of("process"), seconds=20) == process == worker.pid != os.getpid()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("dies", "the process ended with code 1: CUDA error: out of memory"),
        ("killed", "the process ended by SIGKILL"),
        ("leaves_a_child", "the process ended with code 7"),
    ],
)
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
    before = worker.ask("found", seconds=20)
    time.sleep(0.3)
    assert worker.ask("found", seconds=20) - before > 5


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
