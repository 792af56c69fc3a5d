"""Machine facts and watchers of throttling: complete where the machine answers, None or said so where it doesn't."""

import json
import sys
from types import SimpleNamespace

import pytest
from fake_nvml import FakeNvml, h200

from octopus.backends.cpu import threads
from octopus_study.measure import HostClock, _nvml, machine, throttle
from octopus_study.measure.machine import available_cores, machine_facts, machine_id
from octopus_study.measure.throttle import CpuThrottle, GpuThrottle, PowerCapKept, throttle_reasons


@pytest.fixture
def gpu(monkeypatch):
    """Pretend that CUDA has a device, with the readings that the test gives."""

    def pretend(nvml: FakeNvml | None, name: str | None = None) -> None:
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        monkeypatch.setattr(_nvml, "pci_address", lambda: "00000000:01:00.0")
        monkeypatch.setattr(machine, "resolve", lambda device: "cpu" if device == "cpu" else "cuda")
        monkeypatch.setattr(machine, "gpu_name", lambda: name or _nvml.text(_nvml.read("nvmlDeviceGetName")))
        _nvml.session.cache_clear()

    yield pretend
    _nvml.session.cache_clear()


def test_the_facts_of_this_machine_are_json():
    facts = machine_facts("cpu")
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert facts["gpu"] is None
    assert facts["cpu"]["model"]
    assert 1 <= facts["cpu"]["cores"] == facts["cpu"]["threads"] == available_cores()
    assert facts["memory_bytes"] > 1 << 28
    assert facts["packages"]["numpy"]
    assert machine_facts("cpu", threads=1)["cpu"]["threads"] == 1


@pytest.mark.parametrize(("model", "expected"), [
    ("Intel(R) Xeon(R) Platinum 8480C CPU @ 2.00GHz", "intel-xeon-platinum-8480c-4c"),
    ("AMD EPYC 7742 64-Core Processor", "amd-epyc-7742-4c"),
    ("Neoverse-V2", "neoverse-v2-4c"),
])  # fmt: skip
def test_a_cpu_is_named_after_its_model_and_cores(model, expected, monkeypatch):
    monkeypatch.setattr(machine, "cpu_model", lambda: model)
    monkeypatch.setattr(machine, "available_cores", lambda: 4)
    assert machine_id("cpu") == expected


def test_the_facts_of_a_gpu_carry_their_units(gpu):
    gpu(h200())
    facts = machine_facts("cuda")
    found = {"name": "NVIDIA H200", "driver": "580.159.03", "cuda": "13.0", "compute_capability": "9.0"}
    assert facts["gpu"].items() >= (found | {"power_limit_w": pytest.approx(700), "clock_sm_max_mhz": 1980}).items()
    state = facts["state"]["gpu"]
    assert (state["clock_sm_mhz"], state["temperature_c"], state["throttle_reasons"]) == (345, 31, [])
    json.dumps(facts, allow_nan=False)
    # A reading that fails is None, and spares the others.
    gpu(h200(nvmlDeviceGetTemperature=RuntimeError("bus"), nvmlDeviceGetEnforcedPowerLimit=OSError()))
    facts = machine_facts("cuda")
    assert facts["state"]["gpu"]["temperature_c"] is None
    assert facts["gpu"]["power_limit_w"] is None
    assert facts["gpu"]["clock_sm_max_mhz"] == 1980


@pytest.mark.parametrize("nvml", [None, FakeNvml(), FakeNvml(nvmlInit="Driver Not Loaded")])
def test_a_silent_nvml_gives_none_for_all_and_no_zero(gpu, nvml):
    """Absent; initialises and then supports nothing, as on Jetson; refuses to initialise."""
    gpu(nvml, "Orin")
    facts = machine_facts("cuda")
    assert facts["gpu"].pop("name") == "Orin"
    assert set(facts["gpu"].values()) == {None}
    assert set(facts["state"]["gpu"].values()) == {None}


def test_cores_heed_affinity_topology_and_quota(monkeypatch, tmp_path):
    for cpu, core in enumerate([0, 0, 1, 1]):  # two cores with two threads each
        topology = tmp_path / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "core_id").write_text(f"{core}\n")
        (topology / "physical_package_id").write_text("0\n")
    monkeypatch.setattr(machine, "CPU_ROOT", tmp_path)
    monkeypatch.setattr(threads, "QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    assert available_cores() == 2
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    assert available_cores() == 1
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: {0, 1, 2, 3, 9}, raising=False)
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 4)
    assert machine_facts("cpu")["cpu"]["cores_installed"] == 2
    assert available_cores() == 5  # without topology every logical CPU counts
    for quota, cores in [("max 100000", 5), ("150000 100000", 1), ("50000 100000", 1), ("300000 100000", 3)]:
        (tmp_path / "cpu.max").write_text(quota)
        assert available_cores() == cores


def test_identities_are_digests_that_differ_between_hosts(gpu, monkeypatch, tmp_path):
    gpu(h200(nvmlDeviceGetUUID="GPU-1234"))
    monkeypatch.setattr(machine, "BOOT_ID", tmp_path / "boot_id")
    monkeypatch.setattr(machine, "HOST_ID", (tmp_path / "absent", tmp_path / "machine-id"))
    digests = []
    for name in ("first", "second"):
        (tmp_path / "machine-id").write_text(f"{name}\n")
        digests.append(machine.identity("cuda"))
    assert digests[0]["host"] != digests[1]["host"] and digests[0]["gpu"] == digests[1]["gpu"]
    assert digests[0]["boot"] is None and machine.identity("cpu")["gpu"] is None
    assert "first" not in str(digests) and "1234" not in str(digests)
    assert machine_facts("cpu")["identity"]["host"] == digests[1]["host"]


@pytest.mark.parametrize(("mask", "reasons"), [
    (0x0, ()), (0x1, ()), (0x2, ()),  # idle; clocks set by the user
    (0x4, ("power cap",)), (0x1 | 0x20 | 0x40, ("software thermal slowdown", "hardware thermal slowdown")),
])  # fmt: skip
def test_only_slowdowns_are_reasons(gpu, mask, reasons):
    gpu(h200(nvmlDeviceGetCurrentClocksEventReasons=mask))
    assert throttle_reasons() == reasons
    watcher = GpuThrottle()
    assert watcher.readable and watcher() == (", ".join(reasons) or None)


@pytest.mark.parametrize("readings", [None, FakeNvml()])
def test_a_gpu_that_does_not_tell_is_unreadable_and_not_unthrottled(gpu, readings):
    gpu(readings)
    assert throttle_reasons() is None
    watcher = GpuThrottle()
    assert not watcher.readable and watcher() is None
    assert not HostClock(throttle=watcher).watches_throttling


def test_a_slowdown_that_is_over_is_still_counted(gpu, monkeypatch):
    """The power counter grows by the given ns in blocks of 1 ms; the flag of the moment is clear."""
    lost, now = 0, 0
    status = lambda handle, policy: SimpleNamespace(violationTime=lost if policy == 0 else 0)  # noqa: E731
    monkeypatch.setattr(throttle.time, "monotonic_ns", lambda: now)
    gpu(h200(nvmlDeviceGetViolationStatus=status))
    watcher = GpuThrottle()
    said = []
    for growth in (0, 300_000, 0, 20_000):
        lost, now = lost + growth, now + 1_000_000
        said.append(watcher())
    assert said == [None, "power limit for 30% of the time", None, None]


STAT = "usage_usec {0}\nnr_periods 1{0}\nnr_throttled {0}\n"


@pytest.mark.parametrize(("file", "text", "said"), [
    ("cpu0/thermal_throttle/package_throttle_count", "{}\n", "thermal throttling"),
    ("cpu.stat", STAT, "CPU quota of the container"),
], ids=["thermal limit", "quota"])  # fmt: skip
def test_a_cpu_that_is_slowed_down_is_told_once(monkeypatch, tmp_path, file, text, said):
    count = tmp_path / file
    count.parent.mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(throttle, "CPU_ROOT", tmp_path)
    monkeypatch.setattr(throttle, "CGROUP_STAT", tmp_path / "cpu.stat")
    count.write_text(text.format(5))
    watcher = CpuThrottle()
    assert watcher.readable and watcher() is None
    count.write_text(text.format(6))
    assert [watcher(), watcher()] == [said, None]


def test_where_the_power_limit_belongs_to_the_load_heat_alone_throws_a_block_away(gpu):
    gpu(h200(nvmlDeviceGetCurrentClocksEventReasons=0x4))
    watcher = PowerCapKept()
    assert watcher() is None
    gpu(h200(nvmlDeviceGetCurrentClocksEventReasons=0x4 | 0x20))
    assert watcher() == "software thermal slowdown"
