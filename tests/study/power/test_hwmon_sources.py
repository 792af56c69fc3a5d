"""hwmon files and the INA3221: the name of a file decides its unit, and the label of a rail its place."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from fake_sensors import JetsonTree
from planting import forbid

from octopus_study.power import hwmon
from octopus_study.power.ina3221 import Ina3221Source
from octopus_study.power.quantities import Channel, MicroJoule, MicroWatt, MilliAmpere, MilliVolt
from octopus_study.power.source import SensorError


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("in1_input", MilliVolt),
        ("curr2_input", MilliAmpere),
        ("curr1_crit", MilliAmpere),
        ("power1_input", MicroWatt),
        ("power1_average", MicroWatt),
        ("energy12_input", MicroJoule),
    ],
)
def test_a_file_gives_the_type_of_its_name(name: str, kind: type, tmp_path: Path) -> None:
    tree = JetsonTree(tmp_path)
    tree.write(name, -42)
    number = int("".join(filter(str.isdigit, name)))
    assert hwmon.read(tree.chip / name) == kind(-42, Channel("hwmon3", number))


@pytest.mark.parametrize("name", ["in1_label", "temp1_input", "shunt1_resistor", "in1_enable", "power_input"])
def test_other_files_are_no_quantity(name: str, tmp_path: Path) -> None:
    tree = JetsonTree(tmp_path)
    tree.write(name, 42)
    with pytest.raises(SensorError, match="no quantity of that name") as caught:
        hwmon.read(tree.chip / name)
    assert caught.value.check == "typed-units"


@pytest.mark.parametrize("name", ["in4_input", "in5_input", "in6_input", "in7_input", "curr4_input"])
def test_shunt_voltages_and_sums_are_refused(name: str, tmp_path: Path) -> None:
    tree = JetsonTree(tmp_path)
    with pytest.raises(SensorError, match="belongs to no rail") as caught:
        hwmon.read(tree.chip / name)
    assert caught.value.check == "shunt-channel"


def test_another_chip_may_number_its_voltages_as_it_likes(tmp_path: Path) -> None:
    tree = JetsonTree(tmp_path)
    tree.write("name", "nct6775")
    assert isinstance(hwmon.read(tree.chip / "in7_input"), MilliVolt)


@pytest.mark.parametrize("content", ["", "  \n", "5.5", "4993 mV", "0x1388", "1_000", "nan", "٤"])
def test_what_is_no_integer_is_named_with_its_file(content: str, tmp_path: Path) -> None:
    file = tmp_path / "in1_input"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(SensorError, match=r"in1_input (is empty|holds .*, not an integer)"):
        hwmon.read(file)


def test_a_file_that_is_missing_or_forbidden_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SensorError, match=r"in1_input can't be read \(No such file or directory\)"):
        hwmon.read(tmp_path / "in1_input")
    forbid(monkeypatch, "in1_input")
    with pytest.raises(
        SensorError, match="in1_input may not be read by this user: give read permission on it"
    ):
        hwmon.read(tmp_path / "in1_input")


@pytest.mark.parametrize("name", ["in1_input", "curr1_input"])
def test_a_channel_that_is_off_is_refused(name: str, tmp_path: Path) -> None:
    tree = JetsonTree(tmp_path)
    tree.write("in1_enable", 0)
    with pytest.raises(SensorError, match="in1_enable is 0: the channel is switched off") as caught:
        hwmon.read(tree.chip / name)
    assert caught.value.check == "enabled"


def test_the_module_rail_is_volts_times_amperes(tmp_path: Path) -> None:
    tree = JetsonTree(tmp_path)
    tree.write("in1_input", 4984)
    tree.write("curr1_input", 1152)
    source = Ina3221Source(tmp_path)
    sample = source.read()
    assert sample.power is not None
    assert sample.power.watts == pytest.approx(4984 * 1152e-6)
    assert (source.scope, sample.counter, sample.took_ns > 0) == ("module_vdd_in", None, True)


def test_the_voltage_is_read_before_and_after_the_current(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = JetsonTree(tmp_path)
    source = Ina3221Source(tmp_path)
    tree.write("curr1_input", 1000)
    read, order = hwmon.read, []

    def sagging(file: Path):
        tree.write("in1_input", 5000 - 100 * len(order))
        order.append(file.name)
        return read(file)

    monkeypatch.setattr(hwmon, "read", sagging)
    power = source.read().power
    assert order == ["in1_input", "curr1_input", "in1_input"]
    assert power is not None
    assert power.watts == pytest.approx((5.0 + 4.8) / 2)


def test_the_rail_is_found_by_its_label_wherever_it_is(tmp_path: Path) -> None:
    tree = JetsonTree(tmp_path, "hwmon11")
    other = JetsonTree(tmp_path, "hwmon2")
    for number in (1, 2, 3):
        other.write(f"in{number}_label", f"CARRIER_{number}")
    tree.write("in1_label", "VDD_SOC")
    tree.write("in3_label", "VDD_IN")
    facts = Ina3221Source(tmp_path).facts()
    assert (facts["chip"], facts["channel"], facts["rail"]) == ("hwmon11", 3, "VDD_IN")
    assert json.dumps(facts)


def test_a_chip_behind_a_link_is_found(tmp_path: Path) -> None:
    """The entries of /sys/class/hwmon are links into /sys/devices."""
    tree = JetsonTree(tmp_path)
    device = tmp_path / "sys" / "devices" / "i2c-1" / "1-0040" / "hwmon" / "hwmon3"
    device.parent.mkdir(parents=True)
    shutil.move(tree.chip, device)
    tree.chip.symlink_to(device)
    assert Ina3221Source(tmp_path).facts()["chip"] == "hwmon3"


def test_a_chip_of_another_kind_is_none(tmp_path: Path) -> None:
    with pytest.raises(SensorError, match="no such chip"):
        Ina3221Source(tmp_path)
    JetsonTree(tmp_path).write("name", "ina3221x")
    with pytest.raises(SensorError, match="no such chip"):
        Ina3221Source(tmp_path)


def test_voltages_and_parts_lie_beside_the_power(tmp_path: Path) -> None:
    tree = JetsonTree(tmp_path)
    tree.set_watts(10.0)
    source = Ina3221Source(tmp_path)
    assert sorted(source.voltages()) == ["hwmon3/in1_input", "hwmon3/in2_input", "hwmon3/in3_input"]
    parts = {label: power.watts for label, power in source.parts().items()}
    assert parts == pytest.approx({"VDD_CPU_GPU_CV": 4.5, "VDD_SOC": 2.0}, abs=0.03)
    tree.write("in2_enable", 0)
    assert sorted(source.voltages()) == ["hwmon3/in1_input", "hwmon3/in3_input"]


def test_a_joint_rail_keeps_its_name_and_has_no_parts(tmp_path: Path) -> None:
    JetsonTree(tmp_path)
    source = Ina3221Source(tmp_path, "VDD_CPU_GPU_CV")
    assert (source.scope, dict(source.parts())) == ("module_vdd_cpu_gpu_cv", {})


@pytest.mark.parametrize(
    ("critical", "watts"),
    [(5000, 4.976 * 5), (32760, 60.0), (0, 60.0), (None, 60.0)],
    ids=["set", "the chip's default", "zero", "none"],
)
def test_the_limit_is_the_critical_current_below_the_ceiling(
    critical: int | None, watts: float, tmp_path: Path
) -> None:
    tree = JetsonTree(tmp_path)
    tree.write("in1_input", 4976)
    (tree.chip / "curr1_crit").unlink()
    if critical is not None:
        tree.write("curr1_crit", critical)
    assert Ina3221Source(tmp_path).limit().watts == pytest.approx(watts)
