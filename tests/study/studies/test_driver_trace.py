"""Waits of the host in a profiler's trace."""

from __future__ import annotations

import pytest

from octopus_study.peers.availability import Unavailable
from octopus_study.studies.trace import CALLS, count_waits, waits_in


def event(category, name, start, length=1.0):
    return {"cat": category, "name": name, "ts": start, "dur": length}


CALLED = event("user_annotation", "octopus: calls", 100.0, 50.0)
ON_GPU = event("gpu_user_annotation", "octopus: calls", 160.0, 5.0)
BEHIND = event("cuda_sync", "Context Sync", 150.5)


@pytest.mark.parametrize(("starts", "count"), [([], 0), ([100.0, 149.9], 2), ([99.0, 120.0, 151.0], 1)])
def test_waits_within_the_calls_are_counted(starts, count):
    waits = [event("cuda_sync", "Stream Sync", start) for start in starts]
    others = [
        event("cuda_runtime", "cudaStreamSynchronize", 120.0),
        event("cuda_sync", "Stream Wait Event", 130.0),
        {"ph": "M", "name": "process_name"},
    ]
    assert waits_in([CALLED, ON_GPU, *others, *waits, BEHIND]) == count


def test_a_trace_without_the_wait_behind_the_calls_tells_nothing():
    with pytest.raises(Unavailable, match="no wait"):
        waits_in([CALLED, event("cuda_sync", "Stream Sync", 120.0)])


@pytest.mark.gpu
def test_the_trace_tells_a_wait_from_a_launch():
    torch = pytest.importorskip("torch")
    one = torch.ones(1, device="cuda")
    assert count_waits(lambda: one + 1) == 0
    assert count_waits(lambda: (one + 1).item()) == 1
    assert count_waits(lambda: [(one + 1).item() for _ in range(3)]) == 3
    assert CALLS > 1
