"""Mis-readings of an INA3221: programs that wire its files wrongly, and boards whose files are wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from bench import Bench, ripple
from fake_sensors import JetsonTree
from planting import Plant, Spoil, Wire, forbid, jetson, planted_in

from octopus_study.power import hwmon
from octopus_study.power.quantities import MilliVolt, MilliWatt, Watt


def as_power(name: str) -> Wire:
    """A program that takes the number of a file as a power."""
    return lambda chip: Watt.from_power(hwmon.read(chip / name))


def product(voltage: str, current: str) -> Wire:
    """A program that multiplies these two files."""
    return lambda chip: Watt.from_product(hwmon.read(chip / voltage), hwmon.read(chip / current))


def neighbour_chip(chip: Path) -> Watt:
    """Volts of one chip, amperes of another, which is there once the first was found."""
    second = chip.parent / "hwmon4"
    if not second.exists():
        shutil.copytree(chip, second)
    return product("in1_input", "../hwmon4/curr1_input")(chip)


def named_a_power(channel: int) -> Wire:
    """A driver that names a voltage's number a power; the type can't know."""

    def wire(chip: Path) -> Watt:
        voltage = hwmon.require_type(chip / f"in{channel}_input", MilliVolt)
        return Watt.from_power(MilliWatt(voltage.value, voltage.channel))

    return wire


def without(*names: str) -> Spoil:
    """Files that the board lacks."""

    def spoil(tree: JetsonTree, watts: float) -> None:
        for name in names:
            (tree.chip / name).unlink(missing_ok=True)

    return spoil


def holding(**files: object) -> Spoil:
    """Files that hold something else."""

    def spoil(tree: JetsonTree, watts: float) -> None:
        for name, content in files.items():
            tree.write(name, content)

    return spoil


def relabelled(number: int) -> Spoil:
    """The module's label stands on a shunt channel, whose current the driver also shows."""

    def spoil(tree: JetsonTree, watts: float) -> None:
        without("in1_label")(tree, watts)
        tree.write(f"in{number}_label", "VDD_IN")
        shutil.copy(tree.chip / "curr1_input", tree.chip / f"curr{number}_input")

    return spoil


INNER = without("in2_label", "in3_label")
# What is wrong with the files, and how the program reads them, None where as it should.
JETSONS: dict[str, tuple[Spoil | None, Wire | None]] = {
    "voltage-as-power": (None, as_power("in1_input")),
    "current-as-power": (INNER, as_power("curr1_input")),
    "power-as-voltage": (holding(power1_input=5_730_000), product("power1_input", "curr1_input")),
    "voltage-file-as-current": (None, product("in1_input", "in1_input")),
    "neighbour-current": (None, product("in1_input", "curr2_input")),
    "neighbour-chip": (None, neighbour_chip),
    "shunt-as-bus": (relabelled(4), None),
    "sum-of-shunts": (relabelled(7), None),
    "channel-disabled": (holding(in1_enable=0), None),
    "label-missing": (
        holding(in1_label="VDD_GPU_SOC", in2_label="VDD_CPU_CV", in3_label="VIN_SYS_5V0"),
        None,
    ),
    "label-twice": (holding(in3_label="VDD_IN"), None),
    "labels-swapped": (holding(in1_label="VDD_CPU_GPU_CV", in2_label="VDD_IN"), None),
    "current-missing": (without("curr1_input"), None),
    "current-empty": (holding(curr1_input=""), None),
    "current-no-number": (holding(curr1_input="<error>"), None),
    "frozen-board": (lambda tree, watts: tree.set_watts(5.73), None),
    "episode": (None, named_a_power(1)),
}
PLANTS: dict[str, Plant] = {
    name: lambda folder, patch, how=how: jetson(folder, *how) for name, how in JETSONS.items()
}
planted = planted_in(PLANTS)


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


@planted("other-rail")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    calls = iter(range(10**6))
    return jetson(folder, lambda tree, watts: tree.set_watts(5.73 + ripple(0.02 * next(calls), 0.3)))


@planted("core-voltage")
def _(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    def spoil(tree: JetsonTree, watts: float) -> None:
        INNER(tree, watts)
        tree.write("in3_input", round(300 + 60 * watts))

    return jetson(folder, spoil, named_a_power(3))
