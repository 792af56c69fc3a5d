"""Series of steps with a fake clock: every step once, together or method by method, and the pace of releases."""

from itertools import pairwise

import pytest
from fake_clock import FakeClock

from octopus_study.measure import Budget, Case, Method, PacedClock, run_series, validate_rows
from octopus_study.measure._samples import DISCARDED
from octopus_study.measure.series import TRIES

CASE = Case("drone", "synthetic-visdrone", "clip-1s", 851)
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
    rows = run_series(
        CASE, "frame_time", "ms", methods, steps, film.turn, clock, budget, answers, seed, wall=clock.wall, **options
    )  # fmt: skip
    validate_rows(rows)
    return rows


def of(rows, name):
    return [row for row in rows if row.method == name and row.quantity == "frame_time"]


def discarded(rows):
    (row,) = [row for row in rows if row.quantity == DISCARDED]
    return row.value


def test_every_method_does_every_step_and_the_block_is_its_number():
    film = Film()
    rows = series([film.method("a"), film.method("b")], film)
    for name in "ab":
        assert [(row.block, row.value) for row in of(rows, name)] == [(k, 1.0 + k) for k in range(10)]
    assert discarded(rows) == 0


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
    assert [row.block for row in of(rows, "a")] == list(range(10)) == [row.block for row in of(rows, "b")]
    assert discarded(rows) == 2
    assert [step for _, step in film.calls[-4:]] == [2, 2, 5, 5]


def test_what_stays_throttled_is_missing_and_too_few_steps_give_no_number():
    film = Film()
    rows = series([film.method("a")], film, FakeClock(lambda block: block % 10 == 4))
    assert [row.block for row in of(rows, "a")] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    rows = series([film.method("a")], film, FakeClock(lambda block: block >= 2))
    (row,) = of(rows, "a")
    assert row.value is None and row.answer.startswith("unavailable: 2 blocks are left of the 3 needed")
    assert discarded(rows) == TRIES * 8


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
