"""The parent's side of `worker`: a process of one method, and a method of two of them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.measure.worker import Worker
from octopus_study.studies.concurrency.worker import Order

READY_SECONDS = 180.0  # imports and weights, with many processes at once on few cores
ANSWER_SECONDS = 60.0


class Process(Worker):
    """A process that builds and runs one method; it gets ready by itself once it is started.

    Parameters
    ----------
    environment : mapping, optional
        Variables that only this process gets.
    target : str, optional
        What it makes of the order; tests give their own.
    """

    def __init__(
        self,
        order: Order,
        environment: Mapping[str, str] | None = None,
        target: str = "octopus_study.studies.concurrency.worker:Answers",
    ) -> None:
        super().__init__(f"the process of {order.method}", environment)
        self._order, self._target, self._waiting = order, target, False

    def start(self) -> None:
        """Start it, once."""
        if not self.pid:
            super().start()
            self._waiting = True
            self.keep(self._target, self._order)

    def ready(self) -> None:
        """Wait until it has imported everything and built its models on the host."""
        self.start()
        if self._waiting:
            self._waiting = False
            self.hear(READY_SECONDS)

    def request(self, command: str, seconds: float = ANSWER_SECONDS, **options: Any) -> Any:
        """Tell it something when it is ready, and wait for the answer."""
        self.ready()
        return self.ask(command, seconds=seconds, **options)


class TwoProcesses:
    """A method of two workers, each with one pipeline; it is run like those of `methods`.

    Parameters
    ----------
    workers : mapping
        By pipeline.
    """

    def __init__(self, workers: Mapping[str, Process]) -> None:
        self.workers = dict(workers)

    def run(self) -> dict[str, float]:
        """Let both run at once; returns when each pipeline was ready, in milliseconds from the first command on."""
        started = time.perf_counter_ns()
        for worker in self.workers.values():
            worker.tell("run")
        ended: dict[str, int] = {}
        for worker in self.workers.values():
            ended |= worker.hear(ANSWER_SECONDS)
        return {name: (moment - started) / 1e6 for name, moment in ended.items()}

    def check(self, folder: Path) -> dict[str, NDArray[Any]]:
        """The results of both, each on its own, by pipeline and name."""
        results: dict[str, NDArray[Any]] = {}
        for name, worker in self.workers.items():
            path = folder / f"{name}-{worker.pid}.npz"
            worker.request("results", path=str(path))
            with np.load(path) as arrays:
                results |= {key: arrays[key] for key in arrays.files}
        return results

    def close(self) -> None:
        """End both."""
        for worker in self.workers.values():
            worker.close()
