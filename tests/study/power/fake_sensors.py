"""Healthy fakes of the two kinds of sensor: files and an NVML that follow the watts that a test sets."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

BOARD_MV = 4992
STEP_MV, STEP_MA = 8, 8  # the chip's 8 mV, and its 40 µV over the module's 5 mΩ
INNER_SHARES = {"VDD_CPU_GPU_CV": 0.45, "VDD_SOC": 0.2}


class JetsonTree:
    """hwmon files of a Jetson Orin Nano: VDD_IN, VDD_CPU_GPU_CV and VDD_SOC on one INA3221. `root` stands for ``/``;
    `shared` says whether another process reads while this one writes."""

    def __init__(self, root: Path, chip: str = "hwmon3", shared: bool = True) -> None:
        self.root, self.shared = root, shared
        self.chip = root / "sys" / "class" / "hwmon" / chip
        self.chip.mkdir(parents=True)
        self.write("name", "ina3221")
        for number, label in enumerate(("VDD_IN", *INNER_SHARES), start=1):
            self.write(f"in{number}_label", label)
            self.write(f"in{number}_enable", 1)
            self.write(f"curr{number}_crit", 8000)
        self.write("in7_label", "sum of shunt voltages")
        self.set_watts(5.73)

    def write(self, name: str, value: object) -> None:
        _write(self.chip / name, value, self.shared)

    def set_watts(self, watts: float) -> None:
        """Let the module draw so much, in the steps of the chip; the rails behind draw their shares."""
        total = 0
        for number, share in enumerate((1.0, *INNER_SHARES.values()), start=1):
            millivolts = STEP_MV * round((BOARD_MV - 2 * watts - 8 * number) / STEP_MV)
            milliamperes = STEP_MA * round(watts * share * 1e6 / millivolts / STEP_MA)
            total += milliamperes
            self.write(f"in{number}_input", millivolts)
            self.write(f"curr{number}_input", milliamperes)
            self.write(f"in{number + 3}_input", milliamperes * 5)  # µV over 5 mΩ
        self.write("curr4_input", total)
        self.write("in7_input", total * 5)


def _write(file: Path, value: object, shared: bool) -> None:
    """Write a file; where it is shared at once, as sysfs gives it, so that a reader never sees half of it."""
    content = f"{value}\n".encode("ascii")
    if shared or not file.exists():
        new = file.with_name(f".{file.name}")
        new.write_bytes(content)
        new.replace(file)
        return
    # To replace or to empty a file takes many times as long, and a bench in simulated time writes thousands.
    with file.open("r+b", buffering=0) as stream:
        stream.write(content)
        stream.truncate()


class NvmlError(Exception):
    """Like the binding's own."""


class FakeBoard:
    """Stands in for ``pynvml`` and one GPU board, which draws so many watts, and whose counter counts them. `broken` is
    by a function's name the message with which it fails."""

    NVML_FI_DEV_POWER_INSTANT = 186

    def __init__(self, watts: float = 125.0, limit_mw: int = 700_000, instant: bool = True) -> None:
        self.watts, self.limit_mw, self.instant = watts, limit_mw, instant
        self.counter_mj = 2_421_335
        self.mig = (0, 0)
        self.broken: dict[str, str] = {}
        self._rest = 0.0

    def add_joules(self, joules: float) -> None:
        whole, self._rest = divmod(joules * 1e3 + self._rest, 1)
        self.counter_mj += int(whole)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvmlDeviceGet"):
            raise AttributeError(name)

        def call(device: Any, fields: Sequence[int] = ()) -> Any:
            if name in self.broken:
                raise NvmlError(self.broken[name])
            known, milliwatts = self.instant and fields == [self.NVML_FI_DEV_POWER_INSTANT], round(self.watts * 1e3)
            field = SimpleNamespace(nvmlReturn=0 if known else 3, value=SimpleNamespace(uiVal=known * milliwatts))
            answers = {"TotalEnergyConsumption": self.counter_mj, "MigMode": self.mig, "PowerUsage": milliwatts}
            answers |= {"EnforcedPowerLimit": self.limit_mw, "FieldValues": [field]}
            return answers[name.removeprefix("nvmlDeviceGet")]

        return call
