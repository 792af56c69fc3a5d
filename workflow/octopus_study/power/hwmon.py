"""Reading hwmon files: the name of a file decides the unit of its number, and nothing else does.

The kernel's hwmon interface fixes the units: ``in*_input`` is millivolts, ``curr*_input`` milliamperes,
``power*_input`` microwatts. A file that is read here gives that type, so that a voltage
file can't give a power whatever a caller believes it to be. What can't be read is a `SensorError`.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from octopus_study.power.quantities import Channel, MicroWatt, MilliAmpere, MilliVolt, Reading
from octopus_study.power.source import SensorError

R = TypeVar("R", bound=Reading)
_KINDS = {"in": MilliVolt, "curr": MilliAmpere, "power": MicroWatt}
_NAME = re.compile(r"(in|curr|power)(\d+)_(input|average|crit|max)")
# The driver numbers the bus voltages of an INA3221 in1 to in3, in millivolts, and its currents curr1 to curr3. Its
# in4 to in6 are shunt voltages and in7 their sum, in microvolts; curr4 is the sum of the currents: rails of no number.
INA3221 = "ina3221"
INA3221_BUS = (1, 2, 3)


def read_text(file: Path) -> str:
    """Return the text of a sysfs file; `SensorError` where it can't be read, or is empty."""
    try:
        text = file.read_text(encoding="ascii", errors="replace").strip()
    except PermissionError:
        raise SensorError(f"{file} may not be read by this user: give read permission on it") from None
    except OSError as error:
        raise SensorError(f"{file} can't be read ({error.strerror or error})") from None
    if not text:
        raise SensorError(f"{file} is empty")
    return text


def read_integer(file: Path) -> int:
    """Return the integer in a sysfs file; `SensorError` where it holds something else."""
    text = read_text(file)
    if re.fullmatch("-?[0-9]+", text) is None:
        raise SensorError(f"{file} holds {text[:40]!r}, not an integer")
    return int(text)


def read(file: Path) -> Reading:
    """Read one file of a hwmon chip into the type that its name dictates; its channel is the chip's folder and the
    number in that name. Shunt voltages and sums over channels of an INA3221, and channels that are off, are a
    `SensorError`."""
    match = _NAME.fullmatch(file.name)
    if match is None:
        raise SensorError(f"{file}: hwmon has no quantity of that name", "typed-units")
    kind, number, chip = match[1], int(match[2]), file.parent
    if kind in ("in", "curr"):
        if number not in INA3221_BUS and chip_name(chip) == INA3221:
            what = "a shunt voltage in microvolts" if kind == "in" else "the sum of the chip's currents"
            raise SensorError(f"{file} is {what}, and belongs to no rail", "shunt-channel")
        require_enabled(chip, number)
    return _KINDS[kind](read_integer(file), Channel(chip.name, number))


def require_type(file: Path, wanted: type[R]) -> R:
    """Read a file that must give a quantity of one kind; `SensorError` where it gives another."""
    found = read(file)
    if not isinstance(found, wanted):
        raise SensorError(f"{file} is in {found.unit}, not in {wanted.unit}", "typed-units")
    return found


def require_enabled(chip: Path, number: int) -> None:
    """Refuse a channel whose ``in*_enable`` says 0: it repeats the last value that it had."""
    switch = chip / f"in{number}_enable"
    if switch.exists() and read_integer(switch) == 0:
        raise SensorError(f"{switch} is 0: the channel is switched off", "enabled")


def chip_name(chip: Path) -> str:
    """Return the driver's name of a chip, empty where it gives none."""
    try:
        return read_text(chip / "name")
    except SensorError:
        return ""


def chips(root: Path, driver: str) -> list[Path]:
    """Return the folders of all chips of a driver below ``<root>/sys/class/hwmon``, in order of their numbers."""
    found = [folder for folder in _folders(root) if chip_name(folder) == driver]
    return sorted(found, key=lambda folder: (len(folder.name), folder.name))


def names(root: Path) -> list[str]:
    """Return the drivers' names of all chips."""
    return sorted({chip_name(folder) for folder in _folders(root)} - {""})


def _folders(root: Path) -> Iterable[Path]:
    return (root / "sys" / "class" / "hwmon").glob("hwmon*")
