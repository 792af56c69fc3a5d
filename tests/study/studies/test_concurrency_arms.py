"""The arms of two pipelines, in this process and in others: same results, right order, and what their traces say."""

import numpy as np
import pytest
import tiny_torch

from octopus_study.baselines.availability import Unavailable
from octopus_study.studies.concurrency import processes
from octopus_study.studies.concurrency.arms import ALONE, ARMS, InProcess
from octopus_study.studies.concurrency.models import NAMES, SATELLITE_MATCHING, VISUAL_ODOMETRY
from octopus_study.studies.concurrency.processes import Child, Order, Process, Processes
from octopus_study.studies.concurrency.trace import KERNEL, UPLOAD, Work, runs_of, summary, works

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


ORDER = Order("sequential", np.zeros((4, 4, 3), np.uint8), 42)


def test_two_processes_run_at_once_and_say_when_each_was_ready():
    workers = [
        Process(ORDER, {"PIPELINE": name}, "concurrency_targets:Runs") for name in (VISUAL_ODOMETRY, SATELLITE_MATCHING)
    ]
    for worker in workers:
        worker.ready()
        assert worker.request("arm") == "sequential"
    pair = Processes(workers)
    found = pair.run()
    assert set(found) == {VISUAL_ODOMETRY, SATELLITE_MATCHING}
    assert all(0 < value < 10_000 for value in found.values())
    pair.close()
    assert not any(worker.pid for worker in workers)


def test_a_process_without_its_packages_says_so():
    process = Process(Order("no such arm", ORDER.frame, 42))
    with pytest.raises(Unavailable, match="no such arm"):
        process.ready()
    process.close()


def test_an_arm_is_loaded_run_and_checked(monkeypatch):
    torch = tiny_torch.torch
    monkeypatch.setattr(torch, "zeros", lambda shape, device: None, raising=False)
    monkeypatch.setattr(processes, "Device", lambda torch: tiny_torch.device())
    monkeypatch.setattr(processes.models, "load", lambda device="cpu": (torch, None))
    monkeypatch.setattr(processes.models, "build", lambda *_: tiny_torch.pipelines())
    child = Child(ORDER)
    child.context()
    child.load()
    assert set(child.run()) == {VISUAL_ODOMETRY, SATELLITE_MATCHING}
    assert "visual_odometry.points" in child.check()


PROCESSORS = 132


def kernel(stream, start, end, blocks=PROCESSORS):
    return Work(KERNEL, stream, start, end, blocks)


def test_kernels_and_uploads_are_read_from_a_trace():
    args = {"stream": 7}
    trace = {
        "traceEvents": [
            {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 2000.0, "dur": 500.0,
             "args": args | {"grid": [3, 5, 2]}},
            {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "ts": 1.0, "dur": 2.0,
             "args": {"stream": 9}},
            {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pinned)", "ts": 1.0, "dur": 2.0,
             "args": args},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1.0, "dur": 2.0, "args": {}},
            {"ph": "M", "name": "process_name"},
        ]
    }  # fmt: skip
    assert works(trace) == [kernel(7, 2.0, 2.5, 30), Work(UPLOAD, 9, 0.001, 0.003)]


def test_one_stream_has_no_overlap_and_gaps_are_not_busy():
    found = summary([kernel(7, 0, 1), kernel(7, 3, 4)], PROCESSORS)
    assert (found.kernel_busy, found.kernel_time) == (0.5, 2)
    assert found.kernel_overlap is None
    assert found.copies_hidden is None


def test_two_streams_overlap_where_both_work():
    found = summary([kernel(7, 0, 4), kernel(8, 3, 5), kernel(8, 6, 8)], PROCESSORS)
    assert found.kernel_busy == 7 / 8
    assert found.kernel_overlap == 1 / 4


def test_an_upload_is_hidden_while_a_kernel_runs():
    found = summary([kernel(7, 0, 2), Work(UPLOAD, 9, 1, 3), Work(UPLOAD, 9, 5, 7)], PROCESSORS)
    assert found.copies_hidden == 0.25


@pytest.mark.parametrize(
    ("blocks", "filled"), [((132, 132), 1.0), ((131, 132), 0.75), ((5, 5000), 0.75), ((1, 1), 0.0), ((0, 132), None)]
)
def test_a_kernel_fills_the_gpu_with_a_block_for_every_multiprocessor(blocks, filled):
    first, second = blocks
    assert summary([kernel(7, 0, 1, first), kernel(7, 1, 4, second)], PROCESSORS).kernel_filled == filled


def test_runs_are_cut_at_the_pauses_between_them():
    run = [Work(UPLOAD, 9, 0, 1), kernel(7, 2, 3), kernel(8, 2.5, 6), kernel(7, 9, 10)]
    runs = [[work._replace(start=work.start + at, end=work.end + at) for work in run] for at in (0, 60, 130)]
    assert runs_of([work for part in reversed(runs) for work in part], 3) == runs
    assert runs_of(run, 1) == [run]
