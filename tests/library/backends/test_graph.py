"""A CUDA graph's way through the driver, with a driver that notes its calls."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from octopus.backends.cuda.graph import Graph

driver = pytest.importorskip("cuda.bindings.driver")
OK, FAILED = driver.CUresult.CUDA_SUCCESS, driver.CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
STREAM = SimpleNamespace(handle="own"), SimpleNamespace(handle="default")


@pytest.fixture
def calls(monkeypatch):
    """Calls of the driver in their order; answers that differ from success can be put into `answers`."""
    noted = SimpleNamespace(order=[], answers={})
    results = {
        "cuStreamBeginCapture": (OK,),
        "cuStreamEndCapture": (OK, "graph"),
        "cuGraphInstantiate": (OK, "executable"),
        "cuGraphDestroy": (OK,),
        "cuGraphExecDestroy": (OK,),
        "cuGraphLaunch": (OK,),
    }

    def stand_in(name):
        def call(*arguments):
            noted.order.append((name.removeprefix("cu"), arguments[0]))
            return noted.answers.get(name, results[name])

        return call

    for name in results:
        monkeypatch.setattr(driver, name, stand_in(name))
    return noted


def test_work_is_captured_on_one_stream_and_launched_on_another(calls):
    graph = Graph(STREAM[0], lambda: calls.order.append(("work", None)))
    graph.launch(STREAM[1])
    graph.launch(STREAM[1])
    del graph
    assert calls.order == [
        ("StreamBeginCapture", "own"),
        ("work", None),
        ("StreamEndCapture", "own"),
        ("GraphInstantiate", "graph"),
        ("GraphDestroy", "graph"),
        ("GraphLaunch", "executable"),
        ("GraphLaunch", "executable"),
        ("GraphExecDestroy", "executable"),
    ]


def test_work_that_fails_ends_the_capture_and_leaves_no_graph(calls):
    with pytest.raises(ZeroDivisionError):
        Graph(STREAM[0], lambda: 1 / 0)
    assert [name for name, _ in calls.order] == ["StreamBeginCapture", "StreamEndCapture", "GraphDestroy"]


@pytest.mark.parametrize(
    ("name", "answer"), [("cuStreamEndCapture", (FAILED, None)), ("cuGraphInstantiate", (FAILED, None))]
)
def test_what_the_driver_refuses_is_an_error(calls, name, answer):
    calls.answers[name] = answer
    with pytest.raises(RuntimeError, match="CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"):
        Graph(STREAM[0], lambda: None)


def test_a_failed_launch_is_an_error(calls):
    graph = Graph(STREAM[0], lambda: None)
    calls.answers["cuGraphLaunch"] = (FAILED,)
    graph._launch = driver.cuGraphLaunch
    with pytest.raises(RuntimeError, match="INVALIDATED"):
        graph.launch(STREAM[1])
