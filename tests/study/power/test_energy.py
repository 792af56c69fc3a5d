"""Windows, long enough and of whole frames; their energy, exact on a known trace by both ways, or a reason."""

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from synthetic_power import Machine

from octopus_study.power.energy import idle_power, window_energy
from octopus_study.power.quantities import Channel, MilliJoule, MilliWatt, Watt
from octopus_study.power.selftest import PassedTest
from octopus_study.power.source import Failure, Sample, SensorError, Trace
from octopus_study.power.windows import Stretch, Window, back_to_back, idle, paced, stretch

BOARD = Channel("board", 0)
SECOND = 1_000_000_000
WINDOW = Window(10 * SECOND, 15 * SECOND, 100, 5 * SECOND)


def steady(watts=200.0, *, start_s=9.0, end_s=16.0, step_ms=20, counter=1.0, averaged=None) -> Trace:
    """A power that is steady within 1 mW, and a counter that advances each 100 ms by `counter` times what it should."""
    samples = []
    for at_ms in range(round(start_s * 1e3), round(end_s * 1e3), step_ms):
        counted = None if counter is None else MilliJoule(round(watts * counter * (at_ms // 100 * 100)), BOARD)
        wobble = at_ms // step_ms % 2 * 2 - 1
        power = Watt.from_power(MilliWatt(round(watts * 1e3) + wobble, BOARD))
        mean = None if averaged is None else Watt.from_power(MilliWatt(round(averaged * 1e3) + wobble, BOARD))
        samples.append(Sample(at_ms * 1_000_000, 1_000_000, power, counted, mean))
    return Trace("gpu_board", tuple(samples))


@pytest.fixture(scope="module")
def proof() -> PassedTest:
    """The proof of a healthy sensor, made the only way there is: by a power-on test."""
    return Machine().test().proof()


@pytest.mark.parametrize("offset_ms", [0, 1, 37, 50, 99])
def test_both_ways_give_power_times_time_wherever_the_window_lies(proof, offset_ms):
    shift = offset_ms * 1_000_000
    window = Window(WINDOW.start_ns + shift, WINDOW.end_ns + shift, 100, 5 * SECOND)
    found = window_energy(window, steady(), proof)
    assert found.by_counter.joules == pytest.approx(1000, rel=1e-9)
    assert found.by_integral.joules == pytest.approx(1000, rel=1e-6)
    assert found.power.watts == pytest.approx(200)
    assert found.per_frame().joules == pytest.approx(10)


def test_net_energy_leaves_out_what_idle_would_have_drawn(proof):
    found = window_energy(WINDOW, steady(), proof)
    quiet = window_energy(WINDOW, steady(150.0), proof)
    assert found.per_frame_net(idle_power(quiet, quiet)).joules == pytest.approx(2.5)


def test_the_drivers_own_mean_is_integrated_where_there_is_one(proof):
    found = window_energy(WINDOW, steady(averaged=204.0), proof)
    assert found.by_integral.joules == pytest.approx(1020)
    assert found.energy.joules == pytest.approx(1000)


def test_the_uncertainty_is_that_of_the_ends_and_of_an_integral_the_scatter_of_its_readings_too(proof):
    ends, samples = 1.96 * 0.020 / 5 * (2 / 12) ** 0.5, steady().samples
    assert window_energy(WINDOW, steady(), proof).uncertainty == pytest.approx(ends, rel=1e-6)
    assert window_energy(WINDOW, steady(step_ms=50), proof).uncertainty == pytest.approx(2.5 * ends, rel=1e-6)
    powers = [Watt.from_power(MilliWatt(milliwatts, BOARD)) for milliwatts in (180_000, 220_000)]
    noisy = tuple(replace(s, power=powers[i % 2], counter=None) for i, s in enumerate(samples))
    found = window_energy(WINDOW, Trace("gpu_board", noisy), proof)
    assert found.uncertainty == pytest.approx(math.hypot(1.96 * 0.1 / 250**0.5, ends), rel=0.01)


@pytest.mark.parametrize("busy_ms", [3, 20, 31])
@pytest.mark.parametrize("phase_ms", range(0, 100, 7))
def test_a_load_in_bursts_is_counted_within_a_percent_wherever_the_updates_lie(proof, busy_ms, phase_ms):
    """30 frames per second, 400 W for a part of each, 120 W between them; updates each 100 ms."""

    def spent(at_ms: int) -> float:
        whole, rest = divmod(at_ms * 3, 100)
        return whole * (busy_ms * 400 + (100 / 3 - busy_ms) * 120) + sum(
            part * watts for part, watts in ((min(rest / 3, busy_ms), 400), (max(rest / 3 - busy_ms, 0), 120))
        )

    samples = []
    for at_ms in range(9_000, 16_000, 7):
        power = 400_000 if at_ms * 3 % 100 / 3 < busy_ms else 120_000
        counted = MilliJoule(round(spent((at_ms - phase_ms) // 100 * 100 + phase_ms)), BOARD)
        samples.append(Sample(at_ms * 1_000_000, 1_000_000, Watt.from_power(MilliWatt(power, BOARD)), counted))
    found = window_energy(WINDOW, Trace("gpu_board", tuple(samples)), proof)
    truth = (spent(15_000) - spent(10_000)) * 1e-3
    assert abs(found.by_counter.joules / truth - 1) < 0.01


def changed(change: Callable[[int, Sample], Sample | None], **steadily: float | None) -> Trace:
    """A steady trace whose readings are changed; where nothing comes back, one is left out."""
    trace = steady(**steadily)
    return Trace(trace.scope, tuple(filter(None, (change(place, s) for place, s in enumerate(trace.samples)))))


def frozen(after_s: float, averaged: float | None = None) -> Trace:
    """From a moment on, every reading repeats the last one."""
    given = {"counter": None, "averaged": averaged}
    last = [s for s in steady(**given).samples if s.at_ns <= after_s * SECOND][-1]
    return changed(lambda _, s: s if s.at_ns <= last.at_ns else replace(last, at_ns=s.at_ns), **given)


def with_nothing(which: str, every: int, counter: float | None = 1.0) -> Trace:
    """Some readings of nothing, which is no power that may be averaged."""
    zero = {which: Watt.from_power(MilliWatt(0, BOARD))}
    return changed(lambda i, s: replace(s, **zero) if i % every == 60 % every else s, counter=counter, averaged=200.0)


def counting(count: Callable[[Sample], int]) -> Trace:
    return changed(lambda _, s: replace(s, counter=MilliJoule(count(s), BOARD)))


HOLED = changed(lambda _, s: None if 11 * SECOND < s.at_ns < 13 * SECOND else s)
FAILED = replace(steady(), failures=tuple(Failure(s.at_ns, "no answer") for s in steady().samples[::5]))
NOTHING, STILL = "readings in the window are 0 or less", r"the power changed \d times in 251 readings of 5\.0 s"


@pytest.mark.parametrize(("trace", "check", "text"), [
    (steady(counter=1.06), "counter-agrees", "disagree"), (steady(counter=0.0), "counter-agrees", "stands still"),
    (counting(lambda s: s.counter.value - 1_500_000 * (s.at_ns > 12 * SECOND)), "counter-monotonic", "went back"),
    (counting(lambda s: s.at_ns // SECOND * 200_000), "distinct-values", "counter changed [45] times in 251"),
    (HOLED, "readable", "silent for 2.0 s"), (FAILED, "readable", "no answer"),
    (steady(end_s=14.99), "readable", "beyond both ends"), (steady(start_s=10.2), "readable", "beyond both ends"),
    (Trace("gpu_board", (), (Failure(12 * SECOND, "lost"),)), "readable", "lost"),
    (Trace("gpu_board", ()), "readable", "silent"),
    (with_nothing("power", 1), "plausible-range", NOTHING),
    (with_nothing("power", 11, None), "plausible-range", NOTHING),
    (with_nothing("averaged", 11), "plausible-range", NOTHING),
    (with_nothing("averaged", 250, None), "plausible-range", NOTHING),
    (frozen(9.5), "distinct-values", STILL), (frozen(10.15), "distinct-values", STILL),
    (frozen(10.15, 200.0), "distinct-values", STILL),
])  # fmt: skip
@pytest.mark.parametrize("frames", [0, 100], ids=["idle", "under load"])
def test_a_window_that_cannot_be_known_says_why(proof, trace, check, text, frames):
    with pytest.raises(SensorError, match=text) as caught:
        window_energy(replace(WINDOW, frames=frames), trace, proof)
    assert caught.value.check == check


FRAME_NS = 5 * SECOND // 150
RESTING = Window(10 * SECOND, 15 * SECOND, 150, 5 * SECOND // 10)


def in_bursts(times_ns: list[int], averaged: bool = False) -> Trace:
    """30 frames per second: 400 W for a tenth of each, then 100 W."""
    samples = []
    for number, at in enumerate(times_ns):
        mean = Watt.from_power(MilliWatt(130_000 + number % 2 * 2 - 1, BOARD)) if averaged else None
        watts = 400 if (at - RESTING.start_ns) % FRAME_NS < FRAME_NS // 10 else 100
        samples.append(Sample(at, 1, Watt.from_power(MilliWatt(watts * 1000, BOARD)), None, mean))
    return Trace("gpu_board", tuple(samples))


def test_readings_in_step_with_the_frames_know_no_mean_and_those_at_random_times_do(proof):
    beat, rng = list(range(9 * SECOND, 16 * SECOND, SECOND // 50)), random.Random(7)
    with pytest.raises(SensorError, match=r"in step with the frames: 20% of each frame's time"):
        window_energy(RESTING, in_bursts(beat), proof)
    found = window_energy(RESTING, in_bursts([at + rng.randrange(SECOND // 50) for at in beat]), proof)
    assert abs(found.power.watts / 130 - 1) < found.uncertainty < 0.25
    # The driver's own mean, and work without a pause, have no step.
    assert window_energy(RESTING, in_bursts(beat, averaged=True), proof).power.watts == pytest.approx(130)
    assert window_energy(WINDOW, steady(counter=None), proof).power.watts == pytest.approx(200)


def test_a_counter_needs_no_readings_between_its_updates(proof):
    found = window_energy(RESTING, steady(), proof)
    assert found.by_integral is None and found.energy.joules == pytest.approx(1000)


LASTING = Stretch(seconds=5.0, settle_seconds=1.0, tail_seconds=0.25)


@pytest.mark.parametrize(("update", "averaged", "expected"), [
    (None, 0.0, Stretch(5.0, 1.0, 0.25)), (0.1, 0.0, Stretch(5.0, 1.0, 0.25)),
    (0.2, 0.0, Stretch(10.0, 1.0, 0.5)), (0.1, 1.0, Stretch(5.0, 2.0, 1.25)),
])  # fmt: skip
def test_a_window_has_fifty_updates_and_five_seconds(update, averaged, expected):
    assert stretch(5.0, 1.0, update, averaged) == expected
    assert stretch(1.0, 1.0, update, averaged) == expected


@pytest.mark.parametrize("milliseconds", [0.05, 3.0, 270.0, 7000.0])
def test_back_to_back_frames_fill_the_window(milliseconds):
    clock, begun = Machine(), []
    frame = clock.frame(milliseconds, 200.0)
    window = back_to_back(lambda: (begun.append(clock.now_ns), frame()), LASTING, clock)
    assert 5.0 <= window.seconds < 5.0 + milliseconds / 1e3 + 1e-9
    assert window.frame_ms == pytest.approx(milliseconds)
    assert window.frames == sum(window.start_ns <= start < window.end_ns for start in begun)
    assert begun[0] <= window.start_ns - 1e9
    assert clock.now_ns >= window.end_ns + 0.25e9


@pytest.mark.parametrize(("milliseconds", "late", "seconds"), [(10.0, 0, 5.0), (40.0, 150, 6.0)])
def test_a_paced_device_rests_until_the_next_frame_is_due_and_is_late_with_slow_ones(milliseconds, late, seconds):
    clock = Machine()
    window = paced(clock.frame(milliseconds, 200.0), 30.0, LASTING, clock)
    assert (window.frames, window.late) == (150, late)
    assert window.seconds == pytest.approx(seconds, abs=1e-6)
    assert window.frame_ms == pytest.approx(milliseconds)


@pytest.mark.parametrize("seconds", [5.0, 5.001, 5.016, 5.08])
def test_whole_periods_are_never_shorter_than_the_window(seconds):
    clock = Machine()
    window = paced(clock.frame(1.0, 200.0), 30.0, Stretch(seconds, 1.0, 0.25), clock)
    assert seconds - 1e-8 <= window.seconds < seconds + 1 / 30


def test_idle_makes_no_frames():
    clock = Machine()
    window = idle(LASTING, clock)
    assert (window.frames, window.busy_ns, clock.seconds) == (0, 0, pytest.approx(6.25))
    assert window.seconds == pytest.approx(5.0)
