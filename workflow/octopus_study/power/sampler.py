"""Reading a sensor all the time, in a process of its own, so that what is measured doesn't wait for the sensor.

A reading of NVML's energy counter takes milliseconds; in the process that launches the work it would be part of the
work. The sampler's process reads on a fixed beat, stamps each reading with the machine-wide monotonic clock, and hands
over what it has when it is asked. A reading that fails is kept as a failure, never as 0.
"""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

from octopus_study.measure.worker import Worker, WorkerError
from octopus_study.power.choose import SourceSpec
from octopus_study.power.source import Failure, PowerSource, Sample, SensorError, Trace

_BEAT = "octopus_study.power.sampler:open_beat"
_START_SECONDS, _ANSWER_SECONDS = 60.0, 20.0
# A sensor that takes long to read (files over I2C, NVML's counter) is read less often, so that the sampler takes a
# third of one core at most.
LEAST_READS_PER_INTERVAL = 3
_READS = 9  # whose median is how long a reading takes


class Sampler:
    """Samples a source in its own process while the context is open, each `interval_s`: by default as the source asks
    for, but three times as long as a reading takes at least."""

    def __init__(self, spec: SourceSpec, interval_s: float | None = None) -> None:
        self.spec = spec
        self._interval_s = interval_s
        self._worker = Worker(f"the sampler of {spec.title}")
        self._facts: dict[str, Any] = {}
        self._samples = self._failures = 0

    def __enter__(self) -> Self:
        """Start the process and wait until it has opened the source."""
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

    def collect(self) -> Trace:
        """Return what was read since the last call; `SensorError` where the process died or doesn't answer, so that
        nothing is known of the time since."""
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


# The side of its process.


class Beat:
    """Reads a source on a fixed beat, and keeps what it read."""

    def __init__(self, source: PowerSource, interval_s: float) -> None:
        self._source, self._paused = source, False
        self._facts = {"scope": source.scope, "interval_s": interval_s}
        self._interval_ns = round(interval_s * 1e9)
        self._next_ns = time.monotonic_ns()
        self._samples: list[Sample] = []
        self._failures: list[Failure] = []

    def read(self) -> None:
        """Read once, and set the time of the next reading: beats that were missed are left out, the grid stays."""
        try:
            self._samples.append(self._source.read())
        except SensorError as error:
            self._failures.append(Failure(time.monotonic_ns(), str(error)))
        passed = (time.monotonic_ns() - self._next_ns) // self._interval_ns
        self._next_ns += self._interval_ns * (passed + 1)

    def wait_s(self) -> float | None:
        """Seconds until the next reading; None while there is none."""
        return None if self._paused else max(0, self._next_ns - time.monotonic_ns()) * 1e-9

    def facts(self) -> dict[str, Any]:
        """How the source is sampled."""
        return self._facts

    def pause(self) -> None:
        """Read no more until `resume`."""
        self._paused = True

    def resume(self) -> None:
        """Read again."""
        self._paused = False

    def take(self) -> Trace:
        """Return what was read since the last call."""
        trace = Trace(self._source.scope, tuple(self._samples), tuple(self._failures))
        self._samples, self._failures = [], []
        return trace


def open_beat(spec: SourceSpec, interval_s: float | None) -> Beat:
    """Open a source in the sampler's process; `interval_s` by default as it asks for, and as its readings allow."""
    source = spec.open()
    if interval_s is None:
        interval_s = max(source.interval_s, LEAST_READS_PER_INTERVAL * _reading_s(source))
    return Beat(source, interval_s)


def _reading_s(source: PowerSource) -> float:
    """How long a reading takes; one that fails now and then is judged by the power-on test."""
    took = []
    for _ in range(_READS):
        with suppress(SensorError):
            took.append(source.read().took_ns)
    return statistics.median(took or [0]) * 1e-9
