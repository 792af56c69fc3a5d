"""The energy counters of the processor packages, by the kernel's powercap interface (RAPL; AMD's too).

Each package counts microjoules in ``energy_uj`` and starts again at ``max_energy_range_uj``. A wrap is undone as long
as the counter is read at least once per range, which takes a minute at the least. By default only root may read them.

Method: Linux kernel documentation, power capping framework (``energy_uj`` may also be written to, which resets it);
Intel's manual, volume 3B, for the pace of the counter, about 1 ms. Neither Intel nor AMD states an accuracy. Within
one package the counter follows its activity; it knows nothing of memory, fans or the power supply.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from octopus_study.power import hwmon
from octopus_study.power.quantities import Channel, MicroJoule, MicroWatt, Watt
from octopus_study.power.source import PowerSource, Sample, SensorError

# The largest server processors are made for 500 W. Taken where the kernel gives no limit (AMD), or a higher one:
# firmware writes thousands of watts for "none".
PACKAGE_CEILING_UW = 600_000_000
ACCURACY = 0.05  # assumed, see above
# A package may exceed its limits for milliseconds, and its counter advances in steps; a reset misses by far more.
_WRAP_MARGIN, _WRAP_SECONDS = 2.0, 0.1


class _Package:
    """One package's counter, with its wraps undone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.range_uj = hwmon.read_integer(folder / "max_energy_range_uj")
        self.limit_uw = _limit(folder)
        self._turns = 0
        self._last = hwmon.read_integer(folder / "energy_uj")
        self._at_ns = time.monotonic_ns()

    def read(self, now_ns: int) -> int:
        """Return the counted microjoules; a step back that is no wrap is an error."""
        value = hwmon.read_integer(self.folder / "energy_uj")
        if value < self._last:
            self._check_wrap(value, now_ns)
            self._turns += 1
        self._last, self._at_ns = value, now_ns
        return self._turns * self.range_uj + value

    def _check_wrap(self, value: int, now_ns: int) -> None:
        """Refuse a step back that, taken as a wrap, would mean more power than the package may draw."""
        counted = value + self.range_uj - self._last
        seconds = max((now_ns - self._at_ns) * 1e-9, _WRAP_SECONDS)
        if counted / seconds > _WRAP_MARGIN * self.limit_uw:
            before, self._last, self._at_ns = self._last, value, now_ns
            raise SensorError(
                f"{self.folder / 'energy_uj'} went back from {before} to {value} µJ, which is no wrap at "
                f"{self.range_uj} µJ",
                "counter-monotonic",
            )


class RaplSource(PowerSource):
    """The sum of the machine's packages; their first readings are made here.

    Parameters
    ----------
    root : path
        Of the file system; tests give another.
    """

    name = "rapl"
    scope = "cpu_package"
    accuracy = ACCURACY

    def __init__(self, root: str | Path = "/") -> None:
        base = Path(root) / "sys" / "class" / "powercap"
        folders = [folder for folder in sorted(base.glob("intel-rapl:*")) if _is_package(folder)]
        if not folders:
            raise SensorError("no package counters")
        self._packages = [_Package(folder) for folder in folders]
        self._channel = Channel("+".join(folder.name for folder in folders), 0)
        self.read()

    def read(self) -> Sample:
        """Read all packages."""
        start = time.monotonic_ns()
        total = sum(package.read(time.monotonic_ns()) for package in self._packages)
        end = time.monotonic_ns()
        return Sample((start + end) // 2, end - start, None, MicroJoule(total, self._channel))

    def limit(self) -> Watt:
        """Return the sum of the packages' highest limits."""
        return Watt.from_power(MicroWatt(sum(each.limit_uw for each in self._packages), self._channel))

    def facts(self) -> dict[str, Any]:
        """Return which counters are read."""
        return super().facts() | {"packages": [package.folder.name for package in self._packages]}


def _is_package(folder: Path) -> bool:
    """Whether a zone is a whole package; its subdomains (core, uncore, dram) have a second number in their names."""
    return folder.name.count(":") == 1 and hwmon.chip_name(folder).startswith("package")


def _limit(folder: Path) -> int:
    """Return a package's highest limit in microwatts, below the ceiling: peak lies above short and long term."""
    found = []
    for file in (*folder.glob("constraint_*_power_limit_uw"), *folder.glob("constraint_*_max_power_uw")):
        with suppress(SensorError):  # some constraints have no limit; the others decide
            found.append(hwmon.read_integer(file))
    highest = max([value for value in found if value > 0], default=PACKAGE_CEILING_UW)
    return min(highest, PACKAGE_CEILING_UW)
