"""A sensor that is sampled and has passed the power-on test, or the reasons why this machine has none."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from octopus import backends
from octopus_study.errors import MeasureError
from octopus_study.power.choose import SourceSpec, candidates
from octopus_study.power.loads import known_load
from octopus_study.power.sampler import Sampler
from octopus_study.power.selftest import SYSTEM_CLOCK, SelfTest, TimeSource, Timing, power_on_test
from octopus_study.power.source import PowerSource, SensorError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Attempt:
    """A candidate that was tried: its reason is empty where it can be used; without a test it couldn't be opened."""

    spec: SourceSpec
    reason: str
    selftest: SelfTest | None = None


@dataclass(frozen=True)
class PowerSession:
    """A sensor that may be believed."""

    spec: SourceSpec
    source: PowerSource  # open in this process
    sampler: Sampler  # runs in its own; its `collect()` gives the trace since the last call
    selftest: SelfTest  # it passed; its `proof()` is what `octopus_study.power.energy` asks for
    attempts: tuple[Attempt, ...]  # the candidates in the order in which they were tried; the last one is this one


class NoUsableSensor(SensorError):  # noqa: N818  (a finding about the machine)
    """No candidate can be used: `attempts` has what each showed, `looked` the reasons by kind, and the message all."""

    def __init__(self, attempts: Sequence[Attempt]) -> None:
        self.attempts = tuple(attempts)
        self.looked = {attempt.spec.kind: attempt.reason for attempt in attempts}
        found = "; ".join(f"{attempt.spec.title}: {attempt.reason}" for attempt in attempts)
        super().__init__(f"no power sensor (looked at {found or 'nothing'})")


@contextmanager
def open_session(
    device: str,
    load: Callable[[], object] | None = None,
    specs: Sequence[SourceSpec] | None = None,
    *,
    clock: TimeSource = SYSTEM_CLOCK,
    timing: Timing | None = None,
) -> Iterator[PowerSession]:
    """Open, sample and test the sensors of a device in order, and give the first one that passes; `NoUsableSensor` has
    the reason of each. A `load` replaces the known one, which is made only when a sensor can be read."""
    device = backends.resolve(device)
    attempts: list[Attempt] = []
    for spec in candidates(device) if specs is None else specs:
        with ExitStack() as stack:
            test = None
            try:
                source = spec.open()
                work = load or known_load(device)
                sampler = stack.enter_context(Sampler(spec))
                log.info("power-on test of %s: idle, load, idle, load", spec.title)
                test = power_on_test(source, sampler.collect, work, clock=clock, timing=timing or Timing())
                test.proof()
            except MeasureError as error:
                why = getattr(error, "full", str(error)) if test is None else test.reason
                attempts.append(Attempt(spec, why, test))
                log.info("%s can't be used: %s", spec.title, why)
                continue
            attempts.append(Attempt(spec, "", test))
            yield PowerSession(spec, source, sampler, test, tuple(attempts))
            return
    raise NoUsableSensor(attempts)


def try_sensors(
    device: str, specs: Sequence[SourceSpec] | None = None, **options: Any
) -> tuple[tuple[Attempt, ...], str]:
    """Test the sensors of a device as :func:`open_session` does until one passes, close it again, and return what came
    of each, and why none can be used: empty where the last one can."""
    try:
        with open_session(device, specs=specs, **options) as session:
            return session.attempts, ""
    except NoUsableSensor as error:
        return error.attempts, str(error)
