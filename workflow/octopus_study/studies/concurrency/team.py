"""The processes of the study `concurrency`: they try out CUDA graphs, show what memory an arm takes, and are two arms.

Memory is what the GPU's free memory, read here, loses when a process starts CUDA (`process_context`), and until its arm
has run (`device_delta`, context included). So nothing else may allocate meanwhile, this process included: the team is
done before the study's own models go to the GPU.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any

from octopus.backends import cpu
from octopus_study.measure import Case, Row, available_cores
from octopus_study.measure.rows import describe
from octopus_study.peers.availability import Unavailable
from octopus_study.studies.concurrency.arms import ALONE
from octopus_study.studies.concurrency.models import SATELLITE_MATCHING, VISUAL_ODOMETRY
from octopus_study.studies.concurrency.mps import Mps
from octopus_study.studies.concurrency.process import Process, TwoProcesses
from octopus_study.studies.concurrency.rows import CONTEXTS, OWN_MEMORY, PROCESSES, PROCESSES_MPS, memory_gap
from octopus_study.studies.concurrency.worker import Order

log = logging.getLogger(__name__)

STAGES = {
    "superpoint": VISUAL_ODOMETRY,
    "lightglue": VISUAL_ODOMETRY,
    "dinov2": SATELLITE_MATCHING,
    "efficientloftr": SATELLITE_MATCHING,
}
ARM_OF = {pipeline: arm for arm, pipeline in ALONE.items()}
TURNED_OFF = "the configuration has concurrency.processes off"
# All processes import at once where there is room; elsewhere each is started when it is needed.
CORES, BYTES = 8, 3 << 30


class Team:
    """All processes of a run; a context manager that ends them.

    Parameters
    ----------
    order : Order
        What all of them have in common; the arm is theirs.
    free : callable
        Free memory of the GPU in bytes.
    processes : bool
        Whether there are the two arms of two processes.
    make : callable
        Makes a `Process`; tests give their own.
    mps : callable
        Makes an `Mps`; so do they.

    Attributes
    ----------
    arms : dict of TwoProcesses
        Those of the two arms that can run.
    missing : dict of str
        Why the others can't.
    captured : dict of str
        By stage: why it can't be held in a CUDA graph; empty where it can.
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
        self.arms: dict[str, TwoProcesses] = {}
        self.missing = {} if processes else dict.fromkeys(CONTEXTS, TURNED_OFF)
        self.captured: dict[str, str] = {}
        self.notes: dict[str, Any] = {}
        self._mps: Mps | None = None
        self._base = 0

    def __enter__(self) -> Team:
        try:
            self._begin()
        except BaseException:  # nobody calls `__exit__` then, and the daemon would stay
            self._stack.close()
            raise
        return self

    def _begin(self) -> None:
        self._base = self._free()
        self._probes = {stage: self._process(ARM_OF[pipeline]) for stage, pipeline in STAGES.items()}
        self._own = {arm: self._process(arm) for arm in OWN_MEMORY}
        self._pairs: dict[str, dict[str, Process]] = {}
        if PROCESSES not in self.missing:
            self._pairs[PROCESSES] = self._pair({})
            self._start_mps()
        self._start_ahead()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def work(self, case: Case) -> list[Row]:
        """Everything that needs the GPU's memory to itself; the arms are ready behind it."""
        self._probe()
        found: list[Row] = []
        # First the one whose first client also starts the server: `_base` is from before that.
        for name in (PROCESSES_MPS, PROCESSES):
            found += self._pair_rows(case, name)
        for arm in OWN_MEMORY:
            found += self._own_rows(case, arm)
        return found

    def still_attached(self) -> str:
        """Why what was timed with MPS was not, or an empty text."""
        if self._mps is None or PROCESSES_MPS not in self.arms:
            return ""
        return self._mps.wait_for(_ids(self.arms[PROCESSES_MPS].workers.values()), 0.0)

    def _process(self, arm: str, environment: Mapping[str, str] | None = None) -> Process:
        process = self._make(replace(self._order, arm=arm), environment)
        self._stack.callback(process.close)
        return process

    def _pair(self, environment: Mapping[str, str]) -> dict[str, Process]:
        return {pipeline: self._process(arm, environment) for arm, pipeline in ALONE.items()}

    def _start_mps(self) -> None:
        """The daemon must be there before its clients, and stay until they have ended."""
        try:
            self._mps = self._stack.enter_context(self._mps_of())
        except (Unavailable, OSError) as error:
            self.missing[PROCESSES_MPS] = _why(error)
            log.warning("MPS: %s", self.missing[PROCESSES_MPS])
            return
        self._pairs[PROCESSES_MPS] = self._pair(self._mps.environment)

    def _start_ahead(self) -> None:
        pairs = [process for pair in self._pairs.values() for process in pair.values()]
        team = [*self._probes.values(), *self._own.values(), *pairs]
        self._ahead = available_cores() >= CORES and cpu.free_bytes() >= BYTES * len(team)
        if self._ahead:
            log.info("%d processes get ready", len(team))
            for process in team:
                process.start()

    def _probe(self) -> None:
        """Find the stages that CUDA graphs can hold."""
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
                process.tell("capture", stage=stage)
            if hear:
                process.hear()
        except Exception as error:  # whatever it is
            self.captured[stage] = _why(error)

    def _graphs(self) -> list[str]:
        return [stage for stage, why in self.captured.items() if not why]

    def _own_rows(self, case: Case, arm: str) -> list[Row]:
        """The memory of an arm that is one process."""
        process = self._own[arm]
        try:
            process.ready()
            before = self._free()
            self._warm(process)
            taken = before - self._free()
        except Exception as error:  # this arm has no number, the others go on
            return memory_gap(case, arm, _why(error))
        finally:
            process.close(kill=True)
        return [case.row(arm, "memory", "device_delta", "bytes", taken)]

    def _warm(self, process: Process) -> None:
        process.ask("context")
        process.ask("load", captured=self._graphs())
        process.ask("run")

    def _pair_rows(self, case: Case, name: str) -> list[Row]:
        """Contexts and memory of two processes, which then wait to be timed."""
        if name in self.missing:
            return memory_gap(case, name, self.missing[name])
        pair = self._pairs[name]
        try:
            return self._measured(case, name, pair)
        except Exception as error:  # this arm has no number, the others go on
            self.missing[name] = _why(error)
            log.warning("%s: %s", name, self.missing[name])
            self.arms.pop(name, None)
            for process in pair.values():
                process.close()
            return memory_gap(case, name, self.missing[name])

    def _measured(self, case: Case, name: str, pair: dict[str, Process]) -> list[Row]:
        base = before = self._base if name == PROCESSES_MPS else self._free()
        found = []
        for block, process in enumerate(pair.values()):
            said = process.ask("context")
            after = self._free()
            taken, before = before - after, after
            found.append(case.row(CONTEXTS[name], "memory", "process_context", "bytes", taken, block=block))
            self.notes.setdefault("driver_says_mps", {})[f"{name}/{block}"] = said.get("mps")
        if name == PROCESSES_MPS:
            found.append(self._proof(case, pair))
        for process in pair.values():
            process.ask("load", captured=[])
        self.arms[name] = TwoProcesses(pair)
        self.arms[name].run()
        return [*found, case.row(name, "memory", "device_delta", "bytes", base - self._free())]

    def _proof(self, case: Case, pair: dict[str, Process]) -> Row:
        """The daemon's clients are these processes and nobody else; otherwise the arm doesn't run."""
        assert self._mps is not None
        workers = _ids(pair.values())
        why = self._mps.wait_for(workers)
        clients = self._mps.clients()
        self.notes["mps"] = {
            "clients": sorted(clients),
            "processes": workers,
            "servers": self._mps.servers(),
            "listing": self._mps.listing(),
        }
        if why:
            raise Unavailable(why)
        return case.row(PROCESSES_MPS, "deterministic", "mps_clients", "count", len(clients))


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, Unavailable) else describe(error)


def _ids(processes: Iterable[Process]) -> list[int]:
    return [process.process for process in processes]
