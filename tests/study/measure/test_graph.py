"""A CUDA graph's way through the driver, with a driver that notes its calls."""

from types import SimpleNamespace

import pytest

from octopus_study.measure.graph import Graph

driver = pytest.importorskip("cuda.bindings.driver")
OK, FAILED = driver.CUresult.CUDA_SUCCESS, driver.CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
OWN, DEFAULT = SimpleNamespace(handle="own"), SimpleNamespace(handle="default")
ANSWERS = {
    "StreamBeginCapture": (OK,), "StreamEndCapture": (OK, "graph"), "GraphInstantiate": (OK, "executable"),
    "GraphDestroy": (OK,), "GraphExecDestroy": (OK,), "GraphLaunch": (OK,),
}  # fmt: skip


@pytest.fixture
def calls(monkeypatch):
    """Calls of the driver in their order; answers that differ from success can be put into `answers`."""
    noted = SimpleNamespace(order=[], answers=dict(ANSWERS))

    def call(name, *arguments):
        noted.order.append((name, arguments[0]))
        return noted.answers[name]

    for name in ANSWERS:
        monkeypatch.setattr(driver, f"cu{name}", lambda *arguments, name=name: call(name, *arguments))
    return noted


def test_work_is_captured_on_one_stream_and_launched_on_another(calls):
    graph = Graph(OWN, lambda: calls.order.append(("work", None)))
    graph.launch(DEFAULT)
    graph.launch(DEFAULT)
    del graph
    assert calls.order == [
        ("StreamBeginCapture", "own"), ("work", None), ("StreamEndCapture", "own"), ("GraphInstantiate", "graph"),
        ("GraphDestroy", "graph"), *[("GraphLaunch", "executable")] * 2, ("GraphExecDestroy", "executable"),
    ]  # fmt: skip


def test_work_that_fails_ends_the_capture_and_leaves_no_graph(calls):
    with pytest.raises(ZeroDivisionError):
        Graph(OWN, lambda: 1 / 0)
    assert [name for name, _ in calls.order] == ["StreamBeginCapture", "StreamEndCapture", "GraphDestroy"]


@pytest.mark.parametrize("name", ["StreamEndCapture", "GraphInstantiate", "GraphLaunch"])
def test_what_the_driver_refuses_is_an_error(calls, name):
    calls.answers[name] = FAILED, None
    with pytest.raises(RuntimeError, match="CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"):
        Graph(OWN, lambda: None).launch(DEFAULT)
