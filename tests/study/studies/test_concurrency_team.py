"""A team of processes that never gets to work: nothing of it stays behind."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from octopus_study.studies.concurrency.rows import PROCESSES_MPS
from octopus_study.studies.concurrency.team import Team
from octopus_study.studies.concurrency.worker import Order

ORDER = Order("sequential", "cpu", "frame.npy", "small", 42)


class Worker:
    """A process that is never started."""

    closed = 0

    def __init__(self, order, environment) -> None:
        self.order = order

    def start(self):
        pass

    def close(self, kill=False):
        Worker.closed += 1


class Daemon:
    """A pretended MPS daemon."""

    environment: dict[str, str] = {}  # noqa: RUF012 - as in Mps
    log: list[str] = []  # noqa: RUF012 - of all

    def __enter__(self):
        self.log.append("begun")
        return self

    def __exit__(self, *_):
        self.log.append("ended")


def test_a_team_that_fails_to_begin_leaves_no_daemon_and_no_process(monkeypatch):
    def fail():
        raise OSError("no more processes")

    team = Team(ORDER, lambda: 0, True, Worker, Daemon)
    monkeypatch.setattr(team, "_start_ahead", fail)
    before = Worker.closed
    with pytest.raises(OSError, match="no more processes"), team:
        pass
    assert Daemon.log == ["begun", "ended"]
    assert Worker.closed - before == 4 + len(team._own) + 2 + 2


def test_a_daemon_that_the_system_refuses_is_a_gap():
    @contextmanager
    def refused():
        raise PermissionError("not here")
        yield

    with Team(ORDER, lambda: 0, True, Worker, refused) as team:
        assert team.missing == {PROCESSES_MPS: "PermissionError: not here"}
