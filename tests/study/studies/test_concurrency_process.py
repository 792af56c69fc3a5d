"""Processes of two models: what they answer, and what is said when they die, hang or speak too much."""

from __future__ import annotations

import io
import json
import sys
import time

import numpy as np
import pytest
import tiny_torch

from octopus_study.peers.availability import Unavailable
from octopus_study.studies.concurrency import worker as worker_module
from octopus_study.studies.concurrency.models import SATELLITE_MATCHING, VISUAL_ODOMETRY
from octopus_study.studies.concurrency.process import Process, TwoProcesses
from octopus_study.studies.concurrency.trace import Trace, summary
from octopus_study.studies.concurrency.worker import Order, Worker, serve

ORDER = Order("sequential", "frame.npy", 42)
# Echoes commands; some of them are trouble.
ECHO = """
import json, os, sys, time
print(json.dumps({"order": json.loads(sys.stdin.readline())}), flush=True)
for line in sys.stdin:
    command = json.loads(line)
    if command["do"] == "quit":
        break
    if command["do"] == "die":
        print("CUDA error: out of memory", file=sys.stderr)
        sys.exit(3)
    if command["do"] == "hang":
        print("still loading", file=sys.stderr, flush=True)
        time.sleep(60)
    if command["do"] == "fail":
        print(json.dumps({"why": "no room"}), flush=True)
    if command["do"] == "run":
        print(json.dumps({"ended": {os.environ["PIPELINE"]: time.perf_counter_ns()}}), flush=True)
    if command["do"] == "environment":
        print(json.dumps({"found": os.environ.get(command["name"])}), flush=True)
"""


@pytest.fixture
def start():
    """Make processes that echo, and end them behind the test."""
    made = []

    def make(environment=None):
        made.append(Process(ORDER, environment, [sys.executable, "-c", ECHO]))
        return made[-1]

    yield make
    for process in made:
        process.close(kill=True)


def test_only_the_process_gets_its_environment(start, monkeypatch):
    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY", raising=False)
    name = "CUDA_MPS_PIPE_DIRECTORY"
    with_mps, without = start({name: "/somewhere"}), start()
    assert with_mps.ask("environment", name=name)["found"] == "/somewhere"
    assert without.ask("environment", name=name)["found"] is None
    assert with_mps.process != without.process


def test_the_last_words_of_a_process_that_dies_are_the_reason(start):
    with pytest.raises(Unavailable, match="ended with status 3: CUDA error: out of memory"):
        start().ask("die")


def test_a_process_that_hangs_is_killed_in_time(start):
    process = start()
    process.ready()
    child = process._child
    began = time.monotonic()
    with pytest.raises(Unavailable, match=r"said nothing for 0\.3 s: still loading"):
        process.ask("hang", seconds=0.3)
    assert time.monotonic() - began < 10
    assert child.poll() is not None
    with pytest.raises(Unavailable, match="no longer there"):
        process.tell("run")


def test_a_command_that_fails_does_not_end_the_process(start):
    process = start()
    with pytest.raises(Unavailable, match="no room"):
        process.ask("fail")
    assert process.ask("environment", name="HOME")["found"] is not None


def test_closing_twice_or_before_the_start_is_nothing(start):
    process = start()
    process.close()
    process.ready()
    process.close()
    process.close()
    assert process.process == 0


def test_two_processes_run_at_once_and_say_when_each_was_ready(start):
    workers = {name: start({"PIPELINE": name}) for name in (VISUAL_ODOMETRY, SATELLITE_MATCHING)}
    for worker in workers.values():
        worker.ready()
    pair = TwoProcesses(workers)
    found = pair.run()
    assert set(found) == set(workers)
    assert all(0 < value < 10_000 for value in found.values())
    assert pair.proofs() == {"processes": 2}
    pair.close()


@pytest.fixture
def worker(monkeypatch, tmp_path):
    """A worker with models of a few numbers."""
    np.save(tmp_path / "frame.npy", np.zeros((4, 4, 3), np.uint8))
    torch = tiny_torch.torch
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None, raising=False)
    monkeypatch.setattr(torch, "zeros", lambda shape, device: None, raising=False)
    monkeypatch.setattr(worker_module, "Device", lambda torch: tiny_torch.device())
    monkeypatch.setattr(worker_module.models, "load", lambda device="cpu": (torch, None))
    monkeypatch.setattr(
        worker_module.models, "build", lambda names, *_: {n: tiny_torch.pipelines()[n] for n in names}
    )
    return Worker(Order("sequential", str(tmp_path / "frame.npy"), 42))


def served(worker, *commands):
    lines = io.StringIO("".join(json.dumps(command) + "\n" for command in commands))
    said = []
    serve(worker, lines.readline, said.append)
    return said


def test_a_worker_serves_until_it_is_told_to_quit(worker, tmp_path):
    path = str(tmp_path / "results.npz")
    said = served(
        worker,
        {"do": "run"},
        {"do": "context"},
        {"do": "load", "captured": []},
        {"do": "run"},
        {"do": "results", "path": path},
        {"do": "quit"},
        {"do": "run"},
    )
    assert said[0] == {"why": "RuntimeError: a method is run after it was loaded"}
    assert said[1:3] == [{"mps": None}, {}]
    assert set(said[3]["ended"]) == {VISUAL_ODOMETRY, SATELLITE_MATCHING}
    assert len(said) == 5
    with np.load(path) as arrays:
        assert "visual_odometry.points" in arrays.files


def test_a_worker_tries_a_graph(worker, monkeypatch):
    captured = {"do": "capture", "stage": "satellite_matching-2"}
    assert served(worker, captured) == [{}]
    assert served(worker, {"do": "capture", "stage": "resnet"}) == [
        {"why": "ValueError: there is no stage resnet"}
    ]
    wrong = (tiny_torch.Tensor([0.0]),)
    monkeypatch.setattr(worker.device, "capture", lambda run, given: (lambda: None, wrong))
    assert served(worker, captured) == [{"why": "RuntimeError: the graph gives other values than the model"}]


def test_a_worker_tells_what_the_profiler_saw(worker, monkeypatch):
    seen = [Trace(3, 0.5, None, 1.0, 2.5, 0.75), Trace(4, 0.5, 0.5, None, 2.5, None)]
    monkeypatch.setattr(worker_module, "record", lambda torch, run, times: run() and seen[:times])
    load, trace = {"do": "load", "captured": []}, {"do": "trace", "times": 2}
    assert [Trace(*one) for one in served(worker, load, trace)[1]["traces"]] == seen
    monkeypatch.setattr(worker_module, "record", lambda torch, run, times: summary([], 3))
    assert served(worker, trace) == [{"why": "RuntimeError: the profiler saw no kernel"}]
