"""The INA3221 of a Jetson board, through hwmon: voltage times current of the rail that feeds the module.

An INA3221 measures a voltage and a current per channel and no power: power is their product, both of the same channel
of the same chip. The rail is found by its label, since the numbers of channels and chips differ between boards. The
voltage is read before and after the current (V-I-V) and averaged, so that a rail that sags while it is read gives no
bias to first order.

Resolution: the chip counts bus voltage in 8 mV and shunt voltage in 40 uV, which is 8 mA over the 5 mOhm of an Orin
Nano, so that one step of the current is 40 mW of a 5 V rail; hwmon's rounding to whole mV and mA adds nothing to that.
A window's mean over hundreds of readings is finer, since the load moves between steps.

Sources: Linux kernel documentation (ina3221, hwmon sysfs interface) and its driver; Texas Instruments' data sheet
SBOS576; the rails, and their shunts, from the kernel's device tree of the module (tegra234-p3767).
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from octopus_study.power import hwmon
from octopus_study.power.quantities import MicroWatt, MilliAmpere, MilliVolt, Watt
from octopus_study.power.source import PowerSource, Sample, SensorError

MODULE_RAIL = "VDD_IN"
# Rails that VDD_IN feeds. VDD_CPU_GPU_CV is one rail for CPU, GPU and accelerators together: it is not the GPU.
INNER_RAILS = ("VDD_CPU_GPU_CV", "VDD_SOC")
# The modules with a rail of that name are made for 40 W at most. The critical current may say less; where none is set,
# the chip's own default is the end of its range, which would let a power through that is four times too high.
MODULE_CEILING_UW = 60_000_000
# At 5 W, the worst case of the data sheet: gains 0.25 % each, offset 80 uV or 16 mA of 1 A; and a shunt of 1 %.
ACCURACY = 0.03


class Ina3221Source(PowerSource):
    """The rail that feeds the module, by its label; the first reading is made here. Tests give another root."""

    name = "ina3221"
    scope = "module_vdd_in"
    accuracy = ACCURACY
    interval_s = 0.009  # reading takes about a third of it

    def __init__(self, root: str | Path = "/") -> None:
        self._chips = hwmon.chips(Path(root), hwmon.INA3221)
        if not self._chips:
            others = hwmon.names(Path(root))
            raise SensorError("no such chip" + (f"; the board has {', '.join(others)}" if others else ""))
        self._chip, self._number = _the_channel(self._chips, MODULE_RAIL)
        self.read()

    def read(self) -> Sample:
        """Read voltage, current and voltage, and return their product."""
        start = time.monotonic_ns()
        power = _power(self._chip, self._number)
        end = time.monotonic_ns()
        return Sample((start + end) // 2, end - start, power, None)

    def limit(self) -> Watt:
        """Return the critical current times the voltage, but the ceiling of such modules where that is less or none."""
        voltage = hwmon.require_type(self._chip / f"in{self._number}_input", MilliVolt)
        ceiling = Watt.from_power(MicroWatt(MODULE_CEILING_UW, voltage.channel))
        critical = self._chip / f"curr{self._number}_crit"
        if not critical.exists():
            return ceiling
        current = hwmon.require_type(critical, MilliAmpere)
        return min(ceiling, Watt.from_product(voltage, current)) if current.value > 0 else ceiling

    def voltages(self) -> Mapping[str, MilliVolt]:
        """Return the bus voltages of all channels that are on."""
        found = {}
        for file in (chip / f"in{number}_input" for chip in self._chips for number in hwmon.INA3221_BUS):
            with suppress(SensorError):  # a channel that is off shows no number that could be mistaken
                found[f"{file.parent.name}/{file.name}"] = hwmon.require_type(file, MilliVolt)
        return found

    def parts(self) -> Mapping[str, Watt]:
        """Return the powers of the rails behind this one, where the board measures them."""
        found = {}
        for label in INNER_RAILS:
            places = _channels(self._chips, label)
            with suppress(SensorError):  # one that is off leaves the others to compare with
                if len(places) == 1:
                    found[label] = _power(*places[0])
        return found

    def facts(self) -> dict[str, Any]:
        """Return chip, channel and label."""
        read = f"in{self._number}_input x curr{self._number}_input, voltage before and after"
        return super().facts() | {"chip": self._chip.name, "channel": self._number, "rail": MODULE_RAIL, "read": read}


def _power(chip: Path, number: int) -> Watt:
    """Return V x I of a channel, with the voltage read before and after the current."""
    before = hwmon.require_type(chip / f"in{number}_input", MilliVolt)
    current = hwmon.require_type(chip / f"curr{number}_input", MilliAmpere)
    after = hwmon.require_type(chip / f"in{number}_input", MilliVolt)
    return Watt.mean((Watt.from_product(before, current), Watt.from_product(after, current)))


def _the_channel(chips: list[Path], rail: str) -> tuple[Path, int]:
    found = _channels(chips, rail)
    if len(found) == 1:
        return found[0]
    if found:
        places = ", ".join(f"{chip.name}/in{number}" for chip, number in found)
        raise SensorError(f"the label {rail} stands on {len(found)} channels ({places})", "rail-label")
    known = sorted({label for chip in chips for label in _labels(chip).values()})
    raise SensorError(f"no channel is labelled {rail}; labels: {', '.join(known) or 'none'}", "rail-label")


def _channels(chips: list[Path], rail: str) -> list[tuple[Path, int]]:
    return [(chip, number) for chip in chips for number, label in _labels(chip).items() if label == rail]


def _labels(chip: Path) -> dict[int, str]:
    """Return the labels by number of the channel; a label that can't be read is none."""
    found = {}
    for file in sorted(chip.glob("in*_label")):
        with suppress(SensorError, ValueError):
            found[int(file.name.removeprefix("in").removesuffix("_label"))] = hwmon.read_text(file)
    return found
