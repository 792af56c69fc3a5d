"""Windows: long enough for the sensor, whole frames, and a load that is there before and after."""

from __future__ import annotations

import pytest

from octopus_study.power.windows import Stretch, back_to_back, idle, paced, stretch

LASTING = Stretch(seconds=5.0, settle_seconds=1.0, tail_seconds=0.25)


class Clock:
    """Time that passes in frames and in sleep."""

    def __init__(self):
        self.now, self.slept, self.frames = 0, 0.0, []

    def monotonic_ns(self):
        return self.now

    def sleep(self, seconds):
        self.slept += seconds
        self.now += round(seconds * 1e9)

    def frame(self, milliseconds):
        def run():
            self.frames.append(self.now)
            self.now += round(milliseconds * 1e6)

        return run


@pytest.mark.parametrize(
    ("update", "averaged", "expected"),
    [
        (None, 0.0, Stretch(5.0, 1.0, 0.25)),
        (0.1, 0.0, Stretch(5.0, 1.0, 0.25)),
        (0.2, 0.0, Stretch(10.0, 1.0, 0.5)),
        (0.1, 1.0, Stretch(5.0, 2.0, 1.25)),
    ],
)
def test_a_window_has_fifty_updates_and_five_seconds(update, averaged, expected):
    assert stretch(5.0, 1.0, update, averaged) == expected
    assert stretch(1.0, 1.0, update, averaged) == expected


@pytest.mark.parametrize("milliseconds", [0.05, 3.0, 270.0, 7000.0])
def test_back_to_back_frames_fill_the_window(milliseconds):
    clock = Clock()
    window = back_to_back(clock.frame(milliseconds), LASTING, clock)
    assert window.seconds >= 5.0
    assert window.seconds - 5.0 < milliseconds / 1e3 + 1e-9
    assert window.frame_ms == pytest.approx(milliseconds)
    assert window.frames == sum(window.start_ns <= start < window.end_ns for start in clock.frames)
    assert clock.frames[0] <= window.start_ns - 1e9
    assert clock.now >= window.end_ns + 0.25e9
    assert clock.slept == 0


def test_a_paced_device_rests_until_the_next_frame_is_due():
    clock = Clock()
    window = paced(clock.frame(10.0), 30.0, LASTING, clock)
    assert (window.frames, window.late) == (150, 0)
    assert window.seconds == pytest.approx(5.0, abs=1e-6)
    assert window.frame_ms == pytest.approx(10.0)


@pytest.mark.parametrize("seconds", [5.0, 5.001, 5.016, 5.08])
def test_whole_periods_are_never_shorter_than_the_window(seconds):
    clock = Clock()
    window = paced(clock.frame(1.0), 30.0, Stretch(seconds, 1.0, 0.25), clock)
    assert seconds <= window.seconds + 1e-8
    assert window.seconds < seconds + 1 / 30


def test_frames_that_take_too_long_are_late():
    clock = Clock()
    window = paced(clock.frame(40.0), 30.0, LASTING, clock)
    assert (window.frames, window.late) == (150, 150)
    assert window.seconds == pytest.approx(6.0)


def test_idle_makes_no_frames():
    clock = Clock()
    window = idle(LASTING, clock)
    assert (window.frames, window.busy_ns, clock.slept) == (0, 0, 6.25)
    assert window.seconds == pytest.approx(5.0)
