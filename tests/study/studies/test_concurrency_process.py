"""The two models in processes of their own: at once, and what a process does when it is told to."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_torch

from octopus_study.baselines.availability import Unavailable
from octopus_study.studies.concurrency import processes
from octopus_study.studies.concurrency.models import SATELLITE_MATCHING, VISUAL_ODOMETRY
from octopus_study.studies.concurrency.processes import Child, Order, Process, Processes

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
