"""The paired runner, series of steps and paced releases with a fake clock: order, stop rule, failures, throttling."""

import gc
import time
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from fake_clock import FakeClock, noisy, steady

from octopus.errors import InputError
from octopus_study.measure import Budget, Case, HostClock, Method, again, run_paired, run_series, validate_rows
from octopus_study.measure._samples import DISCARDED
from octopus_study.measure.series import TRIES, PacedClock

CASE = Case("stage_timing", "synthetic-visdrone", "visdrone", 100)
FOREVER = Budget(min_blocks=30, max_blocks=30, min_seconds=0)


def timed(methods, clock=None, budget=FOREVER, answers="n/a", seed=42, base=None):
    clock = clock or FakeClock()
    rows = run_paired(CASE, "end_to_end", "ms", methods, clock, budget, answers, seed, base, wall=clock.wall)
    validate_rows(rows)
    return rows


def of(rows, method):
    return [row for row in rows if row.method == method and row.quantity != DISCARDED]


def discarded(rows):
    (row,) = [row for row in rows if row.quantity == DISCARDED]
    return row


def test_one_row_per_method_and_block_with_the_clocks_layer():
    rows = timed([steady("a", 2.0), steady("b", 3.0)], FakeClock(layer="device"))
    assert [row.block for row in of(rows, "a")] == list(range(30)) == [row.block for row in of(rows, "b")]
    assert {row.value for row in of(rows, "a")} == {2.0}
    assert {row.layer for row in rows} == {"device"}
    assert len(rows) == 2 * 30 + 1


def test_every_method_runs_once_per_block_in_orders_that_differ():
    calls = []
    timed([steady(name, 1.0, calls) for name in "abc"])
    blocks = [tuple(calls[start : start + 3]) for start in range(6, len(calls), 3)]  # after two for the warm-up
    assert all(Counter(block) == Counter("abc") for block in blocks)
    assert len(set(blocks)) == 6  # all orders of three occur within 30 blocks


def test_noisy_methods_go_on_until_the_ratio_is_known():
    methods = [noisy("a", 100, 0.08, 1), noisy("b", 110, 0.08, 2)]
    rows = timed(methods, budget=Budget(max_blocks=2000, max_seconds=1e9), base="a")
    ratios = np.array([row.value for row in of(rows, "b")]) / [row.value for row in of(rows, "a")]
    assert 50 < ratios.size < 2000
    assert np.median(ratios) == pytest.approx(1.1, rel=0.04)


@pytest.mark.parametrize(
    ("budget", "blocks"), [(Budget(max_seconds=25, min_seconds=1e6), 25), (Budget(give_up_seconds=7), 7)]
)
def test_the_time_limit_ends_a_comparison_that_has_its_blocks_and_another_one_that_has_not(budget, blocks):
    rows = timed([steady("a", 1000.0)], budget=budget)
    assert [row.answer for row in of(rows, "a")] == ["n/a"] * blocks


@pytest.mark.parametrize("seed", range(6))  # b is first, second and third in its last block
def test_a_method_that_raises_gives_one_row_and_the_others_go_on(seed):
    calls = []

    def fails():
        calls.append("b")
        if len(calls) == 10:
            raise ValueError("boxes\nare empty")
        return 2.0

    rows = timed([steady("a", 1.0), Method("b", fails), steady("c", 3.0)], seed=seed)
    (row,) = of(rows, "b")
    assert (row.value, row.answer) == (None, "unavailable: ValueError: boxes are empty")
    # The 10th call of b was in block 7, after two for the warm-up; that block is dropped for all.
    expected = [block for block in range(30) if block != 7]
    assert [row.block for row in of(rows, "a")] == [row.block for row in of(rows, "c")] == expected
    assert discarded(rows).value == 0


@pytest.mark.parametrize("nonsense", [float("nan"), float("inf"), 0.0, -1.0])
def test_a_time_that_is_none_is_a_failure(nonsense):
    (row,) = of(timed([steady("a", nonsense), steady("b", 1.0)]), "a")
    assert row.answer.startswith("unavailable: MeasureError: the clock gave")


def test_throttled_blocks_are_discarded_whole_and_counted():
    rows = timed([steady("a", 1.0), steady("b", 2.0)], FakeClock(lambda block: block % 3 == 1), Budget(20, 45, 0))
    kept = [block for block in range(45) if block % 3 != 1][:20]
    assert [row.block for row in of(rows, "a")] == [row.block for row in of(rows, "b")] == kept
    assert discarded(rows).value == 10
    assert (discarded(rows).method, discarded(rows).unit) == ("end_to_end", "count")


def test_too_few_blocks_left_give_no_number():
    rows = timed([steady("a", 1.0), steady("b", 2.0)], FakeClock(lambda block: block >= 12), Budget(20, 50, 0))
    for name in "ab":
        (row,) = of(rows, name)
        expected = "12 blocks are left of the 20 needed: 38 were discarded, throttled (power cap)"
        assert (row.value, row.answer) == (None, f"unavailable: {expected}")
    assert discarded(rows).value == 38


def test_unreadable_throttling_is_not_zero_discarded_blocks():
    rows = run_paired(CASE, "end_to_end", "ms", [Method("a", lambda: None)], HostClock(), FOREVER, "n/a", 1)
    assert discarded(rows).value is None
    assert discarded(rows).answer == "unavailable: throttling can't be read on this machine"


def test_answers_go_into_the_rows_and_unavailable_methods_are_not_run():
    calls = []
    answers = {"a": "same", "b": "different: antialias", "c": "unavailable: not installed"}
    rows = timed([steady(name, 1.0, calls) for name in "abc"], answers=answers)
    assert {row.answer for row in of(rows, "a")} == {"same"}
    assert {row.answer for row in of(rows, "b")} == {"different: antialias"}
    assert [row.answer for row in of(rows, "c")] == ["unavailable: not installed"]
    assert "c" not in calls


@pytest.mark.parametrize(("change", "said"), [
    ({"answers": {"a": "same"}}, "none was given for ['b']"),
    ({"base": "octopus"}, "'octopus' is none of the methods"),
    ({"methods": [steady("a", 1.0), steady("a", 1.0)]}, "different names"),
    ({"methods": []}, "at least one"),
])  # fmt: skip
def test_what_would_give_meaningless_rows_is_refused(change, said):
    with pytest.raises(InputError, match=said.replace("[", r"\[").replace("]", r"\]")):
        timed(**{"methods": [steady("a", 1.0), steady("b", 1.0)]} | change)


@pytest.mark.parametrize("wrong", [{"min_blocks": 0}, {"min_blocks": 30, "max_blocks": 20}, {"max_seconds": -1}])
def test_impossible_budgets_are_refused(wrong):
    with pytest.raises(InputError):
        Budget(**wrong)


def test_the_garbage_collector_rests_within_a_block_and_is_restored():
    states = []
    method = Method("a", lambda: states.append(gc.isenabled()) or 1.0)
    timed([method, again(method)])
    assert gc.isenabled()
    assert not any(states[4:])  # the first four are the warm-up


@pytest.mark.parametrize(("milliseconds", "runs"), [((7, 5), 2), ((60, 5), 1)])
def test_a_warm_host_clock_times_the_second_run_or_a_first_one_that_is_long(monkeypatch, milliseconds, runs):
    events, now, taken = [], [0.0], iter(milliseconds)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: round(1e6 * now[0]))
    clock = HostClock(synchronize=lambda: events.append("wait"), warm=True)

    def run():
        events.append("run")
        now[0] += next(taken)

    assert clock.time(run) == milliseconds[runs - 1]
    assert events == ["wait", "run", "wait"] * runs
    assert clock.runs(milliseconds[0]) == runs
    assert HostClock().runs(1.0) == 1


BUDGET = Budget(min_blocks=3)


class Film:
    """Steps, and methods that note on which step they ran; a run takes 1 ms and as many more as the step's number."""

    def __init__(self):
        self.step, self.calls = None, []

    def turn(self, step):
        self.step = step

    def method(self, name, fails_at=None):
        def run():
            self.calls.append((name, self.step))
            if self.step == fails_at:
                raise ValueError("no such frame")
            return 1.0 + self.step

        return Method(name, run)


def series(methods, film, clock=None, steps=10, answers="n/a", seed=42, **options):
    clock = clock or FakeClock()
    budget = options.pop("budget", BUDGET)
    case = Case("drone", "synthetic-visdrone", "clip-1s", 851)
    rows = run_series(
        case, "frame_time", "ms", methods, steps, film.turn, clock, budget, answers, seed, wall=clock.wall, **options
    )  # fmt: skip
    validate_rows(rows)
    return rows


def test_a_step_is_done_by_all_in_orders_that_differ_and_follow_from_the_seed():
    orders = []
    for seed in (1, 1, 2):
        film = Film()
        series([film.method(name) for name in "abc"], film, steps=30, seed=seed)
        calls = film.calls[6:]  # after the warm-up
        assert [step for _, step in calls] == [step for step in range(30) for _ in range(3)]
        orders.append([tuple(name for name, _ in calls[k : k + 3]) for k in range(0, 90, 3)])
    assert orders[0] == orders[1] != orders[2]
    assert len(set(orders[0])) == 6


def test_by_itself_each_method_goes_through_the_whole_series():
    film = Film()
    rows = series([film.method(name) for name in "ab"], film, FakeClock(layer="paced"), together=False)
    assert film.calls[2:12] == [("a", k) for k in range(10)]
    assert film.calls[14:] == [("b", k) for k in range(10)]
    assert {row.layer for row in rows} == {"paced"} and len(rows) == 21


def test_a_throttled_step_is_counted_and_measured_again_at_the_end():
    film = Film()
    rows = series([film.method(name) for name in "ab"], film, FakeClock(lambda block: block in (2, 5)))
    for name in "ab":  # the block is the step's number
        assert [(row.block, row.value) for row in of(rows, name)] == [(k, 1.0 + k) for k in range(10)]
    assert discarded(rows).value == 2
    assert [step for _, step in film.calls[-4:]] == [2, 2, 5, 5]


def test_what_stays_throttled_is_missing_and_too_few_steps_give_no_number():
    film = Film()
    rows = series([film.method("a")], film, FakeClock(lambda block: block % 10 == 4))
    assert [row.block for row in of(rows, "a")] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    rows = series([film.method("a")], film, FakeClock(lambda block: block >= 2))
    (row,) = of(rows, "a")
    assert row.value is None and row.answer.startswith("unavailable: 2 blocks are left of the 3 needed")
    assert discarded(rows).value == TRIES * 8


def test_a_series_is_given_up():
    film = Film()
    rows = series([film.method("a")], film, steps=1000, budget=Budget(min_blocks=3, give_up_seconds=0.005))
    assert [row.block for row in of(rows, "a")] == [0, 1]  # after 2 ms of warm-up they take 1 and 2 ms


class Time:
    """Nanoseconds that pass when somebody sleeps, asks or works."""

    def __init__(self, oversleep=0.0):
        self.now, self.oversleep, self.slept = 0, oversleep, []

    def __call__(self):
        self.now += 1000  # asking takes 1 µs, so that spinning ends
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += round((seconds + self.oversleep) * 1e9)

    def work(self, ms):
        return lambda: setattr(self, "now", self.now + round(ms * 1e6))


def paced(time, period=10.0):
    return PacedClock(period, now=time, sleep=time.sleep)


def test_runs_are_released_at_the_period_and_timed_from_there():
    time = Time()
    clock = paced(time)
    assert clock.layer == "paced"
    begins, times = [], []
    for _ in range(5):
        times.append(clock.time(lambda: (begins.append(time.now), time.work(3.0)())))
    gaps = [(later - begin) / 1e6 for begin, later in pairwise(begins)]
    assert gaps == pytest.approx([10.0] * 4, abs=0.01)
    assert times == pytest.approx([3.0] * 5, abs=0.01)
    assert min(time.slept) > 0 and max(time.slept) < 0.008


def test_a_run_after_a_late_one_has_its_waiting_counted_up_to_a_period():
    time = Time()
    clock = paced(time)
    assert clock.time(time.work(14.0)) == pytest.approx(14.0, abs=0.01)
    assert clock.time(time.work(3.0)) == pytest.approx(4.0 + 3.0, abs=0.01)
    assert clock.time(time.work(3.0)) == pytest.approx(3.0, abs=0.01)
    clock.time(time.work(50.0))
    assert clock.time(time.work(3.0)) == pytest.approx(10.0 + 3.0, abs=0.01)


def test_oversleeping_and_slow_measurement_are_no_fault_of_the_method():
    time = Time(oversleep=0.004)
    clock = paced(time)
    clock.time(time.work(3.0))
    assert clock.time(time.work(3.0)) == pytest.approx(3.0, abs=0.01)
    time.now += 40_000_000
    assert clock.time(time.work(3.0)) == pytest.approx(3.0, abs=0.01)
