"""The memory that plans share, on a pretended GPU: which stream waits for which, and what a refusal leaves behind."""

import dataclasses

import numpy as np
import pytest

from octopus import InputError
from octopus.arrays.plan import PlanMemory
from octopus.arrays.views import ArrayView


def array_on(ordinal, after=None):
    return ArrayView(64, (4,), (4,), np.dtype(np.float32), "cuda", "octopus", None, ordinal, after)


@pytest.fixture
def held(gpu):
    """Memory of a plan on the stream 5; work on the stream 7 goes into a graph."""
    gpu.captured.add(7)
    return PlanMemory(gpu.stream(5))


def test_a_run_on_another_stream_waits_for_the_one_before_and_for_producers(gpu, held):
    first, second, producer = map(gpu.stream, (5, 6, 9))
    assert held.enter(first, (array_on(0),)) is first and gpu.waits == []
    assert held.enter(second, (array_on(0, producer), array_on(0, second))) is second
    assert gpu.waits == [(6, 5), (6, 9)]


def test_a_graph_leaves_the_plan_where_it_is_and_waits_for_no_stream_but_its_own(gpu, held):
    first, captured, producer = map(gpu.stream, (5, 7, 9))
    assert held.enter(captured, (array_on(0),)) is captured and held.queue is first
    with pytest.raises(InputError, match="no part of the graph being captured"):
        held.enter(captured, (array_on(0), array_on(0, producer)))
    assert held.queue is first and gpu.waits == []


def test_what_lies_on_another_gpu_or_between_its_places_is_refused_before_the_plan_moves(gpu, held):
    first, second, good = gpu.stream(5), gpu.stream(6), array_on(0)
    with pytest.raises(InputError, match="an array lies on GPU 1 but GPU 0 is in use"):
        held.enter(second, (good, array_on(1)))
    for dtype, pointer in (("uint16", 65), ("float32", 66), ("float64", 68)):
        wrong = dataclasses.replace(good, dtype=np.dtype(dtype), pointer=pointer)
        size = wrong.dtype.itemsize
        with pytest.raises(InputError, match=rf"must lie at multiples of {size} bytes, found some at 0x4"):
            held.enter(second, (good, wrong))
        assert held.enter(first, (good, dataclasses.replace(wrong, device="cpu"))) is first
    gpu.device_id = gpu.device = 1
    with pytest.raises(InputError, match="the plan's memory lies on GPU 0 but this thread works with GPU 1"):
        held.enter(second, ())
    assert held.queue is first and gpu.waits == []
