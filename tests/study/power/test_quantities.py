"""Units live in the types: nothing becomes a power or an energy that wasn't one where it was read."""

from __future__ import annotations

import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octopus_study.power.quantities import (
    Channel,
    Joule,
    MicroJoule,
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
READINGS = [MilliVolt, MilliAmpere, MicroWatt, MilliWatt, MicroJoule, MilliJoule]
SECOND_NS = 10**9


def watt(watts: float) -> Watt:
    return Watt.from_power(MicroWatt(round(watts * 1e6), ONE))


@pytest.mark.parametrize("kind", [Watt, Joule])
def test_a_bare_number_makes_no_power_and_no_energy(kind: type) -> None:
    with pytest.raises(UnitError, match="not made from a bare number"):
        kind(4993.2)


@pytest.mark.parametrize("value", [4993.2, "4993", None, True])
def test_a_sensor_gives_integers(value: object) -> None:
    with pytest.raises(UnitError, match="a sensor gives integers in mV"):
        MilliVolt(value, ONE)


def test_a_reading_without_a_unit_is_none() -> None:
    with pytest.raises(UnitError, match="needs a unit"):
        Reading(1, ONE)


@pytest.mark.parametrize("kind", READINGS)
def test_only_a_power_is_taken_as_a_power(kind: type[Reading]) -> None:
    reading = kind(5_000_000, ONE)
    if kind in (MicroWatt, MilliWatt):
        assert Watt.from_power(reading).watts == pytest.approx(5.0 if kind is MicroWatt else 5000.0)
        return
    with pytest.raises(UnitError, match=f"found {kind.__name__}") as caught:
        Watt.from_power(reading)
    assert caught.value.check == "typed-units"


@pytest.mark.parametrize("voltage", READINGS)
@pytest.mark.parametrize("current", READINGS)
def test_only_volts_times_amperes_are_watts(voltage: type[Reading], current: type[Reading]) -> None:
    if (voltage, current) == (MilliVolt, MilliAmpere):
        assert Watt.from_product(voltage(4993, ONE), current(1148, ONE)).watts == pytest.approx(5.731964)
        return
    with pytest.raises(UnitError, match="expected Milli"):
        Watt.from_product(voltage(4993, ONE), current(1148, ONE))


@pytest.mark.parametrize("elsewhere", [OTHER, Channel("hwmon4", 1)])
def test_volts_and_amperes_are_of_one_channel(elsewhere: Channel) -> None:
    with pytest.raises(UnitError, match="V x I of one channel") as caught:
        Watt.from_product(MilliVolt(4993, ONE), MilliAmpere(1148, elsewhere))
    assert caught.value.check == "same-channel"


@pytest.mark.parametrize(("kind", "joules"), [(MilliJoule, 2.0), (MicroJoule, 0.002)])
def test_a_counter_gives_energy_and_mean_power(kind: type[Reading], joules: float) -> None:
    before, after = kind(1000, ONE), kind(3000, ONE)
    assert Joule.from_counter(before, after).joules == pytest.approx(joules)
    assert Watt.from_counter(before, after, SECOND_NS // 2).watts == pytest.approx(2 * joules)


@pytest.mark.parametrize(
    ("before", "after", "check"),
    [
        (MilliJoule(5, ONE), MilliJoule(4, ONE), "counter-monotonic"),
        (MilliJoule(4, ONE), MilliJoule(5, OTHER), "typed-units"),
        (MilliJoule(4, ONE), MicroJoule(5, ONE), "typed-units"),
        (MilliWatt(4, ONE), MilliWatt(5, ONE), "typed-units"),
    ],
    ids=["went back", "two counters", "two units", "a power"],
)
def test_what_is_no_span_of_one_counter_gives_no_energy(before: Reading, after: Reading, check: str) -> None:
    with pytest.raises(UnitError) as caught:
        Joule.from_counter(before, after)
    assert caught.value.check == check


@pytest.mark.parametrize("nanoseconds", [0, -1])
def test_a_mean_power_needs_time(nanoseconds: int) -> None:
    with pytest.raises(UnitError, match="needs a span of time"):
        Watt.from_counter(MilliJoule(1, ONE), MilliJoule(2, ONE), nanoseconds)


@given(st.floats(0.1, 1000), st.floats(0.1, 1000), st.integers(1, 10**11))
def test_the_integral_of_a_line_is_its_mean_times_the_time(start: float, end: float, span: int) -> None:
    powers = [watt(start), watt(end)]
    expected = (powers[0].watts + powers[1].watts) / 2 * span * 1e-9
    assert Joule.integral([7, 7 + span], powers).joules == pytest.approx(expected)


def test_the_integral_weighs_uneven_steps_by_their_length() -> None:
    times = [0, SECOND_NS, 4 * SECOND_NS]
    assert Joule.integral(times, [watt(10), watt(20), watt(20)]).joules == pytest.approx(15 + 60)


@pytest.mark.parametrize(
    ("times", "powers"),
    [([0], [1.0]), ([0, 1], [1.0]), ([1, 1], [1.0, 1.0]), ([2, 1], [1.0, 1.0])],
    ids=["one point", "lengths differ", "no time", "time goes back"],
)
def test_what_is_no_curve_has_no_integral(times: list[int], powers: list[float]) -> None:
    with pytest.raises(UnitError):
        Joule.integral(times, [watt(each) for each in powers])


def test_other_things_than_powers_have_no_integral() -> None:
    with pytest.raises(UnitError):
        Joule.integral([0, 1], [4993.2, 4912.8])


@pytest.mark.parametrize("combine", [lambda w, j: w + j, lambda w, j: w < j, lambda w, j: w.over(j)])
@pytest.mark.parametrize("other", [watt(1).times(SECOND_NS), 5.0], ids=["energy", "number"])
def test_powers_combine_with_powers_alone(combine, other: object) -> None:
    with pytest.raises(UnitError, match="can't be combined"):
        combine(watt(1), other)


def test_amounts_add_compare_and_divide() -> None:
    assert (watt(3) - watt(5)).watts == -2.0
    assert max(watt(3), watt(5)) == watt(5) != watt(3)
    assert watt(3).over(watt(1.5)) == 2.0
    assert math.isnan(watt(3).over(watt(0)))
    assert watt(3).times(2 * SECOND_NS).over_time(SECOND_NS).watts == pytest.approx(6.0)
    assert Watt.mean(iter([watt(1), watt(2)])).watts == 1.5
    assert len({watt(1), watt(1), watt(2)}) == 2
    assert watt(2) != 2.0


def test_there_is_no_mean_of_nothing() -> None:
    with pytest.raises(UnitError, match="no mean of no Watt"):
        Watt.mean([])


def test_infinite_amounts_are_refused() -> None:
    with pytest.raises(UnitError, match="finite"):
        watt(1).scaled(math.inf)


@pytest.mark.parametrize("amount", [watt(5.5), watt(5.5).times(SECOND_NS), MilliVolt(4993, ONE)])
def test_amounts_travel_between_processes(amount: object) -> None:
    assert pickle.loads(pickle.dumps(amount)) == amount
