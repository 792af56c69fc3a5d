"""Reading a sensor all the time, in a process of its own, so that what is measured doesn't wait for the sensor.

A reading of NVML's energy counter takes milliseconds; in the process that launches the work it would be part of the
work. The sampler's process reads on a fixed beat, stamps each reading with the machine-wide monotonic clock, and hands
over what it has when it is asked. A reading that fails is kept as a failure, never as 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from octopus_study.measure.worker import Worker, WorkerError
from octopus_study.power.choose import SourceSpec
from octopus_study.power.source import SensorError
from octopus_study.power.trace import Trace

_BEAT = "octopus_study.power.sampler_process:open_beat"
_START_SECONDS = 60.0
_ANSWER_SECONDS = 20.0


class Sampler:
    """Samples a source in its own process while the context is open.

    Parameters
    ----------
    spec : SourceSpec
    interval_s : float, optional
        Seconds from one reading to the next; by default a fifth of the sensor's own period and three times as long as a
        reading takes, within 2 to 20 ms.
    """

    def __init__(self, spec: SourceSpec, interval_s: float | None = None) -> None:
        self.spec = spec
        self._interval_s = interval_s
        self._worker = Worker(f"the sampler of {spec.title}")
        self._facts: dict[str, Any] = {}
        self._samples = self._failures = 0

    def __enter__(self) -> Self:
        """Start the process and wait until it has opened the source.

        Raises
        ------
        SensorError
            The source can't be opened there, or the process doesn't answer.
        """
        try:
            self._worker.start()
            self._worker.keep(_BEAT, self.spec, self._interval_s)
            with _as_sensor_error():
                self._worker.hear(_START_SECONDS)
            self._facts = self._ask("facts")
        except BaseException:
            self._worker.close(kill=True)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self._worker.close()

    @property
    def scope(self) -> str:
        """What the sampled power is the power of."""
        return str(self._facts["scope"])

    @property
    def period_s(self) -> float | None:
        """Seconds between two new values of the sensor, as seen at the start; None where it repeated one."""
        return self._facts["period_s"]

    def collect(self) -> Trace:
        """Return what was read since the last call.

        Raises
        ------
        SensorError
            The process died or doesn't answer: nothing is known of the time since the last call.
        """
        trace = self._ask("take")
        self._samples += len(trace.samples)
        self._failures += len(trace.failures)
        return trace

    def pause(self) -> None:
        """Stop reading until `resume`; the process waits."""
        self._ask("pause")

    def resume(self) -> None:
        """Read again."""
        self._ask("resume")

    def facts(self) -> dict[str, Any]:
        """Return how the source is sampled, and how many readings were collected until now, as plain JSON values."""
        return {**self._facts, "samples": self._samples, "failures": self._failures}

    def _ask(self, command: str) -> Any:
        with _as_sensor_error():
            return self._worker.ask(command, seconds=_ANSWER_SECONDS)


@contextmanager
def _as_sensor_error() -> Iterator[None]:
    try:
        yield
    except WorkerError as error:
        raise SensorError(str(error)) from None
