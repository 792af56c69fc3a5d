"""The processes of the study `concurrency`: they try out CUDA graphs, show what a method takes, and are two methods.

Memory is what the GPU's free memory, read here, loses when a process starts CUDA (`process_context`), and until its
method has run (`device_delta`, context included). So nothing else may allocate meanwhile, this process included: the
pool is done before the study's own models go to the GPU. What the GPU does is traced in the same processes, since a
profiler leaves something behind.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any

from octopus.backends import cpu
from octopus_study.measure import Case, Row, available_cores
from octopus_study.measure.rows import describe
from octopus_study.peers.availability import Unavailable
from octopus_study.studies.comparison import Comparison
from octopus_study.studies.concurrency.comparisons import CONTEXTS, PROCESSES, PROCESSES_MPS, gaps
from octopus_study.studies.concurrency.methods import ALONE, METHODS
from octopus_study.studies.concurrency.models import STAGES, VISUAL_ODOMETRY
from octopus_study.studies.concurrency.mps import Mps
from octopus_study.studies.concurrency.process import ANSWER_SECONDS, READY_SECONDS, Process, TwoProcesses
from octopus_study.studies.concurrency.trace import Trace
from octopus_study.studies.concurrency.worker import Order

log = logging.getLogger(__name__)

METHOD_OF = {pipeline: name for name, pipeline in ALONE.items()}
TURNED_OFF = "the configuration has concurrency.processes off"
# Runs that are traced: uploads beside kernels are judged by their interval, what else a trace shows needs fewer.
TRACED, TRACED_COPIES = 5, 20
COPIES_BESIDE = ("prefetch", "pipeline")
CLIENTS = 4  # more of MPS that start CUDA and end, since two contexts say little of how contexts vary
# All processes import at once where there is room; elsewhere each is started when it is needed.
CORES, BYTES = 8, 3 << 30


class Pool:
    """All processes of a run; a context manager that ends them.

    Parameters
    ----------
    order : Order
        What all of them have in common; the method is theirs.
    free : callable
        Free memory of the GPU in bytes.
    processes : bool
        Whether there are the two methods of two processes.
    make : callable
        Makes a `Process`; tests give their own.
    mps : callable
        Makes an `Mps`; so do they.

    Attributes
    ----------
    methods : dict of TwoProcesses
        Those of the two methods that can run.
    missing : dict of str
        Why the others can't.
    captured : dict of str
        By stage: why it can't be held in a CUDA graph; empty where it can.
    traces : dict
        By method of one process: a `Trace` of each run, or why there is none.
    notes : dict
        For the provenance.
    """

    def __init__(
        self,
        order: Order,
        free: Callable[[], int],
        processes: bool = True,
        make: Callable[..., Process] = Process,
        mps: Callable[[], Mps] = Mps,
    ) -> None:
        self._order, self._free, self._make, self._mps_of = order, free, make, mps
        self._stack = ExitStack()
        self.methods: dict[str, TwoProcesses] = {}
        self.missing = {} if processes else dict.fromkeys(CONTEXTS, TURNED_OFF)
        self.captured: dict[str, str] = {}
        self.traces: dict[str, list[Trace] | str] = {}
        self.notes: dict[str, Any] = {}
        self._mps: Mps | None = None
        self._base = 0
        self._contexts = Counter[str]()

    def __enter__(self) -> Pool:
        try:
            self._begin()
        except BaseException:  # nobody calls `__exit__` then, and the daemon would stay
            self._stack.close()
            raise
        return self

    def _begin(self) -> None:
        self._base = self._free()
        self._probes = {stage: self._process(METHOD_OF[pipeline]) for stage, pipeline in STAGES.items()}
        self._own = {name: self._process(name) for name in METHODS}
        self._pairs: dict[str, dict[str, Process]] = {}
        self._clients: list[Process] = []
        if PROCESSES not in self.missing:
            self._pairs[PROCESSES] = self._pair({})
            self._start_mps()
        self._start_ahead()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def work(self, memory: Iterable[Comparison]) -> Iterator[Row]:
        """Everything that needs the GPU's memory to itself; the methods are ready behind it.

        Parameters
        ----------
        memory : iterable of Comparison
            What is missing in these has rows that say so.
        """
        memory = list(memory)
        case = memory[0].case
        self._probe()
        # First the one whose first client also starts the server: `_base` is from before that.
        for name in (PROCESSES_MPS, PROCESSES, *METHODS):
            try:
                yield from self._pair_rows(case, name) if name in CONTEXTS else self._own_rows(case, name)
            except Exception as error:  # this method has no number, the others go on
                yield from gaps(memory, name, describe(error))

    def still_attached(self) -> str:
        """Why what was timed with MPS was not, or an empty text."""
        if self._mps is None or PROCESSES_MPS not in self.methods:
            return ""
        return self._mps.wait_for(_ids(self.methods[PROCESSES_MPS].workers.values()), 0.0)

    def _process(self, name: str, environment: Mapping[str, str] | None = None) -> Process:
        process = self._make(replace(self._order, method=name), environment)
        self._stack.callback(process.close)
        return process

    def _pair(self, environment: Mapping[str, str]) -> dict[str, Process]:
        return {pipeline: self._process(name, environment) for name, pipeline in ALONE.items()}

    def _start_mps(self) -> None:
        """The daemon must be there before its clients, and stay until they have ended."""
        try:
            self._mps = self._stack.enter_context(self._mps_of())
        except (Unavailable, OSError) as error:
            self.missing[PROCESSES_MPS] = describe(error)
            log.warning("MPS: %s", self.missing[PROCESSES_MPS])
            return
        environment = self._mps.environment
        self._pairs[PROCESSES_MPS] = self._pair(environment)
        self._clients = [self._process(METHOD_OF[VISUAL_ODOMETRY], environment) for _ in range(CLIENTS)]

    def _start_ahead(self) -> None:
        pairs = [process for pair in self._pairs.values() for process in pair.values()]
        processes = [*self._probes.values(), *self._own.values(), *pairs, *self._clients]
        self._ahead = available_cores() >= CORES and cpu.free_bytes() >= BYTES * len(processes)
        if self._ahead:
            log.info("%d processes get ready", len(processes))
            for process in processes:
                process.start()

    def _probe(self) -> None:
        if self._ahead:
            for stage, process in self._probes.items():
                self._try(stage, process, hear=False)
        for stage, process in self._probes.items():
            if stage not in self.captured:
                self._try(stage, process, tell=not self._ahead)
                self.captured.setdefault(stage, "")
            process.close(kill=True)
            log.info("%s in a CUDA graph: %s", stage, self.captured[stage] or "yes")

    def _try(self, stage: str, process: Process, tell: bool = True, hear: bool = True) -> None:
        """One step of a probe; when it fails, the stage is left as it is."""
        try:
            if tell:
                process.ready()
                process.tell("capture", stage)
            if hear:
                process.hear(ANSWER_SECONDS)
        except Exception as error:  # whatever it is
            self.captured[stage] = describe(error)

    def _graphs(self) -> list[str]:
        return [stage for stage, reason in self.captured.items() if not reason]

    def _own_rows(self, case: Case, name: str) -> list[Row]:
        """The memory of a method that is one process, which is traced behind that."""
        process = self._own[name]
        try:
            process.ready()
            before = self._free()
            rows = self._context(case, PROCESSES, process)
            process.request("load", captured=self._graphs())
            process.request("run")
            taken = before - self._free()
            self._trace(name, process)
        finally:
            process.close(kill=True)
        return [*rows, case.row(name, "memory", "device_delta", "bytes", taken)]

    def _context(self, case: Case, name: str, process: Process) -> list[Row]:
        """Let a process start CUDA; a row says what that takes, where the method of such processes is not missing."""
        process.ready()
        block = self._contexts[name]
        # The first client of MPS also starts the server, and what probes held may come back late.
        before = self._base if name == PROCESSES_MPS and not block else self._free()
        mps = process.request("context")
        taken = before - self._free()
        if name in self.missing:
            return []
        self._contexts[name] += 1
        self.notes.setdefault("driver_says_mps", {})[f"{name}/{block}"] = mps
        return [case.row(CONTEXTS[name], "memory", "process_context", "bytes", taken, block=block)]

    def _more_clients(self, case: Case) -> Iterator[Row]:
        """Contexts of more clients, side by side, that end behind it; one that fails is left out."""
        try:
            for process in self._clients:
                yield from self._context(case, PROCESSES_MPS, process)
        except Exception as error:  # the method itself needs none of them
            log.warning("more clients of MPS: %s", describe(error))
        finally:
            for process in self._clients:
                process.close()

    def _trace(self, name: str, process: Process) -> None:
        times = TRACED_COPIES if name in COPIES_BESIDE else TRACED
        try:
            self.traces[name] = process.request("trace", READY_SECONDS, times=times)
        except Exception as error:  # the profiler needs more of a machine than the models do
            self.traces[name] = describe(error)

    def _pair_rows(self, case: Case, name: str) -> list[Row]:
        """Contexts and memory of two processes, which then wait to be timed."""
        if name in self.missing:
            raise Unavailable(self.missing[name])
        pair = self._pairs[name]
        try:
            return self._measured(case, name, pair)
        except Exception as error:
            self.missing[name] = describe(error)
            log.warning("%s: %s", name, self.missing[name])
            self.methods.pop(name, None)
            for process in pair.values():
                process.close()
            raise

    def _measured(self, case: Case, name: str, pair: dict[str, Process]) -> list[Row]:
        base = self._base if name == PROCESSES_MPS else self._free()
        rows = [row for process in pair.values() for row in self._context(case, name, process)]
        if name == PROCESSES_MPS:
            self._prove(pair)
            rows += self._more_clients(case)
        for process in pair.values():
            process.request("load", captured=[])
        self.methods[name] = TwoProcesses(pair)
        self.methods[name].run()
        return [*rows, case.row(name, "memory", "device_delta", "bytes", base - self._free())]

    def _prove(self, pair: dict[str, Process]) -> None:
        """The daemon's clients are these processes and nobody else; otherwise the method doesn't run."""
        assert self._mps is not None
        workers = _ids(pair.values())
        reason = self._mps.wait_for(workers)
        self.notes["mps"] = {
            "clients": sorted(self._mps.clients()),
            "processes": workers,
            "servers": self._mps.servers(),
            "listing": self._mps.listing(),
        }
        if reason:
            raise Unavailable(reason)


def _ids(processes: Iterable[Process]) -> list[int]:
    return [process.pid for process in processes]
