"""Energy ratio = time ratio x power ratio, with intervals that hold the truth and sentences by rule."""

from __future__ import annotations

import math

import numpy as np
import pytest

from octopus.errors import InputError
from octopus_study.measure.student import t_probability, t_quantile
from octopus_study.report.studies.power_decomposition import (
    Decomposition,
    Floors,
    Ratio,
    decompose,
    paired_ratio,
    sentence,
)


def windows(time: float, power: float, count: int = 5, noise: float = 1e-3, seed: int = 0) -> Decomposition:
    """Take apart a method whose time and power are these multiples of the other's."""
    rng = np.random.default_rng(seed)

    def spread() -> np.ndarray:
        return np.exp(rng.normal(0, noise, count))

    other_time, other_power = 10 * spread(), 100 * spread()
    times, powers = 10 * time * spread(), 100 * power * spread()
    return decompose(times, times * powers, other_time, other_time * other_power)


def exact(time: float, power: float, width: float = 0.01) -> Decomposition:
    """Return ratios with the same relative width everywhere."""
    ratios = (Ratio(value, value * (1 - width), value * (1 + width)) for value in (time, power, time * power))
    return Decomposition(*ratios, windows=5)


@pytest.mark.parametrize(
    ("confidence", "freedom", "quantile"),
    [
        (0.95, 1, 12.7062),
        (0.95, 2, 4.3027),
        (0.95, 4, 2.7764),
        (0.95, 5, 2.5706),
        (0.95, 30, 2.0423),
        (0.99, 9, 3.2498),
    ],
)
def test_quantiles_are_those_of_the_tables(confidence: float, freedom: int, quantile: float) -> None:
    assert t_quantile(confidence, freedom) == pytest.approx(quantile, abs=1e-4)
    assert t_probability(quantile, freedom) == pytest.approx(confidence, abs=1e-5)


def test_the_product_of_time_and_power_is_the_energy() -> None:
    found = windows(0.8, 1.07, noise=0.05)
    assert found.time.value * found.power.value == pytest.approx(found.energy.value, rel=1e-12)
    assert found.windows == 5


def test_ratios_of_paired_windows_ignore_what_slowed_both() -> None:
    slow = np.array([1.0, 1.5, 2.0, 1.2, 1.1])
    found = decompose(8 * slow, 80 * slow, 10 * slow, 100 * slow)
    assert found.time == pytest.approx((0.8, 0.8, 0.8))


def test_one_quantity_alone_has_the_same_ratio() -> None:
    energies = [1.0, 1.1, 0.9], [2.0, 2.1, 1.9]
    assert paired_ratio(*energies) == decompose([1] * 3, energies[0], [1] * 3, energies[1]).energy


def test_intervals_of_five_windows_hold_the_truth_in_95_percent() -> None:
    """A percentile bootstrap of five windows would hold it in about 83 %."""
    inside = [
        found.energy.low <= 0.8 * 1.07 <= found.energy.high
        for found in (windows(0.8, 1.07, noise=0.01, seed=seed) for seed in range(2000))
    ]
    assert np.mean(inside) == pytest.approx(0.95, abs=0.015)


def test_a_single_window_has_no_interval_and_no_verdict() -> None:
    found = windows(0.8, 1.0, count=1)
    assert math.isnan(found.energy.low) and found.energy.direction() == "unclear"
    assert sentence(found) == "1 window can't tell a difference from noise"


@pytest.mark.parametrize(
    ("time", "power", "said"),
    [
        (0.80, 1.000, "the saving of 20 % is all time"),
        (1.00, 0.900, "the saving of 10 % is all power"),
        (0.80, 1.100, "time saves 20 %, a higher power takes back 8.0 %, which leaves 12 %"),
        (1.10, 0.800, "a lower power saves 20 %, a longer time takes back 8.0 %, which leaves 12 %"),
        (0.80, 0.900, "time saves 20 %, a lower power another 8.0 %, together 28 %"),
        (1.20, 1.000, "the extra 20 % is all time"),
        (1.00, 1.200, "the extra 20 % is all power"),
        (0.80, 1.500, "time saves 20 %, but a higher power costs 40 %: 20 % more energy"),
        (1.50, 0.800, "a lower power saves 20 %, but a longer time costs 40 %: 20 % more energy"),
        (1.20, 1.100, "time costs 20 %, a higher power another 12 %, together 32 % more energy"),
        (1.00, 1.000, "no difference in energy beyond noise"),
        (
            0.80,
            1.250,
            "no energy is saved beyond noise: a higher power takes back what the shorter time saves",
        ),
        (1.25, 0.800, "no energy is saved beyond noise: a longer time takes back what the lower power saves"),
    ],
)
def test_the_sentence_follows_from_the_ratios(time: float, power: float, said: str) -> None:
    assert sentence(exact(time, power)) == said


def test_small_parts_that_add_up_are_named_as_such() -> None:
    parts = {
        "time": Ratio(0.99, 0.97, 1.01),
        "power": Ratio(0.99, 0.97, 1.01),
        "energy": Ratio(0.98, 0.97, 0.99),
    }
    said = sentence(Decomposition(**parts, windows=5))
    assert said == "2.0 % is saved, but neither time nor power alone differs beyond noise"


def test_a_difference_within_the_noise_floor_is_none() -> None:
    found = exact(0.97, 1.0, width=0.005)
    assert sentence(found) == "the saving of 3.0 % is all time"
    assert sentence(found, Floors(0.05, 0.05, 0.05)) == "no difference in energy beyond noise"


def test_the_published_claim_is_a_saving_that_power_takes_back_from() -> None:
    """Facts of the published table at 1000 boxes: 198.579 ms at 8707.4 mW against 244.0 ms at 8018.7 mW."""
    one, many = (198.579, 1728.896), (244.000, 1956.016)
    found = decompose(*([value] * 5 for value in one), *([value] * 5 for value in many))
    assert sentence(found) == "time saves 19 %, a higher power takes back 7.0 %, which leaves 12 %"
    assert found.share_of_time == pytest.approx(math.log(one[0] / many[0]) / math.log(one[1] / many[1]))
    assert found.share_of_time > 1


def test_a_voltage_read_as_power_makes_all_savings_time() -> None:
    """The first published table at 1000 boxes, within the 2 % that no such sensor resolves."""
    one, many = (198.643, 198.643 * 4913.3), (244.824, 244.824 * 4920.6)
    found = decompose(*([value] * 5 for value in one), *([value] * 5 for value in many))
    assert found.share_of_time == pytest.approx(1, abs=0.01)
    assert sentence(found, Floors(0.005, 0.005, 0.005)) == "the saving of 19 % is all time"


def test_no_share_where_there_is_no_difference() -> None:
    assert math.isnan(exact(1.0, 1.0).share_of_time)


@pytest.mark.parametrize(
    "arrays",
    [([1, 2], [1, 2], [1], [1]), ([], [], [], []), ([0], [1], [1], [1]), ([1], [math.nan], [1], [1])],
    ids=["unpaired", "none", "zero", "nan"],
)
def test_what_can_have_no_ratio_is_refused(arrays: tuple[list[float], ...]) -> None:
    with pytest.raises(InputError):
        decompose(*arrays)


def test_no_quantile_without_freedom() -> None:
    with pytest.raises(InputError, match="degrees of freedom"):
        t_quantile(0.95, 0)
