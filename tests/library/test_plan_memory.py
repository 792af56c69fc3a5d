"""The memory that plans share, without a GPU: which stream waits for which, and what a refusal leaves behind."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from octopus import InputError
from octopus.arrays import memory, streams
from octopus.arrays.views import ArrayView


class Queue:
    """A stream that notes for whom it waits."""

    def __init__(self, name, log):
        self.name, self.log = name, log

    def wait(self, other):
        self.log.append((self.name, other.name))


@pytest.fixture
def log(monkeypatch):
    for module in (streams, memory):
        monkeypatch.setattr(module, "current", lambda: SimpleNamespace(device_id=0))
    monkeypatch.setattr(
        streams, "driver", lambda: SimpleNamespace(cuCtxGetDevice=lambda: (0, 0))
    )  # GPU 0 is current
    monkeypatch.setattr(streams.backends.cuda, "stream_of", lambda stream: stream)
    monkeypatch.setattr(memory, "is_capturing", lambda queue: queue.name == "captured")
    monkeypatch.setattr(streams, "is_capturing", lambda queue: queue.name == "captured")
    return []


def array_on(ordinal, after=None):
    return ArrayView(64, (4,), (4,), np.dtype(np.float32), "cuda", "octopus", None, ordinal, after)


def test_a_run_on_another_stream_waits_for_the_one_before_and_for_producers(log):
    first, second, producer = (Queue(name, log) for name in ("first", "second", "producer"))
    held = memory.PlanMemory(first)
    assert held.enter(first, (array_on(0),)) is first and log == []
    assert held.enter(second, (array_on(0, producer), array_on(0, second))) is second
    assert log == [("second", "first"), ("second", "producer")]


def test_capturing_a_graph_leaves_the_plan_where_it_is(log):
    first, captured = Queue("first", log), Queue("captured", log)
    held = memory.PlanMemory(first)
    assert held.enter(captured, (array_on(0),)) is captured
    assert held.queue is first and log == []


def test_a_graph_waits_for_no_stream_but_its_own(log):
    first, captured, producer = (Queue(name, log) for name in ("first", "captured", "producer"))
    held = memory.PlanMemory(first)
    with pytest.raises(InputError, match="no part of the graph being captured"):
        held.enter(captured, (array_on(0), array_on(0, producer)))
    assert held.queue is first and log == []
    held.enter(captured, (array_on(0, captured), array_on(0, Queue("captured", log))))
    assert log == [("captured", "captured")]


def test_arrays_on_another_gpu_are_refused_before_the_plan_moves(log):
    first, second = Queue("first", log), Queue("second", log)
    held = memory.PlanMemory(first)
    with pytest.raises(InputError, match="an array lies on GPU 1 but GPU 0 is in use"):
        held.enter(second, (array_on(0), array_on(1)))
    assert held.queue is first and log == []


def test_a_plan_is_refused_in_a_thread_of_another_gpu(log, monkeypatch):
    first = Queue("first", log)
    held = memory.PlanMemory(first)
    monkeypatch.setattr(memory, "current", lambda: SimpleNamespace(device_id=1))
    with pytest.raises(InputError, match="the plan's memory lies on GPU 0 but this thread works with GPU 1"):
        held.enter(Queue("second", log), ())
    assert held.queue is first and log == []


@pytest.mark.parametrize("dtype, pointer", [("uint16", 65), ("float32", 66), ("float64", 68)])
def test_values_between_their_places_are_refused(log, dtype, pointer):
    first = Queue("first", log)
    held, good = memory.PlanMemory(first), array_on(0)
    wrong = dataclasses.replace(good, dtype=np.dtype(dtype), pointer=pointer)
    with pytest.raises(
        InputError, match=rf"must lie at multiples of {wrong.dtype.itemsize} bytes, found some at 0x4"
    ):
        held.enter(Queue("second", log), (good, wrong))
    assert held.queue is first and log == []
    on_host = dataclasses.replace(wrong, device="cpu")
    assert held.enter(first, (good, on_host)) is first
