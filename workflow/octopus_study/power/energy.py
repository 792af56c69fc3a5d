"""The energy of a window, by the counter and by integration, with its uncertainty; and net of idle.

Two ways that share nothing but the board: the energy counter, interpolated between the updates around the window's
ends, and the trapezoid rule over the readings of power. Where there are both they must agree within 5 %, and the
counter is reported, since it misses nothing between two readings.

Random uncertainty (95 %) of a window's energy E = P T, from two independent causes:

* An update is seen at the first reading behind it, so each end of the window is known within one interval d of the
  readings, uniformly: a standard deviation of P d / sqrt(12), twice.
* An integral adds the scatter s of its n independent readings, which is what a trapezoid can miss between two of them:
  s T / sqrt(n).

What it leaves out: a counter is taken to rise evenly from one update to the next, u later. Frames with pauses between
them, whose power scatters by s, are off by up to s u / sqrt(12) at each end. The intervals over several windows, which
tables and figures show, contain that. Rounding (1 mJ of a counter, 1 mW of a power) is nothing beside these. The
systematic accuracy that the maker states is a common factor of all windows of one sensor; it is in the provenance, and
cancels in ratios.
"""

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from octopus_study.power.judges import AGREEMENT, LEAST_VALUES
from octopus_study.power.quantities import Joule, MilliJoule, UnitError, Watt
from octopus_study.power.selftest import PassedTest
from octopus_study.power.source import Sample, SensorError, Trace, require_samples
from octopus_study.power.windows import Window

MOST_DRIFT = 0.05
# Above this share of its time a window's work is taken to be without a pause.
MOST_BUSY = 0.98
# 150 readings at random times leave a gap of this size in a frame's time once in two million windows.
MOST_UNSEEN = 0.12
_SILENT_SECONDS = 1.0
_TWO_SIDED_95 = 1.96


@dataclass(frozen=True)
class WindowEnergy:
    """What one window took: by the counter and by integration, None where the source has no such readings, and the
    random uncertainty (95 %) as a fraction of `energy`."""

    window: Window
    by_counter: Joule | None
    by_integral: Joule | None
    uncertainty: float

    @property
    def energy(self) -> Joule:
        """By the counter where there is one, else by integration."""
        chosen = self.by_integral if self.by_counter is None else self.by_counter
        assert chosen is not None
        return chosen

    @property
    def power(self) -> Watt:
        """Mean power."""
        return self.energy.over_time(self.window.length_ns)

    def per_frame(self) -> Joule:
        """Energy per frame, gross: with all that the board draws while it does nothing."""
        return self.energy.scaled(1 / self.window.frames)

    def per_frame_net(self, idle: Watt) -> Joule:
        """Energy per frame beyond what the idle board would have drawn in the same time."""
        return (self.energy - idle.times(self.window.length_ns)).scaled(1 / self.window.frames)


def window_energy(window: Window, trace: Trace, proof: PassedTest) -> WindowEnergy:
    """Return the energy of a window from a trace that reaches beyond both ends and the proof that its sensor followed a
    load. `SensorError`: the proof is of another sensor; the trace doesn't cover the window; too many readings failed;
    one is 0 or less; the sensor stands still; the counter went back; or counter and integral disagree."""
    if proof.scope != trace.scope:
        raise SensorError(f"the power-on test was of {proof.scope}, the trace is of {trace.scope}", "power-on-test")
    inside = require_samples(_covered(window, trace))
    if inside.zeros:
        raise SensorError(f"{inside.zeros} readings in the window are 0 or less", "plausible-range")
    try:
        counter = _by_counter(window, trace)
        _require_changes(window, inside.samples, counter is not None)
        in_step = _in_step(window, inside.samples)
        if in_step and counter is None:
            raise SensorError(in_step)
        integral = None if in_step else _by_integral(window, inside.samples)
    except UnitError as error:
        raise SensorError(str(error), error.check) from None
    if counter is not None and integral is not None and not abs(counter.over(integral) - 1) <= AGREEMENT:
        raise SensorError(f"counter {counter} and integral {integral} disagree", "counter-agrees")
    for energy in (counter, integral):
        if energy is not None and not energy.joules > 0:
            raise SensorError(f"no board draws {energy} in {window.seconds:.1f} s", "plausible-range")
    return WindowEnergy(window, counter, integral, _uncertainty(window, inside.samples, counter is not None))


def idle_power(before: WindowEnergy, after: WindowEnergy) -> Watt:
    """Return the mean of the idle power before and after; `SensorError` where it drifted by more than 5 %:
    what idle was in between is then unknown."""
    drift = abs(after.power.over(before.power) - 1)
    if not drift <= MOST_DRIFT:
        raise SensorError(f"idle drifted by {drift:.1%}, from {before.power} to {after.power}", "idle-drift")
    return Watt.mean((before.power, after.power))


def _covered(window: Window, trace: Trace) -> Trace:
    """Return the window's part of the trace, if it has no holes."""
    inside = trace.between(window.start_ns, window.end_ns)
    if inside.fails_often:
        failed, read = len(inside.failures), len(inside.samples)
        raise SensorError(f"{failed} of {failed + read} readings failed ({inside.failures[-1].reason})")
    times = [window.start_ns, *(sample.at_ns for sample in inside.samples), window.end_ns]
    silence = max(later - earlier for earlier, later in pairwise(times)) * 1e-9
    if silence > _SILENT_SECONDS:
        raise SensorError(f"the sensor was silent for {silence:.1f} s of the window")
    return inside


def _require_changes(window: Window, samples: Sequence[Sample], counted: bool) -> None:
    """Refuse a sensor that stands still: the power-on test saw it follow the load, and that was before this window.
    What is asked is what the energy is made of: the counter, or else the powers that are integrated."""
    if counted:
        states = [each.counter.value for each in samples if each.counter is not None]
    else:
        states = [power.watts for power in _integrated(samples)]
    changes = sum(later != earlier for earlier, later in pairwise(states))
    if changes < LEAST_VALUES:
        what = "counter" if counted else "power"
        raise SensorError(
            f"the {what} changed {changes} times in {len(states)} readings of {window.seconds:.1f} s; of a sensor that "
            f"follows a board {LEAST_VALUES} changes are expected at least",
            "distinct-values",
        )


def _by_counter(window: Window, trace: Trace) -> Joule | None:
    updates = trace.counter_updates()
    if not updates:
        return None
    if len(updates) < 2:
        raise SensorError("the energy counter stands still", "counter-agrees")
    return _counted(updates, window.end_ns) - _counted(updates, window.start_ns)


def _counted(updates: Sequence[tuple[int, MilliJoule]], at_ns: int) -> Joule:
    """Return the energy from the first update to a moment, linear between the two updates around it."""
    later = bisect_left(updates, at_ns, lo=1, key=lambda update: update[0])
    if later == len(updates) or updates[0][0] > at_ns:
        raise SensorError("the energy counter was not read beyond both ends of the window")
    (start, before), (end, after) = updates[later - 1], updates[later]
    share = (at_ns - start) / (end - start)
    return Joule.from_counter(updates[0][1], before) + Joule.from_counter(before, after).scaled(share)


def _by_integral(window: Window, samples: Sequence[Sample]) -> Joule:
    """Apply the trapezoid rule; the first and last readings hold to the window's ends. Where the driver averages beside
    its readings of the moment, the average is integrated: the work before the window is as long as its second, and a
    reading of the moment misses the mean of a load that repeats itself."""
    times, powers = [each.at_ns for each in samples], _integrated(samples)
    first, last = bisect_right(times, window.start_ns), bisect_left(times, window.end_ns)
    times = [window.start_ns, *times[first:last], window.end_ns]
    powers = [powers[0], *powers[first:last], powers[-1]]
    return Joule.integral(times, powers)


def _integrated(samples: Sequence[Sample]) -> list[Watt]:
    return [each.averaged or each.power for each in samples]


def _in_step(window: Window, samples: Sequence[Sample]) -> str:
    """Say why readings of the moment don't know the mean of frames at a fixed rate; empty where they do. Readings each
    20 ms meet frames each 33.3 ms in five phases alone, and their mean is that of these phases. A mean over a second
    that the driver makes, or work without a pause, has no such phases."""
    rests = window.frames > 0 and window.busy_ns < MOST_BUSY * window.length_ns
    momentary = [each.at_ns for each in samples if each.averaged is None]
    if not rests or not momentary:
        return ""
    period = window.length_ns / window.frames
    phases = sorted((at - window.start_ns) % period for at in momentary)
    gap = max(later - earlier for earlier, later in pairwise([*phases, phases[0] + period]))
    if gap <= MOST_UNSEEN * period:
        return ""
    return f"the readings are in step with the frames: {gap / period:.0%} of each frame's time was never seen"


def _uncertainty(window: Window, samples: Sequence[Sample], counted: bool) -> float:
    gaps = [later.at_ns - earlier.at_ns for earlier, later in pairwise(samples)]
    jitter = statistics.median(gaps or [window.length_ns]) / window.length_ns
    variance = 2 * jitter**2 / 12
    levels = [sample.power.watts for sample in samples]
    if not counted and len(levels) > 1:
        # Readings that tell something new: a sensor that is read too often repeats itself.
        independent = 1 + sum(later != earlier for earlier, later in pairwise(levels))
        variance += (statistics.stdev(levels) / statistics.fmean(levels)) ** 2 / independent
    return _TWO_SIDED_95 * math.sqrt(variance)
