"""The processes of the study `concurrency`: they show what arms take of the GPU's memory, trace them, and are two arms.

Memory is what the GPU's free memory, read here, loses when a process starts CUDA (`process_context`), and until its
arm has run (`device_delta`, context included). So nothing else may allocate meanwhile, this process included: the pool
is done before the study's own models go to the GPU. What the GPU does is traced in the same processes, since a profiler
leaves something behind.
"""

from __future__ import annotations

import gc
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.backends import cpu
from octopus_study.baselines.availability import Unavailable
from octopus_study.measure import Case, Row, unavailable
from octopus_study.measure.rows import describe
from octopus_study.measure.worker import Worker
from octopus_study.studies.comparison import Comparison
from octopus_study.studies.concurrency import models
from octopus_study.studies.concurrency.arms import ALONE, ARMS, Arm, Device, InProcess
from octopus_study.studies.concurrency.mps import Mps
from octopus_study.studies.concurrency.trace import UNITS, Trace, record

log = logging.getLogger(__name__)

PROCESSES, PROCESSES_MPS = "two-processes", "two-processes-mps"
TURNED_OFF = "the configuration has concurrency.processes off"
WARM_UPS = 2
READY_SECONDS = 180.0  # imports and weights
ANSWER_SECONDS = 60.0
# Runs that are traced: uploads beside kernels are judged by their interval, what else a trace shows needs fewer.
TRACED, TRACED_AHEAD = 5, 20


@dataclass(frozen=True)
class Order:
    """What a process is for."""

    arm: str
    frame: NDArray[np.uint8]  # (H, W, 3)
    seed: int


class Child:
    """What a process holds: an arm of one process, whose models are on the host until `load`."""

    def __init__(self, order: Order) -> None:
        cpu.set_num_threads(1)
        self.arm, (self.torch, zoo) = ARMS[order.arm], models.load()
        self.pipelines = models.build(self.arm.pipelines, order.frame, order.seed, self.torch, zoo)
        self.device = Device(self.torch)
        self.method: InProcess | None = None

    def context(self) -> None:
        """Start CUDA and nothing else, so that the GPU's free memory shows what a context takes."""
        models.load(self.device.name)
        self.torch.zeros(1, device=self.device.name)
        self.device.synchronize()

    def load(self) -> None:
        """Bring the models to the device and run until warm."""
        for pipeline in self.pipelines.values():
            pipeline.place(self.device.name)
        self.method = InProcess(self.arm, self.device, self.pipelines)
        for _ in range(WARM_UPS):
            self.method.run()
        self.device.synchronize()

    def run(self) -> dict[str, int]:
        """Run once; returns when each pipeline was ready, on the clock that all processes of a machine share. It has no
        garbage collector: neither do the arms in the parent's process have it."""
        assert self.method is not None
        started = time.perf_counter_ns()
        gc.disable()
        try:
            latencies = self.method.run()
        finally:
            gc.enable()
        return {name: started + round(value * 1e6) for name, value in latencies.items()}

    def check(self) -> dict[str, NDArray[Any]]:
        """The results of runs on poisoned memory."""
        assert self.method is not None
        return self.method.check()

    def trace(self, times: int) -> list[Trace]:
        """What the GPU does in each of some runs."""
        assert self.method is not None
        return record(self.torch, self.method.run, times)


class Process(Worker):
    """The parent's side of a `Child`, or of what else `target` makes of the order."""

    def __init__(
        self, order: Order, environment: Mapping[str, str] | None = None, target: str = f"{__name__}:Child"
    ) -> None:
        super().__init__(f"the process of {order.arm}", environment)
        self._order, self._target = order, target

    def ready(self) -> None:
        """Start it, and wait until it has imported everything and built its models on the host."""
        self.start()
        self.keep(self._target, self._order)
        self.hear(READY_SECONDS)

    def request(self, command: str, seconds: float = ANSWER_SECONDS, **options: Any) -> Any:
        """Tell it something, and wait for the answer."""
        return self.ask(command, seconds=seconds, **options)


@dataclass(frozen=True)
class Processes:
    """An arm of several processes, each with some of the pipelines; it is run like those of one."""

    workers: Sequence[Process]

    def run(self) -> dict[str, float]:
        """Let all run at once; returns when each pipeline was ready, in milliseconds from the first command on."""
        started = time.perf_counter_ns()
        for worker in self.workers:
            worker.tell("run")
        ended: dict[str, int] = {}
        for worker in self.workers:
            ended |= worker.hear(ANSWER_SECONDS)
        return {name: (moment - started) / 1e6 for name, moment in ended.items()}

    def check(self) -> dict[str, NDArray[Any]]:
        """The results of all, each on its own, by pipeline and name."""
        return {name: array for worker in self.workers for name, array in worker.request("check").items()}

    def close(self) -> None:
        """End all."""
        for worker in self.workers:
            worker.close()


class Pool:
    """All processes of a run, with or without the two arms of two processes; a context manager that ends them. `free`
    says how much memory of the GPU is free, in bytes; tests have their own `make` and `mps`."""

    def __init__(
        self,
        order: Order,
        free: Callable[[], int],
        processes: bool = True,
        make: Callable[..., Process] = Process,
        mps: Callable[[], Mps] = Mps,
    ) -> None:
        self._order, self._free, self._make, self._make_mps = order, free, make, mps
        self._stack = ExitStack()
        self.methods: dict[str, Processes] = {}  # of the arms of two processes, those that can run
        # Why arms can't
        self.missing = {} if processes else dict.fromkeys((PROCESSES, PROCESSES_MPS), TURNED_OFF)
        self.notes: dict[str, Any] = {}  # for the provenance
        self._mps: Mps | None = None
        self._base = 0
        self._contexts = Counter[str]()

    def __enter__(self) -> Pool:
        self._base = self._free()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def work(self, memory: Iterable[Comparison]) -> Iterator[Row]:
        """Everything that needs the GPU's memory to itself; the arms of two processes are ready behind it."""
        memory = list(memory)
        # First the one whose first client also starts the server: `_base` is from before that.
        for name in sorted(ARMS, key=(PROCESSES_MPS, PROCESSES, *ARMS).index):
            try:
                with ExitStack() as stack:
                    yield from self._rows(memory[0].case, ARMS[name], stack)
            except Exception as error:  # this arm has no number, the others go on
                self.missing[name] = describe(error)
                log.warning("%s: %s", name, self.missing[name])
                reasons = dict.fromkeys((name, ARMS[name].processes), self.missing[name])
                yield from (row for comparison in memory for row in comparison.missing(reasons))

    def still_attached(self) -> str:
        """Why what was timed with MPS was not, or an empty text; asked before its processes end."""
        if self._mps is None or PROCESSES_MPS not in self.methods:
            return ""
        try:
            return self._mps.wait_for(self.notes["mps"]["processes"], 0.0)
        except (Unavailable, OSError) as error:
            return describe(error)

    def _rows(self, case: Case, arm: Arm, stack: ExitStack) -> list[Row]:
        """Contexts and memory of an arm; one of one process is traced and ends, that of two waits to be timed."""
        if arm.name in self.missing:
            raise Unavailable(self.missing[arm.name])
        environment, parts = dict[str, str](), list(ALONE) if arm.processes else [arm.name]
        if arm.name == PROCESSES_MPS:  # whose daemon is there before its clients, and stays until they have ended
            self._mps = stack.enter_context(self._make_mps())
            environment = self._mps.environment
        workers = [self._make(replace(self._order, arm=name), environment) for name in parts]
        for worker in workers:
            stack.callback(worker.close, kill=True)
            worker.ready()
        before = self._base if arm.name == PROCESSES_MPS else self._free()
        rows = [row for worker in workers for row in self._context(case, arm, worker)]
        if arm.name == PROCESSES_MPS:
            self._prove(workers)
        for worker in workers:
            worker.request("load")
        method = Processes(workers)
        method.run()
        rows.append(case.row(arm.name, "memory", "device_delta", "bytes", before - self._free()))
        if not arm.processes:
            return [*rows, *_traces(case, arm, workers[0])]
        self.methods[arm.name] = method
        self._stack.enter_context(stack.pop_all())
        return rows

    def _context(self, case: Case, arm: Arm, process: Process) -> Iterator[Row]:
        """Let a process start CUDA; a row says what that takes, where the arm of such processes is not missing."""
        name = arm.processes or ARMS[PROCESSES].processes
        block = self._contexts[name]
        # The first client of MPS also starts the server.
        before = self._base if arm.name == PROCESSES_MPS and not block else self._free()
        process.request("context")
        taken = before - self._free()
        if arm.processes or PROCESSES not in self.missing:
            self._contexts[name] += 1
            yield case.row(name, "memory", "process_context", "bytes", taken, block=block)

    def _prove(self, workers: Iterable[Process]) -> None:
        """The daemon's clients are these processes and no others; otherwise the arm doesn't run."""
        assert self._mps is not None
        processes = [worker.pid for worker in workers]
        reason = self._mps.wait_for(processes)
        self.notes["mps"] = {"clients": sorted(self._mps.clients()), "processes": processes}
        if reason:
            raise Unavailable(reason)


def _traces(case: Case, arm: Arm, process: Process) -> Iterator[Row]:
    """What the GPU did in some runs, which are the rows' blocks."""
    try:
        times = TRACED_AHEAD if arm.ahead else TRACED
        traces: list[Trace] = process.request("trace", READY_SECONDS, times=times)
    except Exception as error:  # the profiler needs more of a machine than the models do
        yield unavailable(case, arm.name, "device", "kernel_busy", "fraction", describe(error))
        return
    for run, trace in enumerate(traces):
        for quantity, value in trace._asdict().items():
            if value is not None:
                yield case.row(arm.name, "device", quantity, UNITS[quantity], value, block=run)
