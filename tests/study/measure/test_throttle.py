"""Watchers of throttling: what they see, and that they say when they can't."""

import sys
from types import SimpleNamespace

import pytest
from fake_nvml import FakeNvml, h200

from octopus_study.measure import CpuThrottle, GpuThrottle, HostClock, PowerCapKept, _nvml, throttle, throttle_reasons


@pytest.fixture
def nvml(monkeypatch):
    """Pretend that NVML answers with the readings that the test gives."""

    def pretend(readings: FakeNvml | None) -> None:
        monkeypatch.setitem(sys.modules, "pynvml", readings)
        monkeypatch.setattr(_nvml, "pci_address", lambda: "00000000:01:00.0")
        _nvml.session.cache_clear()

    yield pretend
    _nvml.session.cache_clear()


@pytest.mark.parametrize(
    ("mask", "reasons"),
    [
        (0x0, ()),
        (0x1, ()),  # idle
        (0x2, ()),  # clocks set by the user
        (0x4, ("power cap",)),
        (0x1 | 0x20 | 0x40, ("software thermal slowdown", "hardware thermal slowdown")),
    ],
)
def test_only_slowdowns_are_reasons(nvml, mask, reasons):
    nvml(h200(nvmlDeviceGetCurrentClocksEventReasons=mask))
    assert throttle_reasons() == reasons


@pytest.mark.parametrize("readings", [None, FakeNvml()])
def test_a_gpu_that_does_not_tell_is_unreadable_and_not_unthrottled(nvml, readings):
    nvml(readings)
    assert throttle_reasons() is None
    watcher = GpuThrottle()
    assert not watcher.readable
    assert watcher() is None
    assert not HostClock(throttle=watcher).watches_throttling


def test_the_reason_of_the_moment_is_told(nvml):
    nvml(h200(nvmlDeviceGetCurrentClocksEventReasons=0x4))
    watcher = GpuThrottle()
    assert watcher.readable
    assert watcher() == "power cap"


def test_a_slowdown_that_is_over_is_still_counted(nvml, monkeypatch):
    """The power counter grows by the given ns in blocks of 1 ms; the flag of the moment is clear."""
    lost, now = 0, 0
    status = lambda handle, policy: SimpleNamespace(violationTime=lost if policy == 0 else 0)  # noqa: E731
    monkeypatch.setattr(throttle.time, "monotonic_ns", lambda: now)
    nvml(h200(nvmlDeviceGetViolationStatus=status))
    watcher = GpuThrottle()
    said = []
    for growth in (0, 300_000, 0, 20_000):
        lost, now = lost + growth, now + 1_000_000
        said.append(watcher())
    assert said == [None, "power limit for 30% of the time", None, None]


def test_a_cpu_in_its_thermal_limit_is_told_once(monkeypatch, tmp_path):
    folder = tmp_path / "cpu0" / "thermal_throttle"
    folder.mkdir(parents=True)
    count = folder / "package_throttle_count"
    count.write_text("5\n")
    monkeypatch.setattr(throttle, "CPU_ROOT", tmp_path)
    monkeypatch.setattr(throttle, "CGROUP_STAT", tmp_path / "absent")
    watcher = CpuThrottle()
    assert watcher.readable
    assert watcher() is None
    count.write_text("6\n")
    assert watcher() == "thermal throttling"
    assert watcher() is None


def test_a_container_in_its_quota_is_told(monkeypatch, tmp_path):
    stat = tmp_path / "cpu.stat"
    stat.write_text("usage_usec 1\nnr_periods 3\nnr_throttled 2\n")
    monkeypatch.setattr(throttle, "CPU_ROOT", tmp_path)
    monkeypatch.setattr(throttle, "CGROUP_STAT", stat)
    watcher = CpuThrottle()
    stat.write_text("usage_usec 2\nnr_periods 4\nnr_throttled 3\n")
    assert watcher() == "CPU quota of the container"


def test_where_the_power_limit_belongs_to_the_load_heat_alone_throws_a_block_away(nvml):
    nvml(h200(nvmlDeviceGetCurrentClocksEventReasons=0x4))
    watcher = PowerCapKept()
    assert watcher() is None
    nvml(h200(nvmlDeviceGetCurrentClocksEventReasons=0x4 | 0x20))
    assert watcher() == "software thermal slowdown"
