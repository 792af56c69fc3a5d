"""Rows of study `power`: what a window gives, and the trace that it was cut out of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from octopus.measure import Case, Row, unavailable
from octopus.power.energy import WindowEnergy
from octopus.power.judges import levels
from octopus.power.quantities import Watt
from octopus.power.source import SensorError
from octopus.power.trace import Trace
from octopus.power.windows import Window

BACK_TO_BACK, PACED, IDLE, TRACE = "back_to_back", "paced", "idle", "trace"
ENERGY = "energy_per_frame"
# A sensor that is quicker than this is stored as means, so that a trace stays readable; a slower one update by update.
STORED_SECONDS = 0.05


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


def time_rows(place: Place, window: Window) -> list[Row]:
    """Rows of what the clock saw."""
    start = (window.start_ns - place.zero_ns) * 1e-9
    rows = [_row(place, "window", "s", window.seconds), _row(place, "window_start", "s", start)]
    if window.frames:
        rows += [
            _row(place, "time_per_frame", "ms", window.frame_ms),
            _row(place, "frames", "count", window.frames),
        ]
    if place.layer == PACED:
        rows.append(_row(place, "late_frames", "count", window.late))
    return rows


def energy_rows(place: Place, found: WindowEnergy, scope: str, idle: Watt | str | None) -> list[Row]:
    """Rows of what the sensor saw.

    Parameters
    ----------
    place : Place
    found : WindowEnergy
    scope : str
    idle : Watt, str or None
        Idle power, or why it isn't known; None for a window that is idle itself.
    """
    rows = [
        _row(place, f"power_mean_{scope}", "W", found.power.watts),
        _row(place, f"energy_uncertainty_{scope}", "fraction", found.uncertainty),
    ]
    for way, energy in (("counter", found.by_counter), ("integral", found.by_integral)):
        if energy is not None:
            rows.append(_row(place, f"window_energy_{way}_{scope}", "J", energy.joules))
    if idle is None:
        return rows
    gross, net = f"{ENERGY}_{scope}", f"{ENERGY}_net_{scope}"
    rows.append(_row(place, gross, "mJ", found.per_frame().joules * 1e3))
    if isinstance(idle, str):
        return [*rows, _missing(place, net, "mJ", idle)]
    return [*rows, _row(place, net, "mJ", found.per_frame_net(idle).joules * 1e3)]


def window_rows(
    place: Place,
    window: Window,
    energy: Callable[[Window], WindowEnergy],
    scope: str,
    idle: Watt | str | None,
) -> tuple[list[Row], WindowEnergy | None]:
    """Rows of a window; without an energy they say why, and the time stays.

    A window under load that drew less than the idle device has no energy either: it is the plainest sign of a sensor
    that is misread, or of another program that ended meanwhile.
    """
    rows = time_rows(place, window)
    try:
        found = energy(window)
        if isinstance(idle, Watt) and found.power < idle:
            raise SensorError(f"the load drew {found.power}, the idle device {idle}", "load-above-idle")
    except SensorError as error:
        quantity = f"power_mean_{scope}" if idle is None else f"{ENERGY}_{scope}"
        unit = "W" if idle is None else "mJ"
        return [*rows, _missing(place, quantity, unit, f"{error.check}: {error}")], None
    return [*rows, *energy_rows(place, found, scope, idle)], found


def trace_rows(
    case: Case, trace: Trace, spans: Sequence[Span], zero_ns: int, period_s: float | None
) -> list[Row]:
    """Rows of the trace: each update of the sensor, or means of 50 ms where it is quicker than that.

    `block` is the number of milliseconds since `zero_ns`.
    """
    rows: dict[int, Row] = {}
    quantity, spans = f"power_{trace.scope}", sorted(spans)
    for at_ns, power in _points(trace, period_s):
        span = next((each for each in spans if each.start_ns <= at_ns <= each.end_ns), None)
        where = case._replace(n=span.n if span else case.n)
        block = (at_ns - zero_ns) // 1_000_000
        if block >= 0:
            method = span.method if span else "between"
            rows[block] = where.row(method, TRACE, quantity, "W", power.watts, block=block)
    return list(rows.values())


def missing_rows(case: Case, methods: Sequence[str], layers: Sequence[str], why: str) -> Iterator[Row]:
    """One row per method and layer that says why there is no energy."""
    for layer in layers:
        for method in methods:
            yield unavailable(case, method, layer, ENERGY, "mJ", why)


def _points(trace: Trace, period_s: float | None) -> list[tuple[int, Watt]]:
    if period_s is not None and period_s >= STORED_SECONDS:
        return list(zip(*trace.power_updates(), strict=True))
    return list(levels(trace))


def _row(place: Place, quantity: str, unit: str, value: float) -> Row:
    return place.case.row(
        place.method, place.layer, quantity, unit, value, block=place.block, answer=place.answer
    )


def _missing(place: Place, quantity: str, unit: str, why: str) -> Row:
    row = unavailable(place.case, place.method, place.layer, quantity, unit, why)
    return row._replace(block=place.block)
