"""Page-locked memory, without a GPU: a slot is waited for before it is written again, and keeps what its copy needs."""

import weakref
from types import SimpleNamespace

import numpy as np
import pytest

from octopus.arrays import staging


class Event:
    """Notes when it is waited for."""

    is_done = False

    def __init__(self, log):
        self.log = log

    def sync(self):
        self.log.append(self)


@pytest.fixture
def log(monkeypatch):
    events = []
    gpu = SimpleNamespace(create_event=lambda: Event(events), default_stream="default")
    monkeypatch.setattr(staging, "current", lambda: gpu)
    monkeypatch.setattr(staging.memory, "pinned", lambda shape, dtype: np.zeros(shape, dtype))
    return events


QUEUE = SimpleNamespace(record=lambda event: None)


def test_slots_are_used_in_turn_and_waited_for(log):
    held = staging.Staging(2)
    first, second = held.take(100), held.take(100)
    assert first is not second and log == []
    assert held.take(200) is first and log == [first._copied]
    assert held.take(200) is second and log == [first._copied, second._copied]


@pytest.mark.parametrize("slots", [1, 3])
def test_what_a_copy_needs_stays_until_it_is_done(log, slots):
    """Which is waited for where the slot is taken again, and seen when another one is."""
    held, image = staging.Staging(slots), np.zeros(3)
    alive, slot = weakref.ref(image), held.take(100)
    slot.sent(QUEUE, image)
    del image
    if slots > 1:
        held.take(100)
        assert alive() is not None
        slot._copied.is_done = True
    assert alive() is not None
    held.take(100)
    assert alive() is None and log == ([slot._copied] if slots == 1 else [])


@pytest.mark.parametrize(("before", "after", "size"), [
    (1, 2, staging.LEAST_BYTES), (20_000, 30_000, 32_768), (20_000, 40_000, 65_536),
    (1 << 27, 1 << 25, 1 << 27), (1 << 27, 1 << 20, 1 << 20),  # within an eighth, and beyond
    ((1 << 26) + 1, (1 << 26) + 3, (1 << 26) + 3),
])  # fmt: skip
def test_slots_grow_and_large_ones_are_given_back(log, before, after, size):
    held = staging.Staging(1)
    held.take(before)
    assert held.take(after).array.size == size


def test_a_plans_slots_are_made_once(log):
    held = staging.Staging(2, 5000)
    sizes = {held.take(nbytes).array.size for nbytes in (1, 10, 5000, 7)}
    assert sizes == {5000}
