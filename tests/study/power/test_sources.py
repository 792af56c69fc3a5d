"""Both sensors against healthy and broken files and boards, the choice between them, and what the doctor says."""

import json
import pickle
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_sensors import FakeBoard, JetsonTree

from octopus.backends import cuda
from octopus.backends.cuda import device
from octopus_study.doctor import MISSING, OK, _opened
from octopus_study.measure import _nvml
from octopus_study.power import hwmon
from octopus_study.power.choose import SourceSpec, candidates
from octopus_study.power.ina3221 import Ina3221Source
from octopus_study.power.nvml import NvmlSource
from octopus_study.power.quantities import Channel, MicroWatt, MilliAmpere, MilliVolt
from octopus_study.power.source import SensorError

INTEGER, NONE, RAIL = "holds .*, not an integer", "no quantity of that name", "belongs to no rail"
# File of the chip, what it holds, and what comes of reading it: a type, or the words and the rule of a refusal.
FILES: list[tuple[str, str, type | tuple[str, str]]] = [
    ("in1_input", "-42", MilliVolt), ("curr2_input", "-42", MilliAmpere), ("curr1_crit", "-42", MilliAmpere),
    ("power1_input", "-42", MicroWatt), ("power1_average", "-42", MicroWatt),
    *((name, "42", (NONE, "typed-units"))
      for name in ("in1_label", "temp1_input", "energy1_input", "shunt1_resistor", "power_input")),
    *((f"in{number}_input", "42", (RAIL, "shunt-channel")) for number in (4, 5, 6, 7)),
    ("curr4_input", "42", (RAIL, "shunt-channel")),
    *(("in1_input", text, (INTEGER, "readable")) for text in ("5.5", "4993 mV", "0x1388", "1_000", "nan", "٤")),
    *(("in1_input", text, ("in1_input is empty", "readable")) for text in ("", "  \n")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "outcome"), FILES)
def test_a_file_gives_the_type_of_its_name_or_is_refused(name, content, outcome, tmp_path):
    chip = JetsonTree(tmp_path).chip
    (chip / name).write_text(content, encoding="utf-8")
    if isinstance(outcome, type):
        number = int("".join(filter(str.isdigit, name)))
        assert hwmon.read(chip / name) == outcome(-42, Channel("hwmon3", number))
        return
    with pytest.raises(SensorError, match=outcome[0]) as caught:
        hwmon.read(chip / name)
    assert caught.value.check == outcome[1]


def test_another_chip_may_number_its_voltages_as_it_likes(tmp_path: Path) -> None:
    tree = JetsonTree(tmp_path)
    tree.write("name", "nct6775")
    assert isinstance(hwmon.read(tree.chip / "in7_input"), MilliVolt)
    with pytest.raises(SensorError, match="no such chip"):
        Ina3221Source(tmp_path)


def test_a_board_with_other_chips_is_refused_and_says_which(tmp_path: Path) -> None:
    """As on an AGX Thor: its input is an INA238, its INA3221 has no VDD_IN, and its sockets look like supplies."""
    module, socket = JetsonTree(tmp_path, "hwmon1"), JetsonTree(tmp_path, "hwmon2")
    module.write("name", "ina238")
    module.write("power1_input", 55_000_000)
    socket.write("name", "ucsi_source_psy_2_00081")
    with pytest.raises(SensorError, match="no such chip; the board has ina238, ucsi_source_psy_2_00081"):
        Ina3221Source(tmp_path)
    rails = JetsonTree(tmp_path, "hwmon3")
    rails.write("in1_label", "VDD_CPU_SOC_MSS")
    with pytest.raises(SensorError, match="no channel is labelled VDD_IN; labels: VDD_CPU_GPU_CV, VDD_CPU_SOC_MSS"):
        Ina3221Source(tmp_path)
    assert hwmon.read(module.chip / "power1_input") == MicroWatt(55_000_000, Channel("hwmon1", 1))


def test_the_voltage_is_read_before_and_after_the_current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = JetsonTree(tmp_path)
    source = Ina3221Source(tmp_path)
    tree.write("curr1_input", 1000)
    read, order = hwmon.read, []

    def sagging(file: Path):
        tree.write("in1_input", 5000 - 100 * len(order))
        order.append(file.name)
        return read(file)

    monkeypatch.setattr(hwmon, "read", sagging)
    sample = source.read()
    assert order == ["in1_input", "curr1_input", "in1_input"]
    assert sample.power.watts == pytest.approx((5.0 + 4.8) / 2)
    assert (source.scope, sample.counter, sample.took_ns > 0) == ("module_vdd_in", None, True)


def test_the_rail_is_found_by_its_label_wherever_it_is(tmp_path: Path) -> None:
    tree, other = JetsonTree(tmp_path, "hwmon11"), JetsonTree(tmp_path, "hwmon2")
    for number in (1, 2, 3):
        other.write(f"in{number}_label", f"CARRIER_{number}")
    tree.write("in1_label", "VDD_SOC")
    tree.write("in3_label", "VDD_IN")
    # The entries of /sys/class/hwmon are links into /sys/devices.
    device = tmp_path / "sys" / "devices" / "i2c-1" / "1-0040" / "hwmon" / "hwmon11"
    device.parent.mkdir(parents=True)
    shutil.move(tree.chip, device)
    tree.chip.symlink_to(device)
    facts = Ina3221Source(tmp_path).facts()
    assert (facts["chip"], facts["channel"], facts["rail"]) == ("hwmon11", 3, "VDD_IN")
    assert json.dumps(facts)


def test_voltages_and_parts_lie_beside_the_power(tmp_path: Path) -> None:
    tree = JetsonTree(tmp_path)
    tree.set_watts(10.0)
    source = Ina3221Source(tmp_path)
    assert sorted(source.voltages()) == ["hwmon3/in1_input", "hwmon3/in2_input", "hwmon3/in3_input"]
    parts = {label: power.watts for label, power in source.parts().items()}
    assert parts == pytest.approx({"VDD_CPU_GPU_CV": 4.5, "VDD_SOC": 2.0}, abs=0.03)
    tree.write("in2_enable", 0)
    assert sorted(source.voltages()) == ["hwmon3/in1_input", "hwmon3/in3_input"]


@pytest.mark.parametrize(("critical", "watts"), [
    (5000, 4.976 * 5), (32760, 60.0), (0, 60.0), (None, 60.0),
], ids=["set", "the chip's default", "zero", "none"])  # fmt: skip
def test_the_limit_is_the_critical_current_below_the_ceiling(critical, watts, tmp_path):
    tree = JetsonTree(tmp_path)
    tree.write("in1_input", 4976)
    (tree.chip / "curr1_crit").unlink()
    if critical is not None:
        tree.write("curr1_crit", critical)
    assert Ina3221Source(tmp_path).limit().watts == pytest.approx(watts)


def test_a_board_gives_instantaneous_power_and_its_counter() -> None:
    board = FakeBoard(watts=125.5)
    source = NvmlSource(board, "board")
    first = source.read()
    board.add_joules(2.5)
    assert first.power.watts == pytest.approx(125.5)
    assert source.read().counter.value - first.counter.value == 2500
    assert (source.averaged_seconds, source.limit().watts, source.scope) == (0.0, 700.0, "gpu_board")
    board.broken["nvmlDeviceGetTotalEnergyConsumption"] = "GPU is lost"
    with pytest.raises(SensorError, match="nvmlDeviceGetTotalEnergyConsumption: GPU is lost"):
        source.read()


# What a board doesn't answer, and what is then read of it: of power, of energy, and watts of its limit.
ANSWERS: list[tuple[str, tuple[str, bool, float]]] = [
    ("", ("field value POWER_INSTANT", True, 700.0)),
    ("FieldValues", ("nvmlDeviceGetPowerUsage", True, 700.0)),
    ("TotalEnergyConsumption", ("field value POWER_INSTANT", False, 700.0)),
    ("EnforcedPowerLimit", ("field value POWER_INSTANT", True, 600.0)),
]


@pytest.mark.parametrize(("broken", "found"), ANSWERS)
def test_a_board_that_tells_less_is_read_by_the_next_best(broken: str, found: tuple[str, bool, float]) -> None:
    board = FakeBoard()
    board.broken[f"nvmlDeviceGet{broken}"] = "Not Supported"
    source = NvmlSource(board, "board")
    assert (source.facts()["power"], source.read().counter is not None, source.limit().watts) == found
    assert source.averaged_seconds == (0.0 if "INSTANT" in found[0] else 1.0)


def test_a_slice_of_a_board_has_no_power_of_its_own() -> None:
    board = FakeBoard()
    board.mig = (1, 1)
    with pytest.raises(SensorError, match="MIG: its power is that of the whole board") as caught:
        NvmlSource(board, "board")
    assert caught.value.check == "scope"


@pytest.mark.parametrize(("chosen", "place"), [("1,0", 1), ("GPU-8d1f2b", 0), ("MIG-3e1a", 1), ("", None), ("9", None)])
def test_the_sensor_is_of_the_board_that_cuda_was_told_to_use(chosen, place, monkeypatch):
    """However CUDA_VISIBLE_DEVICES names it: the driver says where its first device is, and NVML takes that."""
    driver = SimpleNamespace(
        CUresult=SimpleNamespace(CUDA_SUCCESS=0),
        cuInit=lambda flags: (0 if place is not None else SimpleNamespace(name="CUDA_ERROR_NO_DEVICE"),),
        cuDeviceGetCount=lambda: (0, 1),
        cuDeviceGet=lambda number: (0, number),
        cuDeviceGetPCIBusId=lambda size, device: (0, f"0000:0{place}:00.0\0".encode()),
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    monkeypatch.setattr("cuda.bindings.driver", driver, raising=False)
    monkeypatch.setattr(device, "driver", lambda: driver)
    monkeypatch.setattr(cuda, "missing", device.missing.__wrapped__)
    board = FakeBoard(instant=False)
    board.nvmlInit = lambda: None
    board.nvmlDeviceGetHandleByPciBusId = lambda address: address
    board.nvmlDeviceGetPowerUsage = lambda address: 1000 * (7 + int(address[6]))
    monkeypatch.setitem(sys.modules, "pynvml", board)
    _nvml.session.cache_clear()
    try:
        if place is not None:
            assert NvmlSource().read().power.watts == 7 + place
            return
        words = "CUDA_VISIBLE_DEVICES is empty" if not chosen else "CUDA_ERROR_NO_DEVICE .CUDA_VISIBLE_DEVICES=9"
        with pytest.raises(SensorError, match=words):
            SourceSpec("nvml").open()
    finally:
        _nvml.session.cache_clear()


def test_a_board_whose_binding_is_missing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_nvml, "session", lambda: None)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(SensorError, match=r"it doesn't answer \(.*pynvml"):
        SourceSpec("nvml").open()


def test_the_closest_sensor_of_a_device_comes_first() -> None:
    assert [spec.kind for spec in candidates("cuda")] == ["nvml", "ina3221"]
    assert [spec.kind for spec in candidates("cpu")] == ["ina3221"]
    spec = SourceSpec("ina3221", "elsewhere")
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert pickle.loads(pickle.dumps(SensorError("reason", "enabled"))).check == "enabled"


@pytest.mark.parametrize(("kind", "found"), [
    ("ina3221", "module_vdd_in, power 5.7"), ("nvml", "gpu_board, power 125 W, energy counter 2421335 mJ"),
])  # fmt: skip
def test_the_doctor_opens_what_a_run_opens(kind, found, tmp_path, monkeypatch):
    spec = SourceSpec(kind, str(tmp_path))
    monkeypatch.setattr(_nvml, "session", lambda: None)
    missing = _opened(spec, "a machine that has it")
    assert (missing.state, missing.remedy) == (MISSING, "a machine that has it")
    JetsonTree(tmp_path)
    monkeypatch.setattr(_nvml, "session", lambda: (FakeBoard(), "board"))
    finding = _opened(spec, "")
    assert (finding.name, finding.state) == (spec.title, OK)
    assert found in finding.detail
