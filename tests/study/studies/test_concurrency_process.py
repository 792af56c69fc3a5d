"""The two models in processes of their own: at once, and what a process does when it is told to."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_torch

from octopus_study.peers.availability import Unavailable
from octopus_study.studies.concurrency import worker as worker_module
from octopus_study.studies.concurrency.models import SATELLITE_MATCHING, VISUAL_ODOMETRY
from octopus_study.studies.concurrency.process import Process, TwoProcesses
from octopus_study.studies.concurrency.worker import Answers, Order

ORDER = Order("sequential", "frame.npy", 42)


def test_two_processes_run_at_once_and_say_when_each_was_ready():
    workers = {
        name: Process(ORDER, {"PIPELINE": name}, "concurrency_targets:Runs")
        for name in (VISUAL_ODOMETRY, SATELLITE_MATCHING)
    }
    for worker in workers.values():
        worker.start()
    for worker in workers.values():
        worker.ready()
        assert worker.request("method") == "sequential"
    pair = TwoProcesses(workers)
    found = pair.run()
    assert set(found) == set(workers)
    assert all(0 < value < 10_000 for value in found.values())
    pair.close()
    assert not any(worker.pid for worker in workers.values())


def test_a_process_without_its_packages_says_so():
    process = Process(Order("no such method", "frame.npy", 42))
    with pytest.raises(Unavailable, match=r"FileNotFoundError|not installed|no such method"):
        process.ready()
    process.close()


@pytest.fixture
def answers(monkeypatch, tmp_path):
    """What a process has, with models of a few numbers."""
    np.save(tmp_path / "frame.npy", np.zeros((4, 4, 3), np.uint8))
    torch = tiny_torch.torch
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None, raising=False)
    monkeypatch.setattr(torch, "zeros", lambda shape, device: None, raising=False)
    monkeypatch.setattr(worker_module, "Device", lambda torch: tiny_torch.device())
    monkeypatch.setattr(worker_module.models, "load", lambda device="cpu": (torch, None))
    monkeypatch.setattr(
        worker_module.models, "build", lambda names, *_: {n: tiny_torch.pipelines()[n] for n in names}
    )
    return Answers(Order("sequential", str(tmp_path / "frame.npy"), 42))


def test_a_method_is_loaded_run_and_checked(answers, tmp_path):
    with pytest.raises(RuntimeError, match="after it was loaded"):
        answers.run()
    assert answers.context() is None
    answers.load([])
    assert set(answers.run()) == {VISUAL_ODOMETRY, SATELLITE_MATCHING}
    answers.results(str(tmp_path / "results.npz"))
    with np.load(tmp_path / "results.npz") as arrays:
        assert "visual_odometry.points" in arrays.files


def test_a_stage_is_held_in_a_graph_that_gives_the_model_s_values(answers, monkeypatch):
    answers.capture("satellite_matching-2")
    with pytest.raises(ValueError, match="no stage resnet"):
        answers.capture("resnet")
    wrong = (tiny_torch.Tensor([0.0]),)
    monkeypatch.setattr(answers.device, "capture", lambda run, given: (lambda: None, wrong))
    with pytest.raises(RuntimeError, match="other values than the model"):
        answers.capture("satellite_matching-2")
