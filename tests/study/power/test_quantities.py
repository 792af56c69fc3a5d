"""Units live in the types: nothing becomes a power or an energy that wasn't one where it was read."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octopus_study.power.quantities import (
    Channel,
    Joule,
    MicroWatt,
    MilliAmpere,
    MilliJoule,
    MilliVolt,
    MilliWatt,
    Reading,
    UnitError,
    Watt,
)

ONE, OTHER = Channel("hwmon3", 1), Channel("hwmon3", 2)
READINGS = [MilliVolt, MilliAmpere, MicroWatt, MilliWatt, MilliJoule]
SECOND_NS = 10**9


def watt(watts: float) -> Watt:
    return Watt.from_power(MicroWatt(round(watts * 1e6), ONE))


def counted(before: Reading, after: Reading) -> Joule:
    return Joule.from_counter(before, after)


# What is made, words of the refusal, and its rule where that isn't typed-units.
REFUSED: dict[str, tuple[Callable[[], object], str] | tuple[Callable[[], object], str, str]] = {
    "a bare number as a power": (lambda: Watt(4993.2), "not made from a bare number"),
    "a bare number as an energy": (lambda: Joule(4993.2), "not made from a bare number"),
    "a float of a sensor": (lambda: MilliVolt(4993.2, ONE), "integers in mV"),
    "a text of a sensor": (lambda: MilliVolt("4993", ONE), "integers in mV"),
    "nothing of a sensor": (lambda: MilliVolt(None, ONE), "integers in mV"),
    "a truth of a sensor": (lambda: MilliVolt(True, ONE), "integers in mV"),
    "no unit": (lambda: Reading(1, ONE), "needs a unit"),
    "another channel": (
        lambda: Watt.from_product(MilliVolt(4993, ONE), MilliAmpere(1148, OTHER)),
        "V x I of one channel",
        "same-channel",
    ),
    "another chip": (
        lambda: Watt.from_product(MilliVolt(4993, ONE), MilliAmpere(1148, Channel("hwmon4", 1))),
        "V x I of one channel",
        "same-channel",
    ),
    "a counter that went back": (
        lambda: counted(MilliJoule(5, ONE), MilliJoule(4, ONE)),
        "went back",
        "counter-monotonic",
    ),
    "two counters": (lambda: counted(MilliJoule(4, ONE), MilliJoule(5, OTHER)), "two counters"),
    "a counter and a power": (lambda: counted(MilliJoule(4, ONE), MilliWatt(5, ONE)), "expected MilliJoule"),
    "powers as counters": (lambda: counted(MilliWatt(4, ONE), MilliWatt(5, ONE)), "expected MilliJoule"),
    "no span of time": (lambda: Watt.from_counter(MilliJoule(1, ONE), MilliJoule(2, ONE), 0), "span of time"),
    "one point": (lambda: Joule.integral([0], [watt(1)]), "two points"),
    "lengths that differ": (lambda: Joule.integral([0, 1], [watt(1)]), "two points"),
    "no time between": (lambda: Joule.integral([1, 1], [watt(1)] * 2), "must ascend"),
    "time that goes back": (lambda: Joule.integral([2, 1], [watt(1)] * 2), "must ascend"),
    "numbers as a curve": (lambda: Joule.integral([0, 1], [4.9, 4.9]), "can't be combined"),
    "a power and an energy": (lambda: watt(1) + watt(1).times(1), "can't be combined"),
    "a power over a number": (lambda: watt(1).over(5.0), "can't be combined"),
    "a mean of nothing": (lambda: Watt.mean([]), "no mean of no Watt"),
    "an infinite power": (lambda: watt(1).scaled(math.inf), "finite"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_belong_together_is_refused(name: str) -> None:
    make, words, *rule = REFUSED[name]
    with pytest.raises(UnitError, match=words) as caught:
        make()
    assert [caught.value.check] == (rule or ["typed-units"])


@pytest.mark.parametrize("kind", READINGS)
def test_only_a_power_is_taken_as_a_power(kind: type[Reading]) -> None:
    reading = kind(5_000_000, ONE)
    if kind in (MicroWatt, MilliWatt):
        assert Watt.from_power(reading).watts == pytest.approx(5.0 if kind is MicroWatt else 5000.0)
        return
    with pytest.raises(UnitError, match=f"found {kind.__name__}"):
        Watt.from_power(reading)


@pytest.mark.parametrize("voltage", READINGS)
@pytest.mark.parametrize("current", READINGS)
def test_only_volts_times_amperes_are_watts(voltage: type[Reading], current: type[Reading]) -> None:
    if (voltage, current) == (MilliVolt, MilliAmpere):
        assert Watt.from_product(voltage(4993, ONE), current(1148, ONE)).watts == pytest.approx(5.731964)
        return
    with pytest.raises(UnitError, match="expected Milli"):
        Watt.from_product(voltage(4993, ONE), current(1148, ONE))


def test_a_counter_gives_energy_and_mean_power() -> None:
    before, after = MilliJoule(1000, ONE), MilliJoule(3000, ONE)
    assert Joule.from_counter(before, after).joules == pytest.approx(2.0)
    assert Watt.from_counter(before, after, SECOND_NS // 2).watts == pytest.approx(4.0)


@given(st.floats(0.1, 1000), st.floats(0.1, 1000), st.integers(1, 10**11))
def test_the_integral_of_a_line_is_its_mean_times_the_time(start: float, end: float, span: int) -> None:
    powers = [watt(start), watt(end)]
    expected = (powers[0].watts + powers[1].watts) / 2 * span * 1e-9
    assert Joule.integral([7, 7 + span], powers).joules == pytest.approx(expected)


def test_the_integral_weighs_uneven_steps_by_their_length() -> None:
    times = [0, SECOND_NS, 4 * SECOND_NS]
    assert Joule.integral(times, [watt(10), watt(20), watt(20)]).joules == pytest.approx(15 + 60)


def test_amounts_add_compare_and_divide() -> None:
    assert (watt(3) - watt(5)).watts == -2.0
    assert max(watt(3), watt(5)) == watt(5) != watt(3)
    assert watt(3).over(watt(1.5)) == 2.0
    assert math.isnan(watt(3).over(watt(0)))
    assert watt(3).times(2 * SECOND_NS).over_time(SECOND_NS).watts == pytest.approx(6.0)
    assert Watt.mean(iter([watt(1), watt(2)])).watts == 1.5
    with pytest.raises(TypeError):
        _ = watt(1) < watt(1).times(1)


@pytest.mark.parametrize("amount", [watt(5.5), watt(5.5).times(SECOND_NS), MilliVolt(4993, ONE)])
def test_amounts_travel_between_processes(amount: object) -> None:
    assert pickle.loads(pickle.dumps(amount)) == amount
