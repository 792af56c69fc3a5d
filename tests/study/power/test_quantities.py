"""Units live in the types: nothing becomes a power or an energy that wasn't one where it was read."""

import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octopus_study.power import quantities
from octopus_study.power.quantities import Channel, Joule, MilliAmpere, MilliJoule, MilliVolt, MilliWatt, Watt

ONE, OTHER = Channel("hwmon3", 1), Channel("hwmon3", 2)
READINGS = [MilliVolt, MilliAmpere, quantities.MicroWatt, MilliWatt, MilliJoule]
SECOND_NS = 10**9


def watt(watts: float) -> Watt:
    return Watt.from_power(quantities.MicroWatt(round(watts * 1e6), ONE))


# What is made, words of the refusal, and its rule where that isn't typed-units.
REFUSED: list[tuple] = [
    (lambda: Watt(4993.2), "not made from a bare number"),
    (lambda: Joule(4993.2), "not made from a bare number"),
    *((lambda value=value: MilliVolt(value, ONE), "integers in mV") for value in (4993.2, "4993", None, True)),
    (lambda: quantities.Reading(1, ONE), "needs a unit"),
    *((lambda at=at: Watt.from_product(MilliVolt(4993, ONE), MilliAmpere(1148, at)), "one channel", "same-channel")
      for at in (OTHER, Channel("hwmon4", 1))),
    (lambda: Joule.from_counter(MilliJoule(5, ONE), MilliJoule(4, ONE)), "went back", "counter-monotonic"),
    (lambda: Joule.from_counter(MilliJoule(4, ONE), MilliJoule(5, OTHER)), "two counters"),
    (lambda: Joule.from_counter(MilliJoule(4, ONE), MilliWatt(5, ONE)), "expected MilliJoule"),
    (lambda: Watt.from_counter(MilliJoule(1, ONE), MilliJoule(2, ONE), 0), "span of time"),
    (lambda: Joule.integral([0], [watt(1)]), "two points"),
    (lambda: Joule.integral([0, 1], [watt(1)]), "two points"),
    (lambda: Joule.integral([1, 1], [watt(1)] * 2), "must ascend"),
    (lambda: Joule.integral([0, 1], [4.9, 4.9]), "can't be combined"),
    (lambda: watt(1) + watt(1).times(1), "can't be combined"),
    (lambda: watt(1).over(5.0), "can't be combined"),
    (lambda: Watt.mean([]), "no mean of no Watt"),
    (lambda: watt(1).scaled(math.inf), "finite"),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_belong_together_is_refused(case: tuple) -> None:
    make, words, *rule = case
    with pytest.raises(quantities.UnitError, match=words) as caught:
        make()
    assert [caught.value.check] == (rule or ["typed-units"])


@pytest.mark.parametrize("kind", READINGS)
def test_only_a_power_is_taken_as_a_power(kind):
    reading = kind(5_000_000, ONE)
    if kind in (quantities.MicroWatt, MilliWatt):
        assert Watt.from_power(reading).watts == pytest.approx(5.0 if kind is quantities.MicroWatt else 5000.0)
        return
    with pytest.raises(quantities.UnitError, match=f"found {kind.__name__}"):
        Watt.from_power(reading)


@pytest.mark.parametrize("voltage", READINGS)
@pytest.mark.parametrize("current", READINGS)
def test_only_volts_times_amperes_are_watts(voltage, current):
    if (voltage, current) == (MilliVolt, MilliAmpere):
        assert Watt.from_product(voltage(4993, ONE), current(1148, ONE)).watts == pytest.approx(5.731964)
        return
    with pytest.raises(quantities.UnitError, match="expected Milli"):
        Watt.from_product(voltage(4993, ONE), current(1148, ONE))


@given(st.floats(0.1, 1000), st.floats(0.1, 1000), st.integers(1, 10**11))
def test_the_integral_of_a_line_is_its_mean_times_the_time(start: float, end: float, span: int) -> None:
    powers = [watt(start), watt(end)]
    expected = (powers[0].watts + powers[1].watts) / 2 * span * 1e-9
    assert Joule.integral([7, 7 + span], powers).joules == pytest.approx(expected)
    longer = Joule.integral([7, 7 + span, 7 + 3 * span], [*powers, powers[1]]).joules
    assert longer == pytest.approx(expected + 2 * powers[1].watts * span * 1e-9)


def test_amounts_add_compare_and_divide() -> None:
    assert (watt(3) - watt(5)).watts == -2.0
    assert max(watt(3), watt(5)) == watt(5) != watt(3)
    assert watt(3).over(watt(1.5)) == 2.0
    assert math.isnan(watt(3).over(watt(0)))
    assert watt(3).times(2 * SECOND_NS).over_time(SECOND_NS).watts == pytest.approx(6.0)
    assert Watt.from_counter(MilliJoule(1000, ONE), MilliJoule(3000, ONE), SECOND_NS // 2).watts == pytest.approx(4.0)
    assert Watt.mean(iter([watt(1), watt(2)])).watts == 1.5
    with pytest.raises(TypeError):
        _ = watt(1) < watt(1).times(1)


@pytest.mark.parametrize("amount", [watt(5.5), watt(5.5).times(SECOND_NS), MilliVolt(4993, ONE)])
def test_amounts_travel_between_processes(amount: object) -> None:
    assert pickle.loads(pickle.dumps(amount)) == amount
