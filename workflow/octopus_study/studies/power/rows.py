"""Rows of study `power`: what a window gives, and the trace that it was cut out of."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from octopus_study.measure import Case, Row, unavailable
from octopus_study.power.energy import WindowEnergy, idle_power
from octopus_study.power.lint import least_load
from octopus_study.power.quantities import Joule, Watt
from octopus_study.power.source import SensorError, Trace
from octopus_study.power.windows import Window
from octopus_study.status import NO_ANSWER

BACK_TO_BACK, PACED, IDLE, TRACE, HOST = "back_to_back", "paced", "idle", "trace", "host"
ENERGY, NET = "energy_per_frame", "energy_per_frame_net"
# A sensor that is quicker than this is stored as means, so that a trace stays readable; a slower one update by update.
STORED_NS = 50_000_000
_HOLE_NS = 500_000_000


class Span(NamedTuple):
    """A stretch of the trace and what went on in it."""

    start_ns: int
    end_ns: int
    n: int
    method: str


class Place(NamedTuple):
    """Where a window's rows belong, and what the sensor's power is the power of."""

    case: Case
    method: str
    layer: str
    block: int
    answer: str
    zero_ns: int
    scope: str

    def row(self, quantity: str, unit: str, value: float) -> Row:
        """One value of the clock."""
        where = self.method, self.layer, quantity, unit
        return self.case.row(*where, value, block=self.block, answer=self.answer)

    def sensed(self, quantity: str, unit: str, value: float | str) -> Row:
        """One value of the sensor, or why there is none."""
        if isinstance(value, str):
            row = unavailable(self.case, self.method, self.layer, quantity, unit, value)
            return row._replace(block=self.block, scope=self.scope)
        return self.row(quantity, unit, value)._replace(scope=self.scope)


class Taken(NamedTuple):
    """A window, its energy or why there is none, and the share of it and the work around it in which the power cap
    held; None where the device doesn't tell."""

    window: Window
    energy: WindowEnergy | None
    why: str
    capped: float | None = None


class Level(NamedTuple):
    """The idle power around the windows of a number of objects: what is taken off for net energies, or why that isn't
    known, and the mean power of the idle windows, before and behind."""

    net: Watt | str
    seen: tuple[Watt, ...]

    def least(self, layer: str) -> float | None:
        """Return the watts that a load must exceed; None where idle wasn't seen."""
        watts = [power.watts for power in self.seen]
        return least_load(watts, watts, layer) if watts else None


def idle_level(windows: Sequence[Taken]) -> Level:
    """Return the idle power of the windows before and behind; the latter may not have come about."""
    energies = [taken.energy for taken in windows if taken.energy is not None]
    seen = tuple(energy.power for energy in energies)
    if len(energies) < 2:
        return Level(next(taken.why for taken in windows if taken.energy is None), seen)
    try:
        return Level(idle_power(*energies), seen)
    except SensorError as error:
        return Level(error.full, seen)


def method_rows(place: Place, windows: Sequence[tuple[int, Taken]], least: int, level: Level, lost: str) -> list[Row]:
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
    rows = []
    for number, taken in judged:
        at = place._replace(block=number)
        rows += _time_rows(at, taken.window)
        if taken.capped is not None:
            rows.append(at.row("power_capped", "fraction", taken.capped))
        if taken.energy is not None:
            rows += _energy_rows(at, taken.energy)
        if taken.energy is None or few:
            rows.append(at.sensed(ENERGY, "mJ", few if taken.energy else taken.why))
            continue
        rows.append(at.sensed(ENERGY, "mJ", taken.energy.per_frame().joules * 1e3))
        net = level.net
        net = net if isinstance(net, str) else taken.energy.per_frame_net(net).joules * 1e3
        rows.append(at.sensed(NET, "mJ", net))
    return rows


def idle_rows(place: Place, taken: Taken) -> list[Row]:
    """Rows of an idle window."""
    rows = _time_rows(place, taken.window)
    if taken.energy is None:
        return [*rows, place.sensed("power_mean", "W", taken.why)]
    return [*rows, *_energy_rows(place, taken.energy)]


def _judged(taken: Taken, least: float | None) -> Taken:
    if taken.energy is None or least is None or not taken.energy.power.watts <= least:
        return taken
    why = f"load-above-idle: the load drew {taken.energy.power}, the idle device {least:.6g} W"
    return taken._replace(energy=None, why=why)


def _time_rows(place: Place, window: Window) -> list[Row]:
    start = (window.start_ns - place.zero_ns) * 1e-9
    rows = [place.row("window", "s", window.seconds), place.row("window_start", "s", start)]
    if window.frames:
        rows.append(place.row("time_per_frame", "ms", window.frame_ms))
        rows.append(place.row("frames", "count", window.frames))
    if place.layer == PACED:
        rows.append(place.row("late_frames", "count", window.late))
    return rows


def _energy_rows(place: Place, energy: WindowEnergy) -> list[Row]:
    rows = [
        place.sensed("power_mean", "W", energy.power.watts),
        place.sensed("energy_uncertainty", "fraction", energy.uncertainty),
    ]
    for source, joule in (("counter", energy.by_counter), ("integral", energy.by_integral)):
        if joule is not None:
            rows.append(place.sensed(f"window_energy_{source}", "J", joule.joules))
    return rows


def trace_rows(case: Case, trace: Trace, spans: Sequence[Span], zero_ns: int) -> list[Row]:
    """Rows of the trace: each update of the sensor, or means of 50 ms where it is quicker than that. `block` is the
    number of milliseconds since `zero_ns`."""
    rows: dict[int, Row] = {}
    spans = sorted(spans)
    for at_ns, power in _points(trace):
        span = next((span for span in spans if span.start_ns <= at_ns <= span.end_ns), None)
        where, block = case._replace(n=span.n if span else case.n), (at_ns - zero_ns) // 1_000_000
        place = Place(where, span.method if span else "between", TRACE, block, NO_ANSWER, zero_ns, trace.scope)
        if block >= 0:
            rows[block] = place.sensed("power", "W", power.watts)
    return list(rows.values())


def _points(trace: Trace) -> list[tuple[int, Watt]]:
    """Return times and powers as they are stored: updates, or means where there are more updates than that."""
    read = [(sample.at_ns, sample.power) for sample in trace.samples]
    if not read:
        return []
    updates = trace.power_updates()
    return updates if len(updates) * STORED_NS <= read[-1][0] - read[0][0] + STORED_NS else list(_means(read))


def _means(read: Sequence[tuple[int, Watt]]) -> Iterator[tuple[int, Watt]]:
    """Yield the middles of stretches of 50 ms and the mean powers there. The mean is the integral over the stretch, and
    not the mean of its readings, of which it holds now two, now three: so the stored trace has the energy of the
    readings."""
    times = [at for at, _ in read]
    for start in range(-(-times[0] // STORED_NS) * STORED_NS, times[-1] // STORED_NS * STORED_NS, STORED_NS):
        end = start + STORED_NS
        inside = slice(bisect_right(times, start), bisect_left(times, end))
        if times[inside.stop] - times[inside.start - 1] > _HOLE_NS:
            continue  # nothing was read there
        ends = _between(read, inside.start, start), _between(read, inside.stop, end)
        powers = [ends[0], *(power for _, power in read[inside]), ends[1]]
        mean = Joule.integral([start, *times[inside], end], powers).over_time(STORED_NS)
        yield start + STORED_NS // 2, mean


def _between(read: Sequence[tuple[int, Watt]], later: int, at_ns: int) -> Watt:
    """Return the power at a moment, linear between the reading `later` and the one before it."""
    (start, before), (end, after) = read[later - 1], read[later]
    share = (at_ns - start) / (end - start)
    return before.scaled(1 - share) + after.scaled(share)
