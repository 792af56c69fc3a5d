"""NVML and RAPL against fakes, the choice between sensors, and what the doctor says: what each failure is called."""

from __future__ import annotations

import json
import pickle
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_sensors import FakeBoard, JetsonTree, RaplTree
from planting import forbid

from octopus_study.doctor import MISSING, OK, _opened
from octopus_study.measure import _nvml
from octopus_study.power import rapl
from octopus_study.power.choose import NoSensor, SourceSpec, candidates
from octopus_study.power.nvml import NvmlSource
from octopus_study.power.rapl import RaplSource
from octopus_study.power.source import SensorError

SECOND_NS = 10**9


def test_a_board_gives_instantaneous_power_and_its_counter() -> None:
    board = FakeBoard(watts=125.5)
    source = NvmlSource(board, "board")
    board.add_joules(2.5)
    first = source.read()
    board.add_joules(2.5)
    second = source.read()
    assert first.power is not None
    assert first.power.watts == pytest.approx(125.5)
    assert second.counter.value - first.counter.value == 2500
    assert (source.averaged_seconds, source.limit().watts, source.scope) == (0.0, 700.0, "gpu_board")
    assert source.facts()["power"] == "field value POWER_INSTANT"


@pytest.mark.parametrize("why", ["unknown to the board", "unknown to the package", "fails"])
def test_without_instantaneous_power_the_averaged_one_is_read(why: str) -> None:
    board = FakeBoard(watts=125.5, instant=why != "unknown to the board")
    if why == "unknown to the package":
        board.NVML_FI_DEV_POWER_INSTANT = None
    if why == "fails":
        board.broken["nvmlDeviceGetFieldValues"] = "Not Supported"
    source = NvmlSource(board, "board")
    assert (source.averaged_seconds, source.facts()["power"]) == (1.0, "nvmlDeviceGetPowerUsage")
    assert source.read().power is not None


def test_a_board_without_a_counter_gives_power_alone() -> None:
    board = FakeBoard()
    board.broken["nvmlDeviceGetTotalEnergyConsumption"] = "Not Supported"
    source = NvmlSource(board, "board")
    assert source.read().counter is None
    assert source.facts()["counter"] is None


def test_a_counter_that_fails_later_is_a_failed_reading() -> None:
    board = FakeBoard()
    source = NvmlSource(board, "board")
    board.broken["nvmlDeviceGetTotalEnergyConsumption"] = "GPU is lost"
    with pytest.raises(SensorError, match="nvmlDeviceGetTotalEnergyConsumption: GPU is lost"):
        source.read()


def test_initialising_is_not_enough() -> None:
    board = FakeBoard(instant=False)
    board.broken["nvmlDeviceGetPowerUsage"] = "Not Supported"
    with pytest.raises(SensorError, match="nvmlDeviceGetPowerUsage: Not Supported"):
        NvmlSource(board, "board")


@pytest.mark.parametrize(
    ("broken", "watts"),
    [
        (["EnforcedPowerLimit"], 350.0),
        (["EnforcedPowerLimit", "PowerManagementDefaultLimit"], 400.0),
        (["EnforcedPowerLimit", "PowerManagementDefaultLimit", "PowerManagementLimitConstraints"], 600.0),
    ],
)
def test_a_board_without_an_enforced_limit_has_the_next_best(broken: list[str], watts: float) -> None:
    board = FakeBoard()
    board.nvmlDeviceGetPowerManagementDefaultLimit = _answer(board, "PowerManagementDefaultLimit", 350_000)
    limits = [100_000, 400_000]
    board.nvmlDeviceGetPowerManagementLimitConstraints = _answer(
        board, "PowerManagementLimitConstraints", limits
    )
    board.broken |= {f"nvmlDeviceGet{name}": "Not Supported" for name in broken}
    assert NvmlSource(board, "board").limit().watts == watts


def _answer(board: FakeBoard, name: str, value: object):
    def answer(device: object) -> object:
        board._fail(f"nvmlDeviceGet{name}")
        return value

    return answer


def test_a_power_limit_of_nothing_is_refused() -> None:
    with pytest.raises(SensorError, match="power limit of 0 mW") as caught:
        NvmlSource(FakeBoard(limit_mw=0), "board")
    assert caught.value.check == "plausible-range"


def test_the_board_is_the_one_of_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_nvml, "session", lambda: (FakeBoard(watts=77.0), "board of CUDA's first device"))
    power = SourceSpec("nvml").open().read().power
    assert power is not None
    assert power.watts == 77.0


def test_nvml_that_does_not_answer_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_nvml, "session", lambda: None)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(SensorError, match=r"it doesn't answer \(.*pynvml"):
        SourceSpec("nvml").open()


class Bench:
    """A package whose clock the test moves."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, **tree: int) -> None:
        self.now_ns = SECOND_NS
        patch.setattr(rapl, "time", SimpleNamespace(monotonic_ns=lambda: self.now_ns))
        self.tree = RaplTree(folder, **tree)
        self.source = RaplSource(folder)

    def counted_after(self, seconds: float, joules: float) -> int:
        self.now_ns += round(seconds * SECOND_NS)
        self.tree.add_joules(joules)
        return self.source.read().counter.value


def test_a_package_counts_microjoules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, monkeypatch, energy_uj=1_000_000)
    assert bench.counted_after(1.0, 15.0) == 16_000_000
    assert (bench.source.read().power, bench.source.scope) == (None, "cpu_package")
    assert bench.source.limit().watts == 90.0
    assert json.dumps(bench.source.facts())


def test_wraps_are_undone_as_often_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, monkeypatch, energy_uj=0, range_uj=50_000_000)
    assert [bench.counted_after(1.0, 40.0) for _ in range(4)] == [40_000_000 * turn for turn in (1, 2, 3, 4)]


def test_a_step_back_that_is_no_wrap_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, monkeypatch, energy_uj=200_000_000, range_uj=262_143_328_850)
    bench.tree.energy_uj = 0  # as a write to energy_uj does
    with pytest.raises(
        SensorError, match="went back from 200000000 to 5000000 µJ, which is no wrap"
    ) as caught:
        bench.counted_after(1.0, 5.0)
    assert caught.value.check == "counter-monotonic"
    assert bench.counted_after(1.0, 5.0) == 10_000_000  # lower than before: whoever compares sees it


def test_packages_are_summed_and_nothing_else(tmp_path: Path) -> None:
    tree = RaplTree(tmp_path, energy_uj=1_000_000)
    for name, title in (
        ("intel-rapl:1", "package-1"),
        ("intel-rapl:2", "psys"),
        ("intel-rapl-mmio:0", "package-0"),
    ):
        shutil.copytree(tree.package, tree.package.parent / name)
        (tree.package.parent / name / "name").write_text(f"{title}\n")
    source = RaplSource(tmp_path)
    assert source.facts()["packages"] == ["intel-rapl:0", "intel-rapl:1"]
    assert source.read().counter.value == 2_000_000
    assert source.limit().watts == 180.0


@pytest.mark.parametrize("limits", ["none", "no limit", "zero"])
def test_a_package_without_a_limit_has_a_ceiling(limits: str, tmp_path: Path) -> None:
    tree = RaplTree(tmp_path)
    for number in (0, 1):
        if limits == "none":  # AMD
            (tree.package / f"constraint_{number}_power_limit_uw").unlink()
        else:
            tree.write(f"constraint_{number}_power_limit_uw", 0 if limits == "zero" else 4_095_875_000)
    assert RaplSource(tmp_path).limit().watts == 600.0


def test_only_root_may_read_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    RaplTree(tmp_path)
    forbid(monkeypatch, "energy_uj")
    with pytest.raises(
        SensorError, match="intel-rapl:0/energy_uj may not be read by this user: give read permission"
    ):
        RaplSource(tmp_path)


def test_a_machine_without_counters_says_so(tmp_path: Path) -> None:
    with pytest.raises(SensorError, match="no package counters"):
        RaplSource(tmp_path)


# Which one, and what the doctor says of it.


def test_the_closest_sensor_of_a_device_comes_first() -> None:
    assert [spec.kind for spec in candidates("cuda")] == ["nvml", "ina3221"]
    assert [spec.kind for spec in candidates("cpu")] == ["rapl", "ina3221"]


def test_no_sensor_names_all_that_were_looked_at() -> None:
    error = NoSensor({"nvml": "Not Supported", "ina3221": "no such chip"})
    assert str(error) == "no power sensor (looked at NVML: Not Supported; INA3221: no such chip)"
    assert error.looked["nvml"] == "Not Supported"
    assert "looked at nothing" in str(NoSensor({}))


def test_a_spec_travels_between_processes_and_errors_keep_their_check() -> None:
    spec = SourceSpec("rapl", "elsewhere")
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert pickle.loads(pickle.dumps(SensorError("reason", "enabled"))).check == "enabled"


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("ina3221", "module_vdd_in, power 5.7"),
        ("rapl", "cpu_package, energy counter 1000000 µJ"),
        ("nvml", "gpu_board, power 125 W, energy counter 2421335 mJ"),
    ],
)
def test_the_doctor_opens_what_a_run_opens(
    kind: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = SourceSpec(kind, str(tmp_path))
    monkeypatch.setattr(_nvml, "session", lambda: None)
    missing = _opened(spec, "a machine that has it")
    assert (missing.state, missing.remedy) == (MISSING, "a machine that has it")
    JetsonTree(tmp_path)
    RaplTree(tmp_path)
    monkeypatch.setattr(_nvml, "session", lambda: (FakeBoard(), "board"))
    finding = _opened(spec, "")
    assert (finding.name, finding.state) == (spec.title, OK)
    assert found in finding.detail
