"""The parent's side of `worker`: starts processes, speaks with them within time limits, and ends them."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.measure.rows import one_line
from octopus_study.peers.availability import Unavailable
from octopus_study.studies.concurrency.worker import Order

MODULE = "octopus_study.studies.concurrency.worker"
READY_SECONDS = 180.0  # imports and weights, with many processes at once on few cores
ANSWER_SECONDS = 60.0
END_SECONDS = 10.0


class Process:
    """One worker.

    Parameters
    ----------
    order : Order
    environment : mapping, optional
        Variables that only this process gets.
    command : list of str, optional
        What to start; tests give their own.
    """

    def __init__(
        self, order: Order, environment: Mapping[str, str] | None = None, command: list[str] | None = None
    ) -> None:
        self.order = order
        self._environment = dict(environment or {})
        self._command = command or [sys.executable, "-m", MODULE]
        self._child: subprocess.Popen[str] | None = None
        self._ready = False

    @property
    def process(self) -> int:
        """Its id, 0 before it is started."""
        return self._child.pid if self._child else 0

    def start(self) -> None:
        """Start it, once; it gets ready by itself."""
        if self._child is not None:
            return
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            **self._environment,
        }
        # Appending, since the process shares the position in the file with whoever reads it here.
        self._errors = tempfile.TemporaryFile("a+", encoding="utf-8", errors="replace")  # noqa: SIM115 - until `close`
        self._child = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=environment,
        )
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._listen, args=(self._child,), daemon=True).start()
        self._write(asdict(self.order))

    def ready(self, seconds: float = READY_SECONDS) -> None:
        """Wait until it has imported everything and built its models on the host."""
        self.start()
        if not self._ready:
            self.hear(seconds)
            self._ready = True

    def ask(self, command: str, seconds: float = ANSWER_SECONDS, **arguments: Any) -> dict[str, Any]:
        """Tell it something and wait for the answer."""
        self.ready()
        self.tell(command, **arguments)
        return self.hear(seconds)

    def tell(self, command: str, **arguments: Any) -> None:
        """Send a command; its answer must be heard before the next."""
        self._write({"do": command, **arguments})

    def hear(self, seconds: float = ANSWER_SECONDS) -> dict[str, Any]:
        """The next answer.

        Raises
        ------
        Unavailable
            The command failed, the process ended, or nothing came in time, after which it is ended.
        """
        try:
            line = self._answers.get(timeout=seconds)
        except queue.Empty:
            why = f"the process of {self.order.method} said nothing for {seconds:g} s{self._last_words()}"
            self.close(kill=True)
            raise Unavailable(why) from None
        if not line:
            assert self._child is not None
            status = self._child.wait(END_SECONDS)
            why = f"the process of {self.order.method} ended with status {status}{self._last_words()}"
            self.close(kill=True)
            raise Unavailable(why)
        answer: dict[str, Any] = json.loads(line)
        if "why" in answer:
            raise Unavailable(answer["why"])
        return answer

    def close(self, kill: bool = False) -> None:
        """End it; one that doesn't end when told to is killed."""
        child, self._child = self._child, None
        self._ready = False
        if child is None:
            return
        assert child.stdin is not None
        try:
            if not kill:
                child.stdin.write(json.dumps({"do": "quit"}) + "\n")
                child.stdin.close()
                child.wait(END_SECONDS)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            pass
        finally:
            if child.poll() is None:
                child.kill()
                child.wait(END_SECONDS)
            self._errors.close()

    def _write(self, message: dict[str, Any]) -> None:
        if self._child is None:
            raise Unavailable(f"the process of {self.order.method} is no longer there")
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps(message) + "\n")
            self._child.stdin.flush()
        except OSError as error:
            raise Unavailable(f"the process of {self.order.method} is gone{self._last_words()}") from error

    def _listen(self, child: subprocess.Popen[str]) -> None:
        """Put each line of its output into the queue, then an empty one: the end."""
        assert child.stdout is not None
        for line in child.stdout:
            self._answers.put(line)
        self._answers.put("")

    def _last_words(self) -> str:
        """The end of what it wrote to its standard error."""
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()
        return f": {one_line(lines[-1], 200)}" if lines else ""


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
            ended |= worker.hear()["ended"]
        return {name: (moment - started) / 1e6 for name, moment in ended.items()}

    def check(self, folder: Path) -> dict[str, NDArray[Any]]:
        """The results of both, each on its own, by pipeline and name."""
        results: dict[str, NDArray[Any]] = {}
        for name, worker in self.workers.items():
            path = folder / f"{name}-{worker.process}.npz"
            worker.ask("results", path=str(path))
            with np.load(path) as arrays:
                results |= {key: arrays[key] for key in arrays.files}
        return results

    def proofs(self) -> dict[str, int]:
        """Processes that are none of the others, nor this one."""
        return {"processes": len({worker.process for worker in self.workers.values()} - {os.getpid()})}

    def close(self) -> None:
        """End both."""
        for worker in self.workers.values():
            worker.close()
