"""Workers, one per GPU, in processes or threads: both obey the same orders through a pipe.

A block begins when all have said that they are ready, at a moment that they are told; it lasts until the last one has
synchronised. Times of all workers are of one clock: Linux's monotonic one is the same in all processes. A worker that
ends or is silent is a reason for whatever needs it, and leaves the others as they are.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.measure.blocks import no_garbage_collection
from octopus_study.measure.rows import describe
from octopus_study.measure.worker import end_with_parent
from octopus_study.peers.availability import Unavailable
from octopus_study.studies.scaling.gpu import VISIBLE, only
from octopus_study.studies.scaling.work import Job, Work

PROCESSES, THREADS = WAYS = "processes", "threads"
WARM = 4  # batches that are run untimed before a block
LEAD_NS = 5_000_000  # from the last one's word to the common moment: all must have heard of it
READY_SECONDS, ANSWER_SECONDS, END_SECONDS = 300.0, 120.0, 10.0

Make = Callable[[int, bool], Any]  # a device by its number, and whether its process sees it alone


def serve(connection: Connection, make: Callable[[], Job]) -> None:
    """Make a job, and obey until the other end is closed."""
    jobs: list[Job] = []
    try:
        with connection:
            _answer(connection, lambda: jobs.append(make()))
            while jobs:
                name, *arguments = connection.recv()
                do = partial(_block, jobs[0], connection) if name == "block" else getattr(jobs[0], name)
                _answer(connection, partial(do, *arguments))
    except (EOFError, BrokenPipeError):
        return


def _answer(connection: Connection, do: Callable[[], Any]) -> None:
    """Do it and send what it says, or why it failed."""
    try:
        said = True, do()
    except (EOFError, BrokenPipeError):
        raise
    except Exception as error:  # whatever it is, it is a row
        said = False, describe(error)
    connection.send(said)


def _block(job: Job, connection: Connection, batches: Sequence[int], upload: bool) -> tuple[int, int] | None:
    """Nanoseconds of the begin and the end; None where another worker can't take part."""
    job.run(batches[:WARM], upload)
    connection.send((True, None))
    _, start = connection.recv()
    if start is None:
        return None
    with no_garbage_collection():
        time.sleep(max(0, start - time.perf_counter_ns()) / 1e9)
        began = time.perf_counter_ns()
        job.run(batches, upload)
        return began, time.perf_counter_ns()


def _in_process(connection: Connection, work: Work, make: Make, shown: str) -> None:
    end_with_parent()
    os.environ[VISIBLE] = shown  # before anything asks CUDA
    serve(connection, lambda: Job(work, make(0, True)))


class Worker:
    """The near end of a worker.

    Parameters
    ----------
    way : {"processes", "threads"}
    rank : int
        Of its GPU among those that are visible.
    work : Work
    make : callable
        Makes the device, in the worker.
    """

    def __init__(self, way: str, rank: int, work: Work, make: Make) -> None:
        self.rank, self._gone = rank, ""
        self._connection, far = Pipe()
        self._runner: Any
        if way == PROCESSES:
            given = (far, work, make, only(rank))
            self._runner = get_context("spawn").Process(target=_in_process, args=given, daemon=True)
        else:
            given = (far, lambda: Job(work, make(rank, False)))
            self._runner = threading.Thread(target=serve, args=given, daemon=True)
        self._runner.start()
        if way == PROCESSES:
            far.close()  # so that its end is seen

    def ready(self) -> None:
        """Wait until it has its job; one that has none says why at whatever it is asked."""
        try:
            self.hear(READY_SECONDS)
        except Unavailable as error:
            self._gone = str(error)

    def tell(self, *order: Any) -> None:
        """Send an order; where nobody hears it, `hear` says so."""
        try:
            self._connection.send(order)
        except OSError:
            self._gone = self._gone or self._end()

    def hear(self, seconds: float = ANSWER_SECONDS) -> Any:
        """The next answer.

        Raises
        ------
        Unavailable
            It failed, or the worker ended, or nothing came in time, after which it is ended.
        """
        if self._gone:
            raise Unavailable(self._gone)
        try:
            if not self._connection.poll(seconds):
                self.close(f"the worker of GPU {self.rank} said nothing for {seconds:g} s")
                raise Unavailable(self._gone)
            well, said = self._connection.recv()
        except (EOFError, OSError):
            self.close(self._end())
            raise Unavailable(self._gone) from None
        if not well:
            raise Unavailable(f"GPU {self.rank}: {said}")
        return said

    def close(self, why: str = "it was closed") -> None:
        """End it; a process that doesn't end by itself is killed, a thread is left alone."""
        self._gone = self._gone or why
        self._connection.close()
        self._runner.join(END_SECONDS if why == "it was closed" else 0)
        if self._runner.is_alive() and hasattr(self._runner, "kill"):
            self._runner.kill()
            self._runner.join(END_SECONDS)

    def _end(self) -> str:
        self._runner.join(END_SECONDS)
        status = getattr(self._runner, "exitcode", None)
        return f"the worker of GPU {self.rank} ended" + ("" if status is None else f" with status {status}")


class Team:
    """Workers of one way, started once.

    Parameters
    ----------
    way : {"processes", "threads"}
    count : int
    work : Work
    make : callable
        As of `Worker`.
    """

    def __init__(self, way: str, count: int, work: Work, make: Make) -> None:
        self.way = way
        self._workers = [Worker(way, rank, work, make) for rank in range(count)]
        for worker in self._workers:
            worker.ready()

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.close()

    def block(self, shares: dict[int, Sequence[int]], upload: bool) -> float:
        """Milliseconds from the first one's begin to the last one's end.

        Parameters
        ----------
        shares : dict of int to sequence of int
            The batches of each GPU that takes part.
        upload : bool
            Whether each batch is uploaded first.

        Raises
        ------
        Unavailable
            One of them can't; the others are ready for the next block.
        """
        workers = [self._workers[rank] for rank in shares]
        for worker in workers:
            worker.tell("block", shares[worker.rank], upload)
        ready, why = _heard(workers)
        start = None if why else time.perf_counter_ns() + LEAD_NS
        for worker in ready:
            worker.tell("start", start)
        done, later = _heard(list(ready))
        if why or later:
            raise Unavailable(why or later)
        began, ended = zip(*done.values(), strict=True)
        return (max(ended) - min(began)) / 1e6

    def answers(self, shares: dict[int, Sequence[int]], upload: bool) -> NDArray[Any]:
        """What is compared of each, one behind the other."""
        for rank, batches in shares.items():
            self._workers[rank].tell("answer", batches, upload)
        said, why = _heard([self._workers[rank] for rank in shares])
        if why:
            raise Unavailable(why)
        return np.concatenate(list(said.values()))

    def throttled(self) -> str | None:
        """Which GPUs were slowed down since the last call, and why, as far as workers can be asked."""
        for worker in self._workers:
            worker.tell("throttled")
        said, _ = _heard(self._workers)
        return ", ".join(f"GPU {worker.rank}: {why}" for worker, why in said.items() if why) or None


def _heard(workers: Sequence[Worker]) -> tuple[dict[Worker, Any], str]:
    """The answers of those that have one, and the first reason of the others; all are heard."""
    answers, reasons = {}, []
    for worker in workers:
        try:
            answers[worker] = worker.hear()
        except Unavailable as error:
            reasons.append(str(error))
    return answers, reasons[0] if reasons else ""
