"""Two pipelines by every method: the same results, the right order, and copies that can't be left out unseen."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_torch

from octopus_study.studies.concurrency.methods import (
    ALONE,
    METHODS,
    AsyncPipeline,
    Prefetch,
    make,
    pipelines_of,
)
from octopus_study.studies.concurrency.models import NAMES, SATELLITE_MATCHING, VISUAL_ODOMETRY
from octopus_study.studies.concurrency.pipeline import stage_runs

BOTH = [name for name in METHODS if name not in ALONE]


def run(name, pipelines=None, captured=()):
    method = make(name, tiny_torch.device(), pipelines or tiny_torch.pipelines(), captured)
    try:
        return method.run(), method.check()
    finally:
        method.close()


def expected(name):
    values = np.arange(6, dtype=np.float32) + NAMES.index(name)
    return (values + 2 * values) * 3


@pytest.mark.parametrize("name", METHODS)
def test_every_method_gives_the_results_of_its_pipelines(name):
    latencies, found = run(name, captured=("visual_odometry-1", "satellite_matching-2"))
    assert tuple(latencies) == pipelines_of(name) or set(latencies) == set(pipelines_of(name))
    for pipeline in pipelines_of(name):
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
    method = make("two-streams", tiny_torch.device(), tiny_torch.pipelines(log))
    method.run()
    assert log == ["satellite_matching-1", "visual_odometry-1", "visual_odometry-2", "satellite_matching-2"]


@pytest.mark.parametrize("kind", [Prefetch, AsyncPipeline])
def test_a_copy_ahead_that_is_left_out_is_seen(kind, monkeypatch):
    method = kind(tiny_torch.device(), tiny_torch.pipelines())
    monkeypatch.setattr(kind, "_copy_next", lambda self: None)
    found = method.check()
    method.close()
    assert all(np.isnan(array).all() for name, array in found.items() if name.endswith("points"))


def test_each_model_runs_by_itself_on_what_the_models_before_it_gave():
    log = []
    pipelines = tiny_torch.pipelines(log)
    runs = stage_runs(tiny_torch.device(), pipelines.values())
    assert list(runs) == log == [f"{name}-{number}" for name in NAMES for number in (1, 2)]
    del log[:]
    for name in reversed(runs):
        runs[name]()
    assert log == list(reversed(runs))
