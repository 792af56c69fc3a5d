"""Two pipelines by every method: the same results, the right order, and copies that can't be left out unseen."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_torch

from octopus_study.studies.concurrency.arms import ALONE, ARMS, InProcess
from octopus_study.studies.concurrency.models import NAMES, SATELLITE_MATCHING, VISUAL_ODOMETRY

HERE = [name for name, arm in ARMS.items() if not arm.processes]
BOTH = [name for name in HERE if name not in ALONE]


def make(name, log=None):
    return InProcess(ARMS[name], tiny_torch.device(), tiny_torch.pipelines(log))


def run(name):
    method = make(name)
    try:
        return method.run(), method.check()
    finally:
        method.close()


def expected(name):
    values = np.arange(6, dtype=np.float32) + NAMES.index(name)
    return (values + 2 * values) * 3


@pytest.mark.parametrize("name", HERE)
def test_every_method_gives_the_results_of_its_pipelines(name):
    latencies, found = run(name)
    assert set(latencies) == set(ARMS[name].pipelines)
    for pipeline in ARMS[name].pipelines:
        np.testing.assert_array_equal(found[f"{pipeline}.points"], expected(pipeline))
        np.testing.assert_array_equal(found[f"{pipeline}.answer"], [np.median(expected(pipeline))])


@pytest.mark.parametrize("name", BOTH)
def test_a_result_is_there_after_it_was_asked_for_and_the_critical_one_is_not_last(name):
    latencies, _ = run(name)
    assert all(value > 0 for value in latencies.values())
    if name not in ("two-streams", "two-threads"):
        assert latencies[VISUAL_ODOMETRY] <= latencies[SATELLITE_MATCHING]


def test_two_streams_begin_where_the_host_never_waits_and_end_with_the_less_critical():
    log = []
    make("two-streams", log).run()
    assert log == ["satellite_matching-1", "visual_odometry-1", "visual_odometry-2", "satellite_matching-2"]


@pytest.mark.parametrize("name", ["prefetch", "pipeline"])
def test_a_copy_ahead_that_is_left_out_is_seen(name, monkeypatch):
    method = make(name)
    monkeypatch.setattr(method, "copy_next", lambda: None)
    found = method.check()
    method.close()
    assert all(np.isnan(array).all() for name, array in found.items() if name.endswith("points"))
