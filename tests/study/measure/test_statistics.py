"""Intervals, verdicts and fits: known answers, coverage by simulation, speed."""

import math

import numpy as np
import pandas as pd
import pytest

from octopus.errors import InputError
from octopus_study.measure import compare, median_interval, noise_floor, ratio_interval, slope, statistics
from octopus_study.measure.dependence import PROCESS_BLOCKS, memory
from octopus_study.measure.statistics import FEW_PROCESSES, unpaired_ratio_interval

RNG = np.random.default_rng(7)
LAUNCHES = np.array([1.0, 2, 4, 8, 16, 32, 64, 128, 256])


def scattered(median, count=40, spread=0.01, seed=0):
    return median * np.exp(spread * np.random.default_rng(seed).standard_normal(count))


def coverage(draw, truth, trials=300):
    """The share of the intervals of so many draws that hold the truth."""
    return np.mean([found.low <= truth <= found.high for found in map(draw, range(trials))])


def test_one_sample_has_no_interval():
    found = median_interval([2.0])
    assert found.value == 2.0
    assert math.isnan(found.low) and math.isnan(found.high)
    assert found.relative_halfwidth == math.inf


@pytest.mark.parametrize("count", [6, 7, 20, 21, 50, 200, 999])
def test_the_ends_are_the_ranks_that_the_binomial_distribution_allows(count, monkeypatch):
    """At least 95 % by the exact distribution of how many samples lie below the median, whatever theirs is; one rank
    further in, less than that."""
    monkeypatch.setattr(statistics, "memory", lambda samples: 1.0)
    found = median_interval(np.random.default_rng(3).permutation(count) + 1.0)
    rank = int(found.low)
    assert (found.low, found.high) == (rank, count + 1 - rank)
    inside = sum(math.comb(count, below) for below in range(rank, count - rank + 1)) / 2**count
    nearer = sum(math.comb(count, below) for below in range(rank + 1, count - rank)) / 2**count
    assert inside >= 0.95 > nearer


@pytest.mark.parametrize("wrong", [[], [1.0, math.nan], [math.inf]])
def test_samples_that_are_not_finite_are_refused(wrong):
    with pytest.raises(InputError, match="finite"):
        median_interval(wrong)


def test_coverage_of_the_ratio_interval_under_a_shared_drift():
    """Pairing removes a drift that is thirty times the noise of one method."""
    rng, widths = np.random.default_rng(11), []

    def draw(trial):
        drift = np.exp(0.3 * rng.standard_normal(30))
        a, b = (drift * np.exp(0.01 * rng.standard_normal(30)) for _ in range(2))
        found = ratio_interval(2 * a, b)
        widths.append(found.relative_halfwidth)
        return found

    assert 0.91 <= coverage(draw, 2.0, 400) <= 0.99
    assert np.median(widths) < 0.02


def test_coverage_survives_the_stop_rule():
    """Stopping when the interval is narrow enough costs little of its coverage."""
    rng = np.random.default_rng(13)

    def draw(trial):
        ratios, count = np.exp(0.08 * rng.standard_normal(200)), 20
        while count < 200 and median_interval(ratios[:count]).relative_halfwidth > 0.02:
            count = min(200, math.ceil(count * 1.1))
        return median_interval(ratios[:count])

    assert coverage(draw, 1.0) >= 0.88


def test_coverage_of_the_unpaired_ratio():
    rng = np.random.default_rng(31)

    def draw(trial):
        return unpaired_ratio_interval(4 * rng.lognormal(sigma=0.1, size=40), rng.lognormal(sigma=0.1, size=60))

    assert 0.91 <= coverage(draw, 4) <= 0.99
    assert math.isnan(unpaired_ratio_interval([2.0], [1.0]).low)
    with pytest.raises(InputError, match="positive"):
        unpaired_ratio_interval([1.0], [0.0])


def test_unpaired_samples_are_refused():
    with pytest.raises(InputError, match="a has 3 of them, b has 2"):
        ratio_interval([1.0, 2.0, 3.0], [1.0, 2.0])
    with pytest.raises(InputError, match="positive"):
        ratio_interval([1.0, 0.0], [1.0, 2.0])


def test_the_noise_floor_is_the_far_end_of_a_against_itself():
    a, again = scattered(1.0, seed=1), scattered(1.0, seed=2)
    interval = ratio_interval(a, again)
    assert noise_floor(a, again) == pytest.approx(max(interval.high, 1 / interval.low) - 1)
    assert noise_floor(a, a) == 0 and math.isnan(noise_floor(a[:19], again[:19]))


@pytest.mark.parametrize(("ratio", "noise", "verdict"), [
    (0.5, 0.01, "faster"),
    (2.0, 0.01, "slower"),
    (1.001, 0.005, "equal"),
    (0.99, 0.005, "equal"),  # clearly less, but by less than what is called equal
    (0.95, 0.08, "ambiguous"),  # within the noise floor
    (1.05, 0.08, "ambiguous"),
    (1.0, 0.03, "ambiguous"),  # the set-up can't tell 2 % apart, so it can't say equal
    (0.5, math.nan, "ambiguous"),  # there is no noise floor
])  # fmt: skip
def test_verdicts(ratio, noise, verdict):
    found = compare(scattered(ratio, seed=1), scattered(1.0, seed=2), noise)
    assert found.verdict == verdict and found.low <= found.ratio <= found.high


def test_too_few_blocks_are_never_a_win():
    found = compare(scattered(0.1, 19), scattered(1.0, 19))
    assert found.verdict == "ambiguous" and "19 blocks are too few" in found.text


def test_a_line_is_found_exactly():
    x = np.repeat([1, 2, 4, 8, 16], 3)
    found = slope(x, 5.0 + 0.25 * x)
    assert found.value == pytest.approx(0.25)
    assert (found.low, found.high) == (pytest.approx(0.25), pytest.approx(0.25))
    assert found.intercept == pytest.approx(5.0)
    assert found.r2 == pytest.approx(1.0)


def test_one_place_that_was_disturbed_does_not_bend_the_line():
    x = np.repeat(LAUNCHES, 20)
    y = (20 + 6 * x) * np.exp(0.01 * np.random.default_rng(23).standard_normal(x.size))
    disturbed = np.where(x == 64, 1.7 * y, y)
    assert slope(x, disturbed).value == pytest.approx(slope(x, y).value, rel=0.02)
    assert slope(x, disturbed).value == pytest.approx(6, rel=0.02)
    # That the place doesn't lie on the line shows in the interval.
    clean, wide = slope(x, y), slope(x, disturbed)
    assert wide.high - wide.low > 1.5 * (clean.high - clean.low)


def test_coverage_where_the_places_lie_off_the_line():
    """Each place has an error of its own, which no number of samples reduces; nine places give about 89 %."""
    rng, x = np.random.default_rng(29), np.repeat(LAUNCHES, 20)

    def draw(trial):
        off = np.repeat(np.exp(0.05 * rng.standard_normal(LAUNCHES.size)), 20)
        y = (20 + 6 * x) * off * np.exp(0.005 * rng.standard_normal(x.size))
        return slope(x, y, seed=trial, resamples=500)

    assert coverage(draw, 6, 200) >= 0.85


@pytest.mark.parametrize("places", [(1.0, 2.0), (1.0, 2.0, 64.0)])
def test_a_few_places_in_several_processes_have_a_slope(places):
    """`make paper` failed once where a resample of a process happened to be of one place alone."""
    x = np.tile(np.repeat(places, 4), 8)
    blocks = np.repeat(np.arange(8) * PROCESS_BLOCKS, 4 * len(places)) + np.tile(np.arange(4), 8 * len(places))
    rates = 1 + 0.01 * np.arange(8)
    found = slope(x, np.repeat(rates, 4 * len(places)) * x, blocks=blocks)
    assert found.low < found.value < found.high and found.value == pytest.approx(1.035, rel=0.01)


def test_a_process_with_one_place_says_nothing_of_the_slope():
    x, blocks = [1.0, 2.0, 1.0, 2.0, 1.0], [0, 0, PROCESS_BLOCKS, PROCESS_BLOCKS, 2 * PROCESS_BLOCKS]
    both = slope(x, [1.0, 2.0, 2.0, 4.5, 9.0], blocks=blocks)
    assert both.value == slope(x[:4], [1.0, 2.0, 2.0, 4.5], blocks=blocks[:4]).value and both.low < both.high
    alone = slope(x[2:], [2.0, 4.5, 9.0], blocks=blocks[2:])
    assert math.isnan(alone.low) and math.isnan(alone.high) and alone.value < 0


def several(medians, count=7, spread=0.001, seed=0):
    """Samples of processes with the given medians, indexed by block as the rows number them."""
    rng = np.random.default_rng(seed)
    values = [median * np.exp(spread * rng.standard_normal(count)) for median in medians]
    index = [process * PROCESS_BLOCKS + block for process in range(len(medians)) for block in range(count)]
    return pd.Series(np.concatenate(values), index=pd.Index(index, name="block"))


def test_an_interval_over_processes_holds_another_run():
    """Processes differ by 10 %, blocks within one by 0.1 %: an interval over pooled blocks would be far too narrow."""
    medians = np.exp(0.1 * np.random.default_rng(17).standard_normal((300, 3)))
    runs = [several(each, seed=trial) for trial, each in enumerate(medians)]
    assert coverage(lambda trial: median_interval(runs[trial].to_numpy()), 1.0) < 0.85
    assert 0.92 <= coverage(lambda trial: median_interval(runs[trial]), 1.0) <= 0.98


def test_processes_are_told_by_the_numbers_of_the_blocks():
    a, b = several([2.0, 2.2, 2.4]), several([1.0, 1.0, 1.0], seed=1)
    ratio = ratio_interval(a, b)
    assert ratio.value == pytest.approx((2.0 * 2.2 * 2.4) ** (1 / 3), rel=0.01)
    assert ratio.low < 1.9 and ratio.high > 2.5 and ratio.count == 21
    assert median_interval(a.to_numpy(), blocks=a.index) == median_interval(a)
    assert median_interval(a).processes == 3 and "3 processes" in compare(a, b, 0.01).text
    assert compare(a, b, 0.01).verdict == "slower" and compare(a, b * 2.1, 0.01).verdict == "ambiguous"
    assert noise_floor(several([1.0, 1.05, 0.95]), b) > 0.1


def test_samples_that_number_something_else_than_blocks_are_refused():
    """The index of the rows would pass for blocks of one process, whatever processes measured them."""
    x = scattered(1.0)
    assert median_interval(pd.Series(x, index=pd.RangeIndex(40, name="block"))) == median_interval(x)
    for given in (pd.Series(x), pd.Series(x, index=pd.Index(range(40), name="frame"))):
        with pytest.raises(InputError, match="indexed by block"):
            median_interval(given)


def test_two_processes_give_an_interval_but_no_verdict():
    two, three = (several([2.0, 2.001, 2.002][:count], count=20) for count in (2, 3))
    for samples, verdict in ((two, "ambiguous"), (three, "slower")):
        found = compare(samples, samples / 2, 0.01)
        assert found.verdict == verdict and found.ratio == pytest.approx(2)
    assert FEW_PROCESSES in compare(two, two / 2, 0.01).text
    assert [median_interval(samples).processes for samples in (two, three)] == [2, 3]


def test_false_verdicts_over_processes_are_rarer_than_the_interval_alone_allows():
    """Processes of equal methods differ by 5 %: 95 % intervals exclude 1 in about 5 of a hundred cases, and the noise
    floor, which chance widens as well, leaves fewer verdicts than that. A difference of twice the reach is found."""
    rng, excluded, wrong, found = np.random.default_rng(37), 0, 0, 0
    for trial in range(300):
        a, again, b = (several(np.exp(0.05 * rng.standard_normal(3)), seed=3 * trial + i) for i in range(3))
        interval, floor = ratio_interval(a, b), noise_floor(a, again)
        excluded += not interval.low <= 1 <= interval.high
        wrong += compare(a, b, floor).verdict in ("faster", "slower")
        found += compare(3 * a, b, floor).verdict == "slower"
    assert 0.02 <= excluded / 300 <= 0.08
    assert wrong / 300 <= 0.02
    assert found / 300 >= 0.9


def drifting(count, lag, rng):
    """A first-order autoregression with median 1."""
    noise, logs = rng.standard_normal(count), np.empty(count)
    logs[0] = noise[0]
    for block in range(1, count):
        logs[block] = lag * logs[block - 1] + math.sqrt(1 - lag**2) * noise[block]
    return np.exp(0.1 * logs)


def test_neighbours_that_resemble_each_other_widen_the_interval(monkeypatch):
    """Neighbours correlated by 0.6: intervals that take blocks to be independent hold the median in three of four."""
    rng = np.random.default_rng(19)
    runs = [drifting(100, 0.6, rng) for _ in range(300)]
    assert coverage(lambda trial: median_interval(runs[trial]), 1.0) > 0.92
    monkeypatch.setattr(statistics, "memory", lambda samples: 1.0)
    assert coverage(lambda trial: median_interval(runs[trial]), 1.0) < 0.82


def test_a_drift_widens_the_interval_of_a_growth():
    """A machine that warms up: each half of its samples excludes the other's median, and the interval holds both."""
    drift = np.linspace(1.0, 1.4, 200) * RNG.lognormal(sigma=0.02, size=200)
    still = RNG.lognormal(sigma=0.02, size=200)
    found = unpaired_ratio_interval(drift, still)
    assert found.low < 1.15 and found.high > 1.25
    shuffled = unpaired_ratio_interval(RNG.permutation(drift), still)
    assert shuffled.high - shuffled.low < (found.high - found.low) / 2


@pytest.mark.parametrize("samples", [[1.0] * 40, [1.0] * 39 + [50.0], [1.0, 2.0] * 20, [1.0, 1.1, 1.2]])
def test_ties_a_spike_and_few_blocks_are_no_resemblance(samples):
    assert memory(np.array(samples)) == 1


def test_a_growth_and_a_slope_of_several_processes_have_intervals_over_processes():
    grown = unpaired_ratio_interval(several([2.0, 2.4, 2.2]), several([1.0, 1.0, 1.0], seed=1))
    assert grown.low < 1.9 and grown.high > 2.5
    assert grown.value == pytest.approx((2.0 * 2.4 * 2.2) ** (1 / 3), rel=0.01)
    x = np.tile(LAUNCHES, 21)
    blocks = np.repeat(several([1.0, 1.0, 1.0]).index, LAUNCHES.size)
    y = x * np.array([1.0, 1.1, 1.2])[blocks // PROCESS_BLOCKS] * (1 + 0.001 * RNG.standard_normal(x.size))
    pooled, over = slope(x, y), slope(x, y, blocks=blocks)
    assert over.high - over.low > 0.3 > pooled.high - pooled.low
    assert over.value == pytest.approx((1.0 * 1.1 * 1.2) ** (1 / 3), rel=0.01)
