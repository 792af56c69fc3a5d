"""Windows: long enough for the sensor, whole frames, and a load that is there before and after."""

import pytest
from synthetic_power import Machine

from octopus_study.power.windows import Stretch, back_to_back, idle, paced, stretch

LASTING = Stretch(seconds=5.0, settle_seconds=1.0, tail_seconds=0.25)


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
    clock, begun = Machine(), []
    frame = clock.frame(milliseconds, 200.0)
    window = back_to_back(lambda: (begun.append(clock.now_ns), frame()), LASTING, clock)
    assert window.seconds >= 5.0
    assert window.seconds - 5.0 < milliseconds / 1e3 + 1e-9
    assert window.frame_ms == pytest.approx(milliseconds)
    assert window.frames == sum(window.start_ns <= start < window.end_ns for start in begun)
    assert begun[0] <= window.start_ns - 1e9
    assert clock.now_ns >= window.end_ns + 0.25e9


def test_a_paced_device_rests_until_the_next_frame_is_due():
    clock = Machine()
    window = paced(clock.frame(10.0, 200.0), 30.0, LASTING, clock)
    assert (window.frames, window.late) == (150, 0)
    assert window.seconds == pytest.approx(5.0, abs=1e-6)
    assert window.frame_ms == pytest.approx(10.0)


@pytest.mark.parametrize("seconds", [5.0, 5.001, 5.016, 5.08])
def test_whole_periods_are_never_shorter_than_the_window(seconds):
    clock = Machine()
    window = paced(clock.frame(1.0, 200.0), 30.0, Stretch(seconds, 1.0, 0.25), clock)
    assert seconds <= window.seconds + 1e-8
    assert window.seconds < seconds + 1 / 30


def test_frames_that_take_too_long_are_late():
    clock = Machine()
    window = paced(clock.frame(40.0, 200.0), 30.0, LASTING, clock)
    assert (window.frames, window.late) == (150, 150)
    assert window.seconds == pytest.approx(6.0)


def test_idle_makes_no_frames():
    clock = Machine()
    window = idle(LASTING, clock)
    assert (window.frames, window.busy_ns, clock.seconds) == (0, 0, pytest.approx(6.25))
    assert window.seconds == pytest.approx(5.0)
