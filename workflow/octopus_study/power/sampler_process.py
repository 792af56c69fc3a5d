"""The sampler's own process: `python -m octopus_study.power.sampler_process`, started by `sampler`."""

from __future__ import annotations

import os
import select
import statistics
import sys
import time
from itertools import pairwise
from typing import Any

from octopus_study.power.choose import SourceSpec
from octopus_study.power.quantities import Counter, Watt
from octopus_study.power.sampler import (
    COLLECT,
    PAUSE,
    READY,
    REFUSED,
    RESUME,
    SAMPLES,
    message,
    receive_order,
)
from octopus_study.power.source import PowerSource, Sample, SensorError
from octopus_study.power.trace import Failure, Trace

LEAST_INTERVAL_S, MOST_INTERVAL_S = 0.002, 0.02
READINGS_PER_PERIOD = 5
# A sensor that takes long to read (files over I2C, NVML's counter) is read less often, so that the sampler takes a
# third of one core at most.
LEAST_READS_PER_INTERVAL = 3
_LOOK_SECONDS = 1.0
_PERIODS = 5


def measure_period(source: PowerSource, seconds: float = _LOOK_SECONDS) -> tuple[float | None, float]:
    """Watch how often a sensor gives a new value.

    Parameters
    ----------
    source : PowerSource
    seconds : float
        How long to watch at most; five changes are enough.

    Returns
    -------
    period_s : float or None
        Median time between two changes of the counter, or of the power where there is none: an idle board may repeat a
        power, but its counter goes on. None where fewer than three were seen.
    read_s : float
        Median duration of a reading.

    Raises
    ------
    SensorError
        The first reading failed.
    """
    end = time.monotonic() + seconds
    last, changed = source.read(), []
    took = [last.took_ns]
    while time.monotonic() < end and len(changed) <= _PERIODS:
        time.sleep(LEAST_INTERVAL_S / 2)
        try:
            sample = source.read()
        except SensorError:
            continue  # one that fails now and then is judged by the power-on test
        took.append(sample.took_ns)
        if _watched(sample) != _watched(last):
            changed.append(sample.at_ns)
        last = sample
    gaps = [later - earlier for earlier, later in pairwise(changed)]
    return (statistics.median(gaps) * 1e-9 if len(gaps) > 1 else None), statistics.median(took) * 1e-9


def _watched(sample: Sample) -> Watt | Counter | None:
    return sample.power if sample.counter is None else sample.counter


class Beat:
    """Reads a source on a fixed beat, and keeps what it read."""

    def __init__(self, source: PowerSource, interval_s: float) -> None:
        self._source = source
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

    def wait_s(self) -> float:
        """Seconds until the next reading."""
        return max(0, self._next_ns - time.monotonic_ns()) * 1e-9

    def take(self) -> Trace:
        """Return what was read since the last call."""
        trace = Trace(self._source.scope, tuple(self._samples), tuple(self._failures))
        self._samples, self._failures = [], []
        return trace


def main() -> None:
    """Open the source, answer, and read until nobody talks to this process any more."""
    spec, interval_s = receive_order(sys.stdin.buffer)
    try:
        source, facts = _open(spec, interval_s)
    except SensorError as error:
        _answer(REFUSED, error)
        return
    _answer(READY, facts)
    _run(Beat(source, facts["interval_s"]))


def _open(spec: SourceSpec, interval_s: float | None) -> tuple[PowerSource, dict[str, Any]]:
    source = spec.open()
    period_s, read_s = measure_period(source)
    if interval_s is None:
        wanted = MOST_INTERVAL_S if period_s is None else period_s / READINGS_PER_PERIOD
        interval_s = min(max(wanted, LEAST_INTERVAL_S, LEAST_READS_PER_INTERVAL * read_s), MOST_INTERVAL_S)
    facts = {"scope": source.scope, "interval_s": interval_s, "period_s": period_s, "read_s": read_s}
    return source, facts


def _run(beat: Beat) -> None:
    """Read on the beat and obey commands; the end of the input is the end of the process."""
    paused = False
    orders = sys.stdin.fileno()
    while True:
        wait = None if paused else beat.wait_s()
        if select.select([orders], [], [], wait)[0]:
            command = os.read(orders, 1)
            if command == b"":
                return
            if command == COLLECT:
                _answer(SAMPLES, beat.take())
            elif command in (PAUSE, RESUME):
                paused = command == PAUSE
        else:
            beat.read()


def _answer(kind: str, content: object) -> None:
    sys.stdout.buffer.write(message(kind, content))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
