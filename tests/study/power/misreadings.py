"""Every misreading of the rule table as data: how it is injected in a healthy sensor, a window or a stored table.

Nothing here takes real time: the bench moves the clock, the device and the sensor together. `refusal` builds what was
injected, tests it if it is a bench, lints it if it is a table, and says which rule refused it.
"""

import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from defects import DEFECTS, constant_power, published
from fake_sensors import FakeBoard, JetsonTree
from synthetic_power import Machine

from octopus_study.errors import MeasureError
from octopus_study.power import hwmon
from octopus_study.power.choose import SourceSpec
from octopus_study.power.energy import WindowEnergy, idle_power, window_energy
from octopus_study.power.lint import lint_file
from octopus_study.power.quantities import MilliVolt, MilliWatt, Watt
from octopus_study.power.selftest import PassedTest, SelfTest, power_on_test
from octopus_study.power.source import PowerSource, Sample
from octopus_study.power.windows import Stretch, back_to_back, idle


class Bench(Machine):
    """A machine whose sampler reads a real source, which is opened when the sensor has moved once: `apply` is told on
    each beat the seconds since the beginning and whether the device works, and moves it."""

    def __init__(self, apply: Callable[[float, bool], None], open_source: Callable[[], PowerSource], **settings: int):
        super().__init__(**settings)
        self._apply = apply
        apply(0.0, False)
        self.source = open_source()
        self.scope = self.source.scope
        self.load = self.frame(40, 2 * self.idle_watts)

    def read(self) -> Sample:
        self._apply(self.seconds, self.watts > self.idle_watts)
        return replace(self.source.read(), at_ns=self.now_ns, took_ns=1_000_000)

    def test(self) -> SelfTest:
        return power_on_test(self.source, self.collect, self.load, clock=self)


def ripple(seconds: float, size: float) -> float:
    """Return a small signal that never repeats within a test, so that no run differs from another."""
    return size * (math.sin(17.3 * seconds) + math.sin(41.9 * seconds + 1.0)) / 2


class Device:
    """Draws idle or load watts, reached by an exponential within about a second."""

    def __init__(self, idle: float = 10.0, load: float = 30.0, lag_seconds: float = 0.2, noise: float = 0.05) -> None:
        self.idle, self.load, self.lag, self.noise = idle, load, lag_seconds, noise
        self.level, self.joules, self._at = idle, 0.0, 0.0

    def watts(self, seconds: float, working: bool) -> float:
        """Move to a time and return the power there."""
        passed, self._at = seconds - self._at, seconds
        target = self.load if working else self.idle
        self.level += (target - self.level) * (1 - math.exp(-passed / self.lag))
        watts = self.level + ripple(seconds, self.noise)
        self.joules += watts * passed
        return watts


Spoil = Callable[[JetsonTree, float], None]
Wire = Callable[[Path], Watt]
Injection = Callable[[Path, pytest.MonkeyPatch], object]
PUBLISHED = Path(__file__).parents[3] / "data" / "published"


def jetson(folder: Path, spoil: Spoil | None = None, wire: Wire | None = None) -> Bench:
    """Return a Jetson on the bench. `spoil` changes its files whenever they were written; `wire` is the program that
    makes a power of them."""
    tree, device = JetsonTree(folder, shared=False), Device(5.73, 8.7, noise=0.05)

    def apply(seconds: float, working: bool) -> None:
        watts = device.watts(seconds, working)
        tree.set_watts(watts)
        if spoil:
            spoil(tree, watts)

    # Writing the files is what takes the time of these tests.
    bench = Bench(apply, SourceSpec("ina3221", str(folder)).open, step_ns=40_000_000)
    if wire:
        bench.source.read = lambda: Sample(0, 0, wire(tree.chip), None)
        bench.source.read()  # a source reads once while it is made
    return bench


def board(device: Device | None = None, spoil=lambda board, seconds: None, instant: bool = True) -> Bench:
    """Return a GPU board on the bench, with an update each 100 ms; `spoil` changes what NVML then says."""
    device, fake = device or Device(125.5, 480.0, noise=1.5), FakeBoard(instant=instant)
    counted = 0.0

    def apply(seconds: float, working: bool) -> None:
        nonlocal counted
        watts = device.watts(seconds, working)
        if round(seconds * 1e3) % 100 == 0:
            fake.watts = watts
            fake.add_joules(device.joules - counted)
            counted = device.joules
            spoil(fake, seconds)

    return Bench(apply, lambda: SourceSpec("nvml").open(fake, "board"))


def current_forbidden(folder: Path, patch: pytest.MonkeyPatch) -> Bench:
    """A file answers as to a user who may not read it; tests may run as root, whom no mode stops."""
    healthy = Path.read_text

    def read_text(path: Path, *arguments: object, **options: object) -> str:
        if path.name == "curr1_input":
            raise PermissionError(13, "Permission denied", str(path))
        return healthy(path, *arguments, **options)

    patch.setattr(Path, "read_text", read_text)
    return jetson(folder)


def no_counter(fake: FakeBoard, seconds: float) -> None:
    fake.broken["nvmlDeviceGetTotalEnergyConsumption"] = "Not Supported"


HEALTHY: dict[str, Injection] = {
    "INA3221 of a Jetson": lambda folder, patch: jetson(folder),
    "NVML with instantaneous power": lambda folder, patch: board(),
    "NVML with averaged power alone": lambda folder, patch: board(instant=False),
    "NVML without a counter": lambda folder, patch: board(spoil=no_counter),
}


# Programs that wire the files of an INA3221 wrongly.
def as_power(name: str) -> Wire:
    return lambda chip: Watt.from_power(hwmon.read(chip / name))


def product(voltage: str, current: str) -> Wire:
    return lambda chip: Watt.from_product(hwmon.read(chip / voltage), hwmon.read(chip / current))


def neighbour_chip(chip: Path) -> Watt:
    """Volts of one chip, amperes of another, which is there once the first was found."""
    if not (chip.parent / "hwmon4").exists():
        shutil.copytree(chip, chip.parent / "hwmon4")
    return product("in1_input", "../hwmon4/curr1_input")(chip)


def named_a_power(channel: int) -> Wire:
    """A driver that names a voltage's number a power; the type can't know."""

    def wire(chip: Path) -> Watt:
        voltage = hwmon.require_type(chip / f"in{channel}_input", MilliVolt)
        return Watt.from_power(MilliWatt(voltage.value, voltage.channel))

    return wire


# What is wrong with the files of a board.
def without(*names: str) -> Spoil:
    return lambda tree, watts: [(tree.chip / name).unlink(missing_ok=True) for name in names] and None


def holding(**files: object) -> Spoil:
    return lambda tree, watts: [tree.write(name, content) for name, content in files.items()] and None


def relabelled(number: int) -> Spoil:
    """The module's label stands on a shunt channel, whose current the driver also shows."""

    def spoil(tree: JetsonTree, watts: float) -> None:
        without("in1_label")(tree, watts)
        tree.write(f"in{number}_label", "VDD_IN")
        shutil.copy(tree.chip / "curr1_input", tree.chip / f"curr{number}_input")

    return spoil


class Sometimes:
    """Does something at each `every`-th call, and tells it how many there were."""

    def __init__(self, every: int, does: Callable[[JetsonTree, int], None]) -> None:
        self.every, self.does, self.calls = every, does, 0

    def __call__(self, tree: JetsonTree, watts: float) -> None:
        self.calls += 1
        if self.calls % self.every == 0:
            self.does(tree, self.calls)


def inner_rail_is_voltage(tree: JetsonTree, watts: float) -> None:
    INNER(tree, watts)
    tree.write("in3_input", round(300 + 60 * watts))


INNER = without("in2_label", "in3_label")
# By misreading: what is wrong with the files, and how the program reads them, None where as it should.
JETSONS: dict[str, Callable[[], tuple[Spoil | None, Wire | None]]] = {
    "voltage-as-power": lambda: (None, as_power("in1_input")),
    "current-as-power": lambda: (INNER, as_power("curr1_input")),
    "power-as-voltage": lambda: (holding(power1_input=5_730_000), product("power1_input", "curr1_input")),
    "voltage-file-as-current": lambda: (None, product("in1_input", "in1_input")),
    "neighbour-current": lambda: (None, product("in1_input", "curr2_input")),
    "neighbour-chip": lambda: (None, neighbour_chip),
    "shunt-as-bus": lambda: (relabelled(4), None),
    "sum-of-shunts": lambda: (relabelled(7), None),
    "channel-disabled": lambda: (holding(in1_enable=0), None),
    "label-missing": lambda: (holding(in1_label="VDD_GPU_SOC", in2_label="VDD_CPU_CV", in3_label="VIN_SYS_5V0"), None),
    "label-twice": lambda: (holding(in3_label="VDD_IN"), None),
    "labels-swapped": lambda: (holding(in1_label="VDD_CPU_GPU_CV", in2_label="VDD_IN"), None),
    "current-missing": lambda: (without("curr1_input"), None),
    "current-empty": lambda: (holding(curr1_input=""), None),
    "current-no-number": lambda: (holding(curr1_input="<error>"), None),
    "current-zero": lambda: (Sometimes(20, lambda tree, _: tree.write("curr1_input", 0)), None),
    "frozen-board": lambda: (lambda tree, watts: tree.set_watts(5.73), None),
    "episode": lambda: (None, named_a_power(1)),
    "core-voltage": lambda: (inner_rail_is_voltage, named_a_power(3)),
    "other-rail": lambda: (Sometimes(1, lambda tree, calls: tree.set_watts(5.73 + ripple(0.02 * calls, 0.3))), None),
}


class Leak(Device):
    """Grows by 100 when work begins, and keeps 60 of it when the work ends."""

    starts, worked = 0, False

    def watts(self, seconds: float, working: bool) -> float:
        self.starts += working and not self.worked
        self.worked = working
        self.idle = 65.0 + 60.0 * self.starts
        self.load = self.idle + 40.0
        return super().watts(seconds, working)


class Shared(Device):
    def watts(self, seconds: float, working: bool) -> float:
        more = 100.0 if seconds < 10.0 else 0.0
        self.idle, self.load = 100.0 + more, 150.0 + more
        return super().watts(seconds, working)


def third(seconds: float) -> bool:
    """Whether this is a third of the updates, each 100 ms."""
    return round(10 * seconds) % 3 == 2


def all_refused(fake: FakeBoard, seconds: float) -> None:
    for name in ("TotalEnergyConsumption", "PowerUsage", "EnforcedPowerLimit", "FieldValues"):
        fake.broken[f"nvmlDeviceGet{name}"] = "Not Supported"


def setting(name: str, value: Callable[[FakeBoard, float], object]) -> Callable[[FakeBoard, float], None]:
    return lambda fake, seconds: setattr(fake, name, value(fake, seconds))


def counts(watts: float) -> Callable[[FakeBoard, float], None]:
    """A counter of something that draws so much."""
    return setting("counter_mj", lambda fake, seconds: 2_000_000 + round(1e3 * watts * seconds))


DEVICES: dict[str, Callable[[], Device]] = {
    "thousand-fold": lambda: Device(125.5e3, 480.0e3, noise=1.5e3),
    "thousandth": lambda: Device(0.1255, 0.480, noise=0.0015),
    "other-gpu": lambda: Device(70.0, 72.0, noise=0.3),
    "constant": lambda: Device(250.0, 250.0, noise=0.0),
    "by-state": lambda: Device(70.0, 300.0, lag_seconds=1e-6, noise=0.0),
    "leak": lambda: Leak(65.0, 105.0, noise=0.3),
    "not-alone": lambda: Shared(100.0, 150.0),
}
LOST = {"nvmlDeviceGetFieldValues": "GPU is lost"}
BOARDS: dict[str, Callable[[FakeBoard, float], None]] = {
    "initialises-only": all_refused,
    "drops-out": setting("broken", lambda fake, seconds: LOST if third(seconds) else {}),
    "zero-for-failed": setting("watts", lambda fake, seconds: 0.0 if third(seconds) else fake.watts),
    "counter-reset": setting("counter_mj", lambda fake, seconds: 0 if math.isclose(seconds, 10.5) else fake.counter_mj),
    "counter-elsewhere": counts(81.0),
    "counter-frozen": counts(0.0),
}


# Misuse of a sensor that is itself healthy: energies without its test, or net of an idle that moved.
def idle_window(bench: Bench, proof: PassedTest, scope: str = "gpu_board") -> WindowEnergy:
    """Return the energy of an idle window on the bench, of a trace that names a scope."""
    bench.collect()
    window = idle(Stretch(5.0, 2.0, 0.5), bench)
    return window_energy(window, replace(bench.collect(), scope=scope), proof)


def moving_idle(device: Device) -> object:
    bench = board(device)
    proof = bench.test().proof()
    before = idle_window(bench, proof)
    device.idle *= 1.1
    return idle_power(before, idle_window(bench, proof))


def freezes_later(folder: Path, patch: pytest.MonkeyPatch) -> object:
    still: list[float] = []

    def spoil(fake: FakeBoard, seconds: float) -> None:
        no_counter(fake, seconds)
        fake.watts = still[0] if still else fake.watts

    bench = board(spoil=spoil)
    proof = bench.test().proof()
    still.append(250.0)
    bench.sleep(0.2)
    bench.collect()
    window = back_to_back(bench.load, Stretch(5.0, 1.0, 0.5), bench)
    return window_energy(window, bench.collect(), proof)


# Misreadings that are a defect of a stored run.
STORED = {
    "volts-in-the-column": "millivolts in a power",
    "two-scopes": "idle of another scope",
    "no-record": "no record",
    "late-frames": "frames that come late",
    "silent-gap": "a gap without a reason",
    "power-of-another-run": "power of another run",
    "time-of-another-run": "time of another run",
    "trace-of-another-run": "trace of another run",
    "short-windows": "windows of three seconds",
    "few-windows": "four windows",
    "idle-from-elsewhere": "net of an idle from elsewhere",
}


INJECTIONS: dict[str, Injection] = {
    **{name: lambda folder, patch, how=how: jetson(folder, *how()) for name, how in JETSONS.items()},
    **{name: lambda folder, patch, make=make: board(make()) for name, make in DEVICES.items()},
    **{name: lambda folder, patch, spoil=spoil: board(spoil=spoil) for name, spoil in BOARDS.items()},
    "current-forbidden": current_forbidden,
    "no-test": lambda folder, patch: idle_window(board(), PassedTest("gpu_board")),
    "test-of-another": lambda folder, patch: idle_window(made := board(), made.test().proof(), "module_vdd_in"),
    "moving-idle": lambda folder, patch: moving_idle(Device(125.5, 480.0, noise=1.5)),
    "freezes-later": freezes_later,
    "voltage-table": lambda folder, patch: PUBLISHED / "power_voltage_misread.csv",
    "voltage-table-relabelled": lambda folder, patch: PUBLISHED / "power_voltage_relabelled.csv",
    "power-by-name": lambda folder, patch: published(constant_power(("a", "b"), (50, 500, 1000, 2000)), folder),
    **{name: lambda folder, patch, of=of: DEFECTS[of].run().write(folder) for name, of in STORED.items()},
}


def refusal(inject: Injection, folder: Path, patch: pytest.MonkeyPatch) -> tuple[str, str] | None:
    """Return the rule that refused what was injected and the reason; None where nothing did."""
    try:
        built = inject(folder, patch)
        if isinstance(built, Path):
            return next(iter(lint_file(built)), None)
        test = built.test() if isinstance(built, Bench) else None
    except MeasureError as error:
        return getattr(error, "check", "none"), str(error)
    return (test.failed[0], test.reason) if test is not None and test.failed else None
