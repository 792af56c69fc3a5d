"""Windows: a stretch of steady work, whose time, frames and energy are all of the same stretch.

The work begins before the window and goes on behind it. A sensor follows a change within a second or so, and an energy
counter that advances ten times a second shows the last tenth only at its next advance: both belong to the same work.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from octopus_study.power.selftest import SYSTEM_CLOCK, TimeSource

LEAST_SECONDS = 5.0
LEAST_UPDATES = 50
# Of the frames that a rate asks for. A frame that ends late is caught up with as long as the next ones are quicker, and
# the energy is that of the rate all the same; so the frames that were made decide, and not how many of them were late.
LEAST_RATE = 0.99


class Stretch(NamedTuple):
    """How long a window lasts, and the work before and behind it."""

    seconds: float
    settle_seconds: float
    tail_seconds: float


@dataclass(frozen=True, slots=True)
class Window:
    """One window."""

    start_ns: int  # `time.monotonic_ns()`
    end_ns: int
    frames: int  # calls that began and ended within it
    busy_ns: int  # time within calls; all of it where they follow each other at once
    late: int = 0  # calls that ended after the next one was due

    @property
    def length_ns(self) -> int:
        """Length in nanoseconds."""
        return self.end_ns - self.start_ns

    @property
    def seconds(self) -> float:
        """Length."""
        return self.length_ns * 1e-9

    @property
    def frame_ms(self) -> float:
        """Busy milliseconds per frame."""
        return self.busy_ns / self.frames * 1e-6


def stretch(seconds: float, settle_seconds: float, update_seconds: float | None, averaged_seconds: float) -> Stretch:
    """Return how long windows must be for a sensor: never less than 5 s and 50 updates of it. The settling takes longer
    by the time over which the driver averages; `update_seconds`, between two updates of the sensor, is None where none
    was seen."""
    update = update_seconds or 0.0
    length = max(seconds, LEAST_SECONDS, LEAST_UPDATES * update)
    return Stretch(length, settle_seconds + averaged_seconds, max(0.25, 2.5 * update) + averaged_seconds)


def back_to_back(frame: Callable[[], object], lasting: Stretch, clock: TimeSource = SYSTEM_CLOCK) -> Window:
    """Repeat `frame`, which makes one and waits for its result, without a pause; the window begins and ends between two
    frames."""
    return _window(lambda seconds: (_repeat(frame, seconds, clock), None, 0), lasting, clock)


def paced(frame: Callable[[], object], rate: float, lasting: Stretch, clock: TimeSource = SYSTEM_CLOCK) -> Window:
    """Make `rate` frames per second, with the device idle until the next one is due, as a camera does."""
    return _window(lambda seconds: _beat(frame, rate, seconds, clock), lasting, clock)


def idle(lasting: Stretch, clock: TimeSource = SYSTEM_CLOCK) -> Window:
    """Let the device do nothing."""

    def rest(seconds: float) -> tuple[int, int, int]:
        clock.sleep(seconds)
        return 0, 0, 0

    return _window(rest, lasting, clock)


def _window(work: Callable[[float], tuple[int, int | None, int]], lasting: Stretch, clock: TimeSource) -> Window:
    """Work for some seconds before, within and behind a window; work without a pause tells no busy time."""
    work(lasting.settle_seconds)
    start = clock.monotonic_ns()
    frames, busy, late = work(lasting.seconds)
    end = clock.monotonic_ns()
    work(lasting.tail_seconds)
    return Window(start, end, frames, end - start if busy is None else busy, late)


def rate_missed(window: Window, rate: float) -> str:
    """Say that a paced window has fewer frames per second than it should; empty where it has as many."""
    made = window.frames / window.seconds
    if made >= LEAST_RATE * rate:
        return ""
    late = f"{window.late} of {window.frames} were late"
    return f"{made:.3g} frames/s were made in the place of {rate:g}; {late}"


def _repeat(frame: Callable[[], object], seconds: float, clock: TimeSource) -> int:
    """Call until the time is over, at least once; a call that began is finished."""
    end = clock.monotonic_ns() + round(seconds * 1e9)
    frames = 0
    while True:
        frame()
        frames += 1
        if clock.monotonic_ns() >= end:
            return frames


def _beat(frame: Callable[[], object], rate: float, seconds: float, clock: TimeSource) -> tuple[int, int, int]:
    """Call at a rate for as many whole periods as the time needs; return calls, time within them, and late ones."""
    start, frames = clock.monotonic_ns(), max(1, math.ceil(seconds * rate))
    busy = late = 0
    for number in range(1, frames + 1):
        begun = clock.monotonic_ns()
        frame()
        done = clock.monotonic_ns()
        busy += done - begun
        due = start + round(number * 1e9 / rate)
        if done > due:
            late += 1
        else:
            clock.sleep((due - done) * 1e-9)
    return frames, busy, late
