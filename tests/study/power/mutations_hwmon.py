"""Mis-readings of an INA3221: programs that wire its files wrongly, and boards whose files are wrong."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from bench import Bench, ripple
from fake_sensors import JetsonTree
from planting import Plant, forbid, jetson, planted_in

from octopus_study.power import hwmon
from octopus_study.power.ina3221 import Ina3221Source
from octopus_study.power.quantities import MilliVolt, MilliWatt, Reading, Watt
from octopus_study.power.source import Sample

PLANTS: dict[str, Plant] = {}
INNER = ("in2_label", "in3_label")
planted = planted_in(PLANTS)


class _Wired(Ina3221Source):
    """An INA3221 whose program multiplies what it shouldn't."""

    def read(self) -> Sample:
        return Sample(0, 0, self.wire(), None)

    def wire(self) -> Watt:
        raise NotImplementedError

    def file(self, name: str) -> Reading:
        return hwmon.read(self._chip / name)


@planted("voltage-as-power")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    class Wired(_Wired):
        def wire(self) -> Watt:
            return Watt.from_power(self.file("in1_input"))

    return jetson(folder, wire=Wired)


@planted("current-as-power")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    class Wired(_Wired):
        def wire(self) -> Watt:
            return Watt.from_power(self.file("curr1_input"))

    return jetson(folder, _without(*INNER), Wired)


@planted("power-as-voltage")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    class Wired(_Wired):
        def wire(self) -> Watt:
            (self._chip / "power1_input").write_text("5730000\n")
            return Watt.from_product(self.file("power1_input"), self.file("curr1_input"))

    return jetson(folder, wire=Wired)


@planted("voltage-file-as-current")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    class Wired(_Wired):
        def wire(self) -> Watt:
            return Watt.from_product(self.file("in1_input"), self.file("in1_input"))

    return jetson(folder, wire=Wired)


@planted("neighbour-current")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    class Wired(_Wired):
        def wire(self) -> Watt:
            return Watt.from_product(self.file("in1_input"), self.file("curr2_input"))

    return jetson(folder, wire=Wired)


@planted("neighbour-chip")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    class Wired(_Wired):
        def wire(self) -> Watt:
            second = self._chip.parent / "hwmon4"
            if not second.exists():
                shutil.copytree(self._chip, second)
            return Watt.from_product(self.file("in1_input"), hwmon.read(second / "curr1_input"))

    return jetson(folder, wire=Wired)


# Boards whose files are wrong.


def _without(*names: str) -> Callable[[JetsonTree, float], None]:
    def spoil(tree: JetsonTree, watts: float) -> None:
        for name in names:
            (tree.chip / name).unlink(missing_ok=True)

    return spoil


def _with(**files: object) -> Callable[[JetsonTree, float], None]:
    def spoil(tree: JetsonTree, watts: float) -> None:
        for name, content in files.items():
            tree.write(name, content)

    return spoil


def _relabelled(number: int) -> Callable[[JetsonTree, float], None]:
    """The module's label stands on a shunt channel, whose current the driver also shows."""

    def spoil(tree: JetsonTree, watts: float) -> None:
        (tree.chip / "in1_label").unlink(missing_ok=True)
        tree.write(f"in{number}_label", "VDD_IN")
        shutil.copy(tree.chip / "curr1_input", tree.chip / f"curr{number}_input")

    return spoil


@planted("shunt-as-bus")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return jetson(folder, _relabelled(4))


@planted("sum-of-shunts")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return jetson(folder, _relabelled(7))


@planted("channel-disabled")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return jetson(folder, _with(in1_enable=0))


@planted("label-missing")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return jetson(folder, _with(in1_label="VDD_GPU_SOC", in2_label="VDD_CPU_CV", in3_label="VIN_SYS_5V0"))


@planted("label-twice")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return jetson(folder, _with(in3_label="VDD_IN"))


@planted("labels-swapped")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return jetson(folder, _with(in1_label="VDD_CPU_GPU_CV", in2_label="VDD_IN"))


@planted("current-missing")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return jetson(folder, _without("curr1_input"))


@planted("current-empty")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return jetson(folder, _with(curr1_input=""))


@planted("current-no-number")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return jetson(folder, _with(curr1_input="<error>"))


@planted("current-forbidden")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    forbid(patch, "curr1_input")
    return jetson(folder)


@planted("current-zero")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    calls = iter(range(1, 10**6))

    def spoil(tree: JetsonTree, watts: float) -> None:
        if next(calls) % 20 == 0:
            tree.write("curr1_input", 0)

    return jetson(folder, spoil)


@planted("frozen-board")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return jetson(folder, lambda tree, watts: tree.set_watts(5.73))


@planted("other-rail")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    calls = iter(range(10**6))
    return jetson(folder, lambda tree, watts: tree.set_watts(5.73 + ripple(0.02 * next(calls), 0.3)))


class _Driver(_Wired):
    """A driver that names a voltage's number a power; the type can't know."""

    channel = 1

    def wire(self) -> Watt:
        voltage = hwmon.require_type(self._chip / f"in{self.channel}_input", MilliVolt)
        return Watt.from_power(MilliWatt(voltage.value, voltage.channel))


@planted("episode")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    return jetson(folder, wire=_Driver)


@planted("core-voltage")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    class Wired(_Driver):
        channel = 3

    def spoil(tree: JetsonTree, watts: float) -> None:
        _without(*INNER)(tree, watts)
        tree.write("in3_input", round(300 + 60 * watts))

    return jetson(folder, spoil, Wired)
