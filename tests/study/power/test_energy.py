"""The energy of a window: exact on a known trace, by both ways, and none where it can't be known."""

import math
import random
from dataclasses import replace

import pytest
from synthetic_power import Machine

from octopus_study.power.energy import idle_power, window_energy
from octopus_study.power.quantities import Channel, MilliJoule, MilliWatt, Watt
from octopus_study.power.selftest import PassedTest
from octopus_study.power.source import Failure, Sample, SensorError, Trace
from octopus_study.power.windows import Window

BOARD = Channel("board", 0)
SECOND = 1_000_000_000
WINDOW = Window(10 * SECOND, 15 * SECOND, 100, 5 * SECOND)


def steady(
    watts: float = 200.0,
    *,
    start_s: float = 9.0,
    end_s: float = 16.0,
    step_ms: int = 20,
    counter: float | None = 1.0,
    averaged: float | None = None,
) -> Trace:
    """A power that is steady within 1 mW, and a counter that advances each 100 ms by `counter` times what it should."""
    samples = []
    for at_ms in range(round(start_s * 1e3), round(end_s * 1e3), step_ms):
        counted = None
        if counter is not None:
            counted = MilliJoule(round(watts * counter * (at_ms // 100 * 100)), BOARD)
        wobble = (at_ms // step_ms % 2 * 2 - 1) * (watts > 0)
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


ENDS = 1.96 * 0.020 / 5 * (2 / 12) ** 0.5


def noisy(trace: Trace) -> Trace:
    """The power alternates by 10 % about its mean from reading to reading, and no counter counts it."""
    powers = [Watt.from_power(MilliWatt(milliwatts, BOARD)) for milliwatts in (180_000, 220_000)]
    samples = [replace(s, power=powers[i % 2], counter=None) for i, s in enumerate(trace.samples)]
    return Trace("gpu_board", tuple(samples))


def test_the_uncertainty_of_a_steady_power_is_that_of_the_ends(proof):
    assert window_energy(WINDOW, steady(), proof).uncertainty == pytest.approx(ENDS, rel=1e-6)
    slower = window_energy(WINDOW, steady(step_ms=50), proof)
    assert slower.uncertainty == pytest.approx(2.5 * ENDS, rel=1e-6)


def test_an_integral_adds_the_scatter_of_its_readings(proof):
    found = window_energy(WINDOW, noisy(steady()), proof)
    assert found.uncertainty == pytest.approx(math.hypot(1.96 * 0.1 / 250**0.5, ENDS), rel=0.01)


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


@pytest.mark.parametrize("which", ["power", "averaged"])
@pytest.mark.parametrize("counter", [None, 1.0])
@pytest.mark.parametrize("every", [1, 11, 250])
def test_a_reading_of_nothing_is_no_power_that_may_be_averaged(proof, which, counter, every):
    nothing, trace = Watt.from_power(MilliWatt(0, BOARD)), steady(counter=counter, averaged=200.0)
    samples = [replace(s, **{which: nothing}) if i % every == 60 % every else s for i, s in enumerate(trace.samples)]
    with pytest.raises(SensorError, match="readings in the window are 0 or less") as caught:
        window_energy(WINDOW, replace(trace, samples=tuple(samples)), proof)
    assert caught.value.check == "plausible-range"


def frozen(trace: Trace, after_s: float) -> Trace:
    """From a moment on, every reading repeats the last one."""
    last = [s for s in trace.samples if s.at_ns <= after_s * SECOND][-1]
    samples = [s if s.at_ns <= last.at_ns else replace(last, at_ns=s.at_ns) for s in trace.samples]
    return Trace(trace.scope, tuple(samples))


@pytest.mark.parametrize("frames", [0, 100], ids=["idle", "under load"])
@pytest.mark.parametrize("averaged", [None, 200.0])
@pytest.mark.parametrize("after_s", [9.5, 10.15])
def test_a_power_that_stands_still_is_no_power(proof, frames, averaged, after_s):
    trace = frozen(steady(counter=None, averaged=averaged), after_s)
    with pytest.raises(SensorError, match=r"the power changed \d times in 251 readings of 5\.0 s") as caught:
        window_energy(replace(WINDOW, frames=frames), trace, proof)
    assert caught.value.check == "distinct-values"


def test_a_counter_that_hardly_moves_is_none(proof):
    samples = tuple(replace(s, counter=MilliJoule(s.at_ns // SECOND * 200_000, BOARD)) for s in steady().samples)
    with pytest.raises(SensorError, match=r"the counter changed [45] times in 251 readings") as caught:
        window_energy(WINDOW, Trace("gpu_board", samples), proof)
    assert caught.value.check == "distinct-values"


def reset(trace: Trace) -> Trace:
    counts = [s.counter.value - (1_500_000 if s.at_ns > 12 * SECOND else 0) for s in trace.samples]
    late = [replace(s, counter=MilliJoule(c, BOARD)) for s, c in zip(trace.samples, counts, strict=True)]
    return Trace(trace.scope, tuple(late))


def with_hole(trace: Trace) -> Trace:
    return Trace(trace.scope, tuple(s for s in trace.samples if not 11 * SECOND < s.at_ns < 13 * SECOND))


def with_failures(trace: Trace) -> Trace:
    failed = tuple(Failure(s.at_ns, "no answer") for s in trace.samples[::5])
    return Trace(trace.scope, trace.samples, failed)


@pytest.mark.parametrize(
    ("trace", "check", "text"),
    [
        (steady(counter=1.06), "counter-agrees", "disagree"),
        (steady(counter=0.0), "counter-agrees", "stands still"),
        (reset(steady()), "counter-monotonic", "went back"),
        (with_hole(steady()), "readable", "silent for 2.0 s"),
        (with_failures(steady()), "readable", "no answer"),
        (steady(end_s=14.99), "readable", "beyond both ends"),
        (steady(start_s=10.2), "readable", "beyond both ends"),
        (Trace("gpu_board", (), (Failure(12 * SECOND, "lost"),)), "readable", "lost"),
        (Trace("gpu_board", ()), "readable", "silent"),
    ],
)
def test_a_window_that_cannot_be_known_says_why(proof, trace, check, text):
    with pytest.raises(SensorError, match=text) as caught:
        window_energy(WINDOW, trace, proof)
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


def on_a_beat() -> list[int]:
    return list(range(9 * SECOND, 16 * SECOND, SECOND // 50))


def at_random() -> list[int]:
    rng = random.Random(7)
    return [at + rng.randrange(SECOND // 50) for at in on_a_beat()]


def test_readings_in_step_with_the_frames_know_no_mean(proof):
    with pytest.raises(SensorError, match=r"in step with the frames: 20% of each frame's time"):
        window_energy(RESTING, in_bursts(on_a_beat()), proof)


def test_readings_at_random_times_know_it_within_the_uncertainty(proof):
    found = window_energy(RESTING, in_bursts(at_random()), proof)
    assert abs(found.power.watts / 130 - 1) < found.uncertainty < 0.25


def test_the_drivers_mean_and_work_without_a_pause_have_no_step(proof):
    averaged = window_energy(RESTING, in_bursts(on_a_beat(), averaged=True), proof)
    assert averaged.power.watts == pytest.approx(130)
    assert window_energy(WINDOW, steady(counter=None), proof).power.watts == pytest.approx(200)


def test_a_counter_needs_no_readings_between_its_updates(proof):
    found = window_energy(RESTING, steady(), proof)
    assert found.by_integral is None
    assert found.energy.joules == pytest.approx(1000)
