"""What sampling costs: the smallest batch, whose time is the host's, and the idle device, each with and without it."""

from __future__ import annotations

from collections.abc import Callable

from octopus.measure import Case, Row
from octopus.power.quantities import Watt
from octopus.power.selftest import SystemClock, TimeSource
from octopus.power.session import PowerSession
from octopus.power.source import Sample, SensorError
from octopus.power.windows import Stretch, back_to_back
from octopus.studies.power_rows import IDLE

REPETITIONS = 5
_BUSY = Stretch(seconds=1.0, settle_seconds=0.3, tail_seconds=0.0)
_IDLE_SECONDS, _IDLE_REPETITIONS = 3.0, 3
_SETTLE_SECONDS, _LOOK_SECONDS, _PATIENCE_SECONDS = 2.0, 0.002, 2.0


def sampling_rows(
    case: Case, session: PowerSession, frame: Callable[[], None], clock: TimeSource | None = None
) -> list[Row]:
    """Rows of a frame's time, and of the idle power where a counter gives it, with and without the sampler.

    The two take turns, and the one that begins changes.
    """
    clock = clock or SystemClock()
    rows = []
    for block in range(REPETITIONS):
        for sampled in (bool(block % 2), not block % 2):
            with_or_without(session, sampled)
            window = back_to_back(frame, _BUSY, clock)
            name = "octopus-sampled" if sampled else "octopus-unsampled"
            rows.append(case.row(name, "host", "time_per_frame", "ms", window.frame_ms, block=block))
    rows += _idle_rows(case, session, clock)
    with_or_without(session, True)
    return rows


def with_or_without(session: PowerSession, sampled: bool) -> None:
    """Let the sampler read, or wait."""
    if sampled:
        session.sampler.resume()
    else:
        session.sampler.pause()


def _idle_rows(case: Case, session: PowerSession, clock: TimeSource) -> list[Row]:
    if session.source.read().counter is None:
        return []  # without a counter nobody knows what is drawn while nobody reads
    rows = []
    clock.sleep(_SETTLE_SECONDS)
    for block in range(_IDLE_REPETITIONS):
        for sampled in (bool(block % 2), not block % 2):
            with_or_without(session, sampled)
            power = _counted_power(session, clock)
            name = "idle-sampled" if sampled else "idle-unsampled"
            quantity = f"power_mean_{session.source.scope}"
            rows.append(case.row(name, IDLE, quantity, "W", power.watts, block=block))
    return rows


def _counted_power(session: PowerSession, clock: TimeSource) -> Watt:
    """Return the mean power between two advances of the counter, some seconds apart, by two short looks at it."""
    first = _next_advance(session, clock)
    clock.sleep(_IDLE_SECONDS)
    last = _next_advance(session, clock)
    return Watt.from_counter(first.counter, last.counter, last.at_ns - first.at_ns)


def _next_advance(session: PowerSession, clock: TimeSource) -> Sample:
    """Read until the counter advances."""
    first = session.source.read()
    end = clock.monotonic_ns() + round(_PATIENCE_SECONDS * 1e9)
    while clock.monotonic_ns() < end:
        clock.sleep(_LOOK_SECONDS)
        sample = session.source.read()
        if sample.counter != first.counter:
            return sample
    raise SensorError(f"the energy counter stood still for {_PATIENCE_SECONDS:g} s", "counter-agrees")
