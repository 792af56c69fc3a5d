"""A real GPU board: the sensor passes the power-on test, and a window's energy is known by two ways."""

import pytest

from octopus_study.power.energy import idle_power, window_energy
from octopus_study.power.loads import known_load
from octopus_study.power.session import open_session
from octopus_study.power.windows import back_to_back, idle, stretch

pytestmark = [pytest.mark.gpu, pytest.mark.alone]


def test_a_loads_energy_is_above_idle_and_counted_as_it_is_integrated():
    with open_session("cuda") as session:
        load = known_load("cuda")
        lasting = stretch(5.0, 3.0, session.selftest.update_seconds, session.source.averaged_seconds)
        windows = [idle(lasting), back_to_back(load, lasting), idle(lasting)]
        trace = session.selftest.trace.joined(session.sampler.collect())
        before, busy, after = (window_energy(window, trace, session.selftest.proof()) for window in windows)
        assert not trace.failures
        assert session.source.limit().scaled(1.15) > busy.power
    quiet = idle_power(before, after)
    assert busy.power > quiet.scaled(1.1)
    assert busy.per_frame_net(quiet) < busy.per_frame()
    for found in (before, busy, after):
        if found.by_counter is not None and found.by_integral is not None:
            assert found.by_counter.over(found.by_integral) == pytest.approx(1, abs=0.05)
