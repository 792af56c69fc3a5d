"""Two models without torch or a GPU: arms here and in other processes, gaps, blocks, failures, traces."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_torch

from octopus_study.baselines.availability import Unavailable
from octopus_study.measure import Budget, Case, CpuThrottle, Method, run_paired, validate_rows
from octopus_study.measure.recorded import BlockClock, Recorded
from octopus_study.studies.comparison import Comparison
from octopus_study.studies.concurrency import processes, sessions, study
from octopus_study.studies.concurrency.arms import ALONE, ARMS, InProcess
from octopus_study.studies.concurrency.models import NAMES, SATELLITE_MATCHING, VISUAL_ODOMETRY
from octopus_study.studies.concurrency.processes import PROCESSES, PROCESSES_MPS, Child, Order, Pool, Process, Processes
from octopus_study.studies.concurrency.study import comparisons, same
from octopus_study.studies.concurrency.trace import KERNEL, UPLOAD, Trace, Work, runs_of, summary, works

CASE = Case("concurrency", "synthetic", "two-models", 2)
ORDER = Order("sequential", np.zeros((4, 4, 3), np.uint8), 42)
GIB = 1 << 30
TRACE = Trace(0.5, None, None, 2.0, 0.75)
MEMORY = [one for one in comparisons("synthetic") if one.layer == "memory"]
HERE = [name for name, arm in ARMS.items() if not arm.processes]


class Counting:
    """Says the number of its run as both latencies."""

    def __init__(self, fail_at: int = -1) -> None:
        self.runs, self._fail_at = 0, fail_at

    def run(self):
        self.runs += 1
        if self.runs == self._fail_at:
            raise RuntimeError("lost")
        return {VISUAL_ODOMETRY: float(self.runs), SATELLITE_MATCHING: 100.0 + self.runs}


def timed(methods, throttled=lambda: None):
    clock = BlockClock(throttle=throttled)
    latencies = {name: f"latency_{name}" for name in (VISUAL_ODOMETRY, SATELLITE_MATCHING)}
    recorded = {name: Recorded(method.run, clock, latencies) for name, method in methods.items()}
    counted = [Method(name, each.run) for name, each in recorded.items()]
    budget = Budget(min_blocks=3, max_blocks=5, min_seconds=0, target_halfwidth=0)
    return recorded, run_paired(CASE, "makespan", "ms", counted, clock, budget, "same", 1)


@pytest.mark.parametrize(("hot", "blocks"), [(100, [0, 1, 2, 3, 4]), (3, [0, 1, 3, 4])])
def test_latencies_are_those_of_the_runs_that_were_timed_and_not_throttled(hot, blocks):
    asked = iter(range(100))
    recorded, rows = timed({"sequential": Counting()}, lambda: "hot" if next(asked) == hot else None)
    found = recorded["sequential"].rows("sequential", rows)
    validate_rows(found)
    odometry = [row for row in found if row.quantity == "latency_visual_odometry"]
    assert [(row.block, row.value) for row in odometry] == [(block, 3.0 + block) for block in blocks]
    assert {row.answer for row in found} == {"same"}


def test_blocks_stay_in_step_when_another_method_fails():
    recorded, rows = timed({"two-threads": Counting(), "two-streams": Counting(fail_at=4)})
    own = [row for row in rows if row.method == "two-threads" and row.quantity == "makespan"]
    assert len(own) >= 3
    found = [row for row in recorded["two-threads"].rows("two-threads", rows) if row.value < 100]
    assert [row.block for row in found] == [row.block for row in own]
    gaps = recorded["two-streams"].rows("two-streams", rows)
    assert {row.quantity: row.answer for row in gaps} == dict.fromkeys(
        ("latency_visual_odometry", "latency_satellite_matching"), "unavailable: RuntimeError: lost"
    )


def test_answers_are_compared_array_by_array():
    expected = {"points": np.array([1.0, 400.0]), "matches": np.array([5, 6])}
    assert same({"points": np.array([1.0, 400.01])}, expected) == "same"
    assert same({"points": np.array([1.0, 401.0])}, expected).startswith("different: points: by as much as 1")
    assert same({"matches": np.array([5, 7])}, expected).startswith("different: matches: ")
    assert same({"points": np.array([1.0, np.nan])}, expected).startswith("different: points: 1 of 2")
    unclear = {"points": np.array([np.nan])}
    assert same(unclear, unclear).startswith("different: points: InputError")


class Worker:
    """A pretended process: CUDA takes half a GiB, its method one."""

    number = 100

    def __init__(self, gpu, order, environment, fails=()) -> None:
        Worker.number += 1
        self.gpu, self.order, self.environment, self.fails = gpu, order, environment or {}, fails
        self.pid, self.held, self.said = Worker.number, 0, []

    def ready(self):
        """It is at once, and has nothing to begin."""

    start = ready

    def request(self, command, seconds=0, **arguments):
        self.tell(command, **arguments)
        return self.hear(seconds)

    def tell(self, command, *arguments, **options):
        self.said.append((command, (*arguments, *options.values())))

    def hear(self, seconds):
        command, arguments = self.said[-1]
        if (self.order.arm, command) in self.fails:
            raise Unavailable(f"{command} fails")
        taken = {"context": GIB // 2, "load": GIB}.get(command, 0)
        self.gpu.free -= taken
        self.held += taken
        if command == "trace":
            return [TRACE] * arguments[0]
        return {NAMES[0]: 0} if command == "run" else None

    def close(self, kill=False):
        self.gpu.free += self.held
        self.held = 0


class Daemon:
    """A pretended MPS daemon; `clients_of` says which of the processes with its environment are attached."""

    environment = {"CUDA_MPS_PIPE_DIRECTORY": "/pretended"}  # noqa: RUF012 - as in Mps

    def __init__(self, members, clients_of) -> None:
        self._members, self._clients_of, self.open = members, clients_of, False

    def __enter__(self):
        self.open = True
        return self

    def __exit__(self, *_):
        self.open = False

    def clients(self):
        return set(self._clients_of([each.pid for each in self._members if each.environment and each.held]))

    def wait_for(self, workers, seconds=5.0):
        return "" if self.clients() == set(workers) else f"clients are {sorted(self.clients())}"


def pool_of(clients_of=lambda own: own, fails=(), processes=True):
    gpu, members = SimpleNamespace(free=80 * GIB), []

    def make(order, environment):
        members.append(Worker(gpu, order, environment, fails))
        return members[-1]

    daemon = Daemon(members, clients_of)
    return Pool(ORDER, lambda: gpu.free, processes, make, lambda: daemon), members, daemon, gpu


def values(rows, quantity):
    return {(row.method, row.block): row.value for row in rows if row.quantity == quantity}


def test_contexts_and_memory_are_what_the_gpu_loses():
    pool, members, daemon, gpu = pool_of()
    with pool:
        rows = list(pool.work(MEMORY))
        assert daemon.open
        assert set(pool.methods) == {PROCESSES, PROCESSES_MPS}
        assert pool.still_attached() == ""
        daemon._clients_of = lambda own: own[:1]
        assert pool.still_attached().startswith("clients are ")
    validate_rows(rows)
    half = GIB / 2
    assert values(rows, "process_context") == {
        **{("process", block): half for block in range(2 + len(HERE))},
        **{("process-mps", block): half for block in range(2)},
    }
    delta = values(rows, "device_delta")
    assert delta[PROCESSES, 0] == delta[PROCESSES_MPS, 0] == 3 * GIB
    assert delta["sequential", 0] == 1.5 * GIB
    assert pool.notes["mps"]["clients"] == pool.notes["mps"]["processes"]
    assert not daemon.open and gpu.free == 80 * GIB
    assert sum(bool(each.environment) for each in members) == 2


@pytest.mark.parametrize("clients_of", [lambda own: [], lambda own: own[:1], lambda own: [*own, 7]])
def test_without_the_proof_the_mps_method_does_not_run(clients_of):
    pool, _, _, _ = pool_of(clients_of)
    with pool:
        rows = list(pool.work(MEMORY))
        assert set(pool.methods) == {PROCESSES}
    assert pool.missing[PROCESSES_MPS].startswith("clients are ")
    said = [row for row in rows if PROCESSES_MPS in (row.method,) or row.method == "process-mps"]
    assert {row.quantity for row in said} == {"device_delta", "process_context"}
    assert all(row.answer.startswith("unavailable: clients are ") for row in said)


@pytest.mark.parametrize("lost", ["", "clients are none"])
def test_what_was_timed_without_mps_after_all_has_no_number(lost):
    device, pipelines = tiny_torch.DEVICE, tiny_torch.pipelines()
    settings = SimpleNamespace(samples=3, max_seconds=1.0)
    budget = Budget(min_blocks=3, max_blocks=3, min_seconds=0, target_halfwidth=0)
    context = SimpleNamespace(config=SimpleNamespace(concurrency=settings), budget=budget, seed=1)
    attached = {PROCESSES_MPS: InProcess(ARMS["sequential"], device, pipelines)}
    pool = SimpleNamespace(missing={PROCESSES: "off"}, methods=attached, still_attached=lambda: lost)
    times = [one for one in comparisons("synthetic") if one.quantity.startswith(("makespan", "latency"))]
    rows = study._timed(context, times, device, pipelines, pool)
    validate_rows(rows)
    found = {row.answer for row in rows if row.method == PROCESSES_MPS}
    assert found == ({f"unavailable: {lost}"} if lost else {"same"})
    assert {row.answer for row in rows if row.method == "sequential"} == {"same"}


def test_a_process_that_fails_is_a_gap_and_the_others_go_on():
    pool, _, _, _ = pool_of(fails={("two-threads", "load"), ("prefetch", "trace")})
    with pool:
        rows = list(pool.work(MEMORY))
    gaps = {(row.method, row.quantity): row.answer for row in rows if row.value is None}
    assert gaps == {
        ("two-threads", "device_delta"): "unavailable: load fails",
        ("prefetch", "kernel_busy"): "unavailable: trace fails",
    }
    assert pool.missing == {"two-threads": "load fails"}
    traced = {row.method for row in rows if row.quantity == "kernel_filled"}
    assert traced == {*HERE} - {"two-threads", "prefetch"}


def test_a_process_that_does_not_begin_leaves_no_daemon_and_no_process():
    pool, members, daemon, gpu = pool_of(fails={(list(ALONE)[1], "context")})
    with pool:
        list(pool.work(MEMORY))
        assert not daemon.open and PROCESSES_MPS not in pool.methods
        assert not any(each.held for each in members)
    assert gpu.free == 80 * GIB


def pair(workload, processes=False):
    """Two small networks by every way on the CPU; returns by way the answers of its rows."""
    budget = Budget(min_blocks=3, max_blocks=3, min_seconds=0)
    settings = SimpleNamespace(processes=processes, max_seconds=1.0)
    context = SimpleNamespace(
        device="cpu", config=SimpleNamespace(concurrency=settings), budget_within=lambda seconds: budget, seed=1,
        workload=SimpleNamespace(frame=np.arange(30000, dtype=np.uint8).reshape(100, 100, 3)), throttle=CpuThrottle(),
        process=0, processes=lambda layer: 1, measures=lambda *_: True,
    )  # fmt: skip
    case = Case("concurrency", "synthetic", workload, 2)
    rows = study.timed_pair(context, Comparison(case, "makespan", "host", sessions.WAYS[workload]), scale=16)
    validate_rows(rows)
    return {row.method: str(row.answer) for row in rows if row.quantity == "makespan"}


def test_two_sessions_of_a_network_answer_as_each_alone_and_as_one_of_both():
    answers = pair("one-model", processes=True)
    assert set(answers) == {*sessions.WAYS["one-model"], "sequential-again"} and "batch" in answers
    assert set(answers.values()) == {"same"}


def test_a_runtime_that_is_missing_is_a_row_and_the_other_goes_on(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    answers = pair("session-and-torch")
    assert answers.pop("first-alone") == "same"
    assert answers.pop("two-processes").endswith("concurrency.processes off")
    assert set(answers.values()) == {"unavailable: PyTorch is not installed"}
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert all("not installed" in answer or "off" in answer for answer in pair("two-sessions").values())


def make(name, log=None):
    return InProcess(ARMS[name], tiny_torch.DEVICE, tiny_torch.pipelines(log))


@pytest.mark.parametrize("name", HERE)
def test_every_method_gives_the_results_of_its_pipelines_and_the_critical_one_is_not_last(name):
    method = make(name)
    latencies, found = method.run(), method.check()
    method.close()
    assert set(latencies) == set(ARMS[name].pipelines)
    assert all(value > 0 for value in latencies.values())
    if name not in (*ALONE, "two-streams", "two-threads"):
        assert latencies[VISUAL_ODOMETRY] <= latencies[SATELLITE_MATCHING]
    for pipeline in ARMS[name].pipelines:
        expected = 9 * (np.arange(6, dtype=np.float32) + NAMES.index(pipeline))  # its stages: (x + 2 x) 3
        np.testing.assert_array_equal(found[f"{pipeline}.points"], expected)
        np.testing.assert_array_equal(found[f"{pipeline}.answer"], [np.median(expected)])


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


def test_two_processes_run_at_once_and_say_when_each_was_ready():
    workers = [Process(ORDER, {"PIPELINE": name}, "concurrency_targets:Runs") for name in NAMES]
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
    monkeypatch.setattr(processes, "Device", lambda torch: tiny_torch.DEVICE)
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


@pytest.mark.parametrize(("works", "busy", "time", "overlap", "hidden"), [
    ([kernel(7, 0, 1), kernel(7, 3, 4)], 0.5, 2, None, None),  # gaps of one stream are not busy
    ([kernel(7, 0, 4), kernel(8, 3, 5), kernel(8, 6, 8)], 7 / 8, 7, 1 / 4, None),
    ([kernel(7, 0, 2), Work(UPLOAD, 9, 1, 3), Work(UPLOAD, 9, 5, 7)], 1, 2, None, 0.25),
])  # fmt: skip
def test_streams_overlap_and_uploads_are_hidden_where_a_kernel_runs(works, busy, time, overlap, hidden):
    found = summary(works, PROCESSORS)
    assert (found.kernel_busy, found.kernel_time) == (busy, time)
    assert (found.kernel_overlap, found.copies_hidden) == (overlap, hidden)


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
