"""Rows of study `power`: what a window gives, and the trace that it was cut out of."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from octopus_study.measure import Case, Row, unavailable
from octopus_study.power.energy import WindowEnergy, idle_power
from octopus_study.power.judges import levels
from octopus_study.power.lint import PACED_TOLERANCE, SAME_POWER
from octopus_study.power.quantities import Joule, Watt
from octopus_study.power.source import SensorError
from octopus_study.power.trace import Trace
from octopus_study.power.windows import Window

BACK_TO_BACK, PACED, IDLE, TRACE, HOST = "back_to_back", "paced", "idle", "trace", "host"
ENERGY = "energy_per_frame"
# A sensor that is quicker than this is stored as means, so that a trace stays readable; a slower one update by update.
STORED_SECONDS = 0.05
_HOLE_NS = 500_000_000


class Span(NamedTuple):
    """A stretch of the trace and what went on in it."""

    start_ns: int
    end_ns: int
    n: int
    method: str


class Place(NamedTuple):
    """Where a window's rows belong."""

    case: Case
    method: str
    layer: str
    block: int
    answer: str
    zero_ns: int

    def row(self, quantity: str, unit: str, value: float) -> Row:
        """One value of the window."""
        return self.case.row(
            self.method, self.layer, quantity, unit, value, block=self.block, answer=self.answer
        )

    def gap(self, quantity: str, unit: str, reason: str) -> Row:
        """Why there is none."""
        row = unavailable(self.case, self.method, self.layer, quantity, unit, reason)
        return row._replace(block=self.block)


class Taken(NamedTuple):
    """A window and what is known of it.

    Attributes
    ----------
    window : Window
    energy : WindowEnergy or None
    why : str
        Why there is no energy; empty where there is one.
    capped : float or None
        Share of the window, and the work around it, in which the power cap held; None where the device doesn't tell.
    """

    window: Window
    energy: WindowEnergy | None
    why: str
    capped: float | None = None


class Level(NamedTuple):
    """The idle power around the windows of a number of objects.

    Attributes
    ----------
    net : Watt or str
        What is taken off for net energies, or why that isn't known.
    seen : tuple of Watt
        Mean power of the idle windows, before and behind.
    """

    net: Watt | str
    seen: tuple[Watt, ...]

    def least(self, layer: str) -> Watt | None:
        """Return what a load must exceed; at a fixed rate of frames the device is idle nearly all the time."""
        if not self.seen:
            return None
        if layer == PACED:
            return min(self.seen).scaled(1 - PACED_TOLERANCE)
        return max(self.seen).scaled(1 + SAME_POWER)


def idle_level(windows: Sequence[Taken]) -> Level:
    """Return the idle power of the windows before and behind; the latter may not have come about."""
    energies = [taken.energy for taken in windows if taken.energy is not None]
    seen = tuple(energy.power for energy in energies)
    if len(energies) == 2:
        try:
            return Level(idle_power(*energies), seen)
        except SensorError as error:
            return Level(error.full, seen)
    return Level(next(taken.why for taken in windows if taken.energy is None), seen)


def method_rows(
    place: Place, windows: Sequence[tuple[int, Taken]], least: int, scope: str, level: Level, lost: str
) -> list[Row]:
    """Rows of a method's windows, each with the number of its round.

    A window under load that drew less than the idle device has no energy: it is the plainest sign of a sensor that is
    misread, or of another program that ended meanwhile. With fewer than `least` energies the method has none per frame,
    and its rows say why: a window's own reason, or that of `lost`, the sampler's end. What its windows gave is kept.
    """
    judged = [(number, _judged(taken, level.least(place.layer))) for number, taken in windows]
    gaps = [taken.why for _, taken in judged if taken.energy is None]
    count, few = len(judged) - len(gaps), ""
    if count < least:
        few = f"{count} of {least} windows have an energy: {lost or gaps[0]}"
    return [
        row
        for number, taken in judged
        for row in _window_rows(place._replace(block=number), taken, scope, level.net, few)
    ]


def idle_rows(place: Place, taken: Taken, scope: str) -> list[Row]:
    """Rows of an idle window."""
    rows = _time_rows(place, taken.window)
    if taken.energy is None:
        return [*rows, place.gap(f"power_mean_{scope}", "W", taken.why)]
    return [*rows, *_energy_rows(place, taken.energy, scope)]


def _judged(taken: Taken, least: Watt | None) -> Taken:
    if taken.energy is None or least is None or not taken.energy.power <= least:
        return taken
    why = f"load-above-idle: the load drew {taken.energy.power}, the idle device {least}"
    return taken._replace(energy=None, why=why)


def _window_rows(place: Place, taken: Taken, scope: str, idle: Watt | str, few: str) -> list[Row]:
    rows = _time_rows(place, taken.window)
    if taken.capped is not None:
        rows.append(place.row("power_capped", "fraction", taken.capped))
    gross, net = f"{ENERGY}_{scope}", f"{ENERGY}_net_{scope}"
    if taken.energy is None:
        return [*rows, place.gap(gross, "mJ", taken.why)]
    rows += _energy_rows(place, taken.energy, scope)
    if few:
        return [*rows, place.gap(gross, "mJ", few)]
    rows.append(place.row(gross, "mJ", taken.energy.per_frame().joules * 1e3))
    if isinstance(idle, str):
        return [*rows, place.gap(net, "mJ", idle)]
    return [*rows, place.row(net, "mJ", taken.energy.per_frame_net(idle).joules * 1e3)]


def _time_rows(place: Place, window: Window) -> list[Row]:
    """Rows of what the clock saw."""
    start = (window.start_ns - place.zero_ns) * 1e-9
    rows = [place.row("window", "s", window.seconds), place.row("window_start", "s", start)]
    if window.frames:
        rows += [
            place.row("time_per_frame", "ms", window.frame_ms),
            place.row("frames", "count", window.frames),
        ]
    if place.layer == PACED:
        rows.append(place.row("late_frames", "count", window.late))
    return rows


def _energy_rows(place: Place, energy: WindowEnergy, scope: str) -> list[Row]:
    """Rows of what the sensor saw."""
    rows = [
        place.row(f"power_mean_{scope}", "W", energy.power.watts),
        place.row(f"energy_uncertainty_{scope}", "fraction", energy.uncertainty),
    ]
    for source, joule in (("counter", energy.by_counter), ("integral", energy.by_integral)):
        if joule is not None:
            rows.append(place.row(f"window_energy_{source}_{scope}", "J", joule.joules))
    return rows


def trace_rows(case: Case, trace: Trace, spans: Sequence[Span], zero_ns: int) -> list[Row]:
    """Rows of the trace: each update of the sensor, or means of 50 ms where it is quicker than that.

    `block` is the number of milliseconds since `zero_ns`.
    """
    rows: dict[int, Row] = {}
    quantity, spans = f"power_{trace.scope}", sorted(spans)
    for at_ns, power in _points(trace):
        span = next((span for span in spans if span.start_ns <= at_ns <= span.end_ns), None)
        where = case._replace(n=span.n if span else case.n)
        block = (at_ns - zero_ns) // 1_000_000
        if block >= 0:
            method = span.method if span else "between"
            rows[block] = where.row(method, TRACE, quantity, "W", power.watts, block=block)
    return list(rows.values())


def _points(trace: Trace) -> list[tuple[int, Watt]]:
    """Return times and powers as they are stored: updates, or means where there are more updates than that."""
    read = [(sample.at_ns, sample.power) for sample in trace.samples if sample.power is not None]
    if not read:
        return list(levels(trace))
    updates = trace.power_updates()
    seconds = (read[-1][0] - read[0][0]) * 1e-9
    return updates if len(updates) * STORED_SECONDS <= seconds + STORED_SECONDS else list(_means(read))


def _means(read: Sequence[tuple[int, Watt]]) -> Iterator[tuple[int, Watt]]:
    """Yield the middles of stretches of 50 ms and the mean powers there.

    The mean is the integral over the stretch, and not the mean of its readings, of which it holds now two, now three:
    so the stored trace has the energy of the readings.
    """
    length = round(STORED_SECONDS * 1e9)
    times = [at for at, _ in read]
    first, last = -(-times[0] // length), times[-1] // length
    for start in range(first * length, last * length, length):
        end = start + length
        inside = slice(bisect_right(times, start), bisect_left(times, end))
        if times[inside.stop] - times[inside.start - 1] > _HOLE_NS:
            continue  # nothing was read there
        ends = _between(read, inside.start, start), _between(read, inside.stop, end)
        powers = [ends[0], *(power for _, power in read[inside]), ends[1]]
        yield start + length // 2, Joule.integral([start, *times[inside], end], powers).over_time(length)


def _between(read: Sequence[tuple[int, Watt]], later: int, at_ns: int) -> Watt:
    """Return the power at a moment, linear between the reading `later` and the one before it."""
    (start, before), (end, after) = read[later - 1], read[later]
    share = (at_ns - start) / (end - start)
    return before.scaled(1 - share) + after.scaled(share)
