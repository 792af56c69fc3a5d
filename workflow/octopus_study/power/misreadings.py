"""The ways to misread a power sensor that this artifact knows, and the check that stops each.

`tests/power/mutations.py` builds every one of them, and `docs/power_checks.md` lists them. Each was chosen so that it
would give rows that look like energies if nothing stopped it.
"""

from __future__ import annotations

from dataclasses import dataclass

INA3221, NVML, RAPL, WINDOW, TABLE = "INA3221", "NVML", "RAPL", "a window", "a stored table"


@dataclass(frozen=True, slots=True)
class Misreading:
    """One way to take something else for a power.

    Attributes
    ----------
    id : str
    sensor : str
        Where the mutation suite plants it.
    what : str
        What is wrong, as a phrase.
    check : str
        The id of the check that refuses it, and that its reason names.
    """

    id: str
    sensor: str
    what: str
    check: str


MISREADINGS: tuple[Misreading, ...] = (
    Misreading("voltage-as-power", INA3221, "in1_input, millivolts, taken as milliwatts", "typed-units"),
    Misreading("current-as-power", INA3221, "curr1_input, milliamperes, taken as milliwatts", "typed-units"),
    Misreading("power-as-voltage", INA3221, "a power taken as the voltage of V x I", "typed-units"),
    Misreading(
        "voltage-file-as-current", INA3221, "V x V: in1_input in the place of curr1_input", "typed-units"
    ),
    Misreading("neighbour-current", INA3221, "V of channel 1 times I of channel 2", "same-channel"),
    Misreading("neighbour-chip", INA3221, "V and I of the same channel number of two chips", "same-channel"),
    Misreading(
        "shunt-as-bus", INA3221, "the rail's label on in4, a shunt voltage in microvolts", "shunt-channel"
    ),
    Misreading(
        "sum-of-shunts", INA3221, "the rail's label on in7, the sum of the shunt voltages", "shunt-channel"
    ),
    Misreading("channel-disabled", INA3221, "a channel that is switched off yet shows numbers", "enabled"),
    Misreading("label-missing", INA3221, "no channel is labelled VDD_IN", "rail-label"),
    Misreading("label-twice", INA3221, "two channels are labelled VDD_IN", "rail-label"),
    Misreading("labels-swapped", INA3221, "the labels VDD_IN and VDD_CPU_GPU_CV are swapped", "hierarchy"),
    Misreading("current-missing", INA3221, "the rail has a voltage and no current", "readable"),
    Misreading("current-empty", INA3221, "the file of the current is empty", "readable"),
    Misreading("current-no-number", INA3221, "the file of the current holds a word", "readable"),
    Misreading("current-forbidden", INA3221, "the file of the current may not be read", "readable"),
    Misreading(
        "current-zero", INA3221, "a current that couldn't be converted is reported as 0", "plausible-range"
    ),
    Misreading("frozen-board", INA3221, "every file repeats its first number", "distinct-values"),
    Misreading(
        "episode", INA3221, "a driver reports the millivolts of the 5 V rail as power", "sibling-voltage"
    ),
    Misreading(
        "core-voltage",
        INA3221,
        "a driver reports a core voltage as power; it follows load",
        "sibling-voltage",
    ),
    Misreading("other-rail", INA3221, "VDD_IN stands on a rail that the module doesn't load", "rises"),
    Misreading("initialises-only", NVML, "NVML initialises, then supports no reading", "readable"),
    Misreading("drops-out", NVML, "every third reading fails", "readable"),
    Misreading("zero-for-failed", NVML, "every third reading is reported as 0", "plausible-range"),
    Misreading("thousand-fold", NVML, "microwatts and microjoules in the place of milli", "plausible-range"),
    Misreading("thousandth", NVML, "watts and joules in the place of milli", "plausible-range"),
    Misreading("other-gpu", NVML, "another GPU of the machine, idle, in the warm air of this one", "rises"),
    Misreading("constant", NVML, "one value, whatever the board does", "distinct-values"),
    Misreading("by-state", NVML, "a model with one value per performance state", "distinct-values"),
    Misreading("leak", NVML, "what grows with work and partly stays, such as memory in use", "comes-back"),
    Misreading(
        "not-alone", NVML, "another program works on the board at first, then ends", "load-above-idle"
    ),
    Misreading(
        "counter-reset", NVML, "the counter starts anew, as when a driver is loaded", "counter-monotonic"
    ),
    Misreading("counter-elsewhere", NVML, "power of one GPU, energy counter of another", "counter-agrees"),
    Misreading("counter-frozen", NVML, "the counter stands still beside a live power", "counter-agrees"),
    Misreading(
        "package-reset", RAPL, "the counter goes back, and not because it is full", "counter-monotonic"
    ),
    Misreading("package-forbidden", RAPL, "only root may read energy_uj", "readable"),
    Misreading("package-empty", RAPL, "energy_uj is empty", "readable"),
    Misreading(
        "package-frozen", RAPL, "the counter stands still, as in some virtual machines", "plausible-range"
    ),
    Misreading("no-test", WINDOW, "an energy is asked for without a power-on test", "power-on-test"),
    Misreading(
        "freezes-later", WINDOW, "the power stands still from the power-on test's end on", "distinct-values"
    ),
    Misreading("test-of-another", WINDOW, "the module's energies by the test of its GPU", "power-on-test"),
    Misreading("moving-idle", WINDOW, "net of an idle power that drifted by 10 % meanwhile", "idle-drift"),
    Misreading("voltage-table", TABLE, "the published table of millivolts", "load-above-idle"),
    Misreading("voltage-table-relabelled", TABLE, "its successor, all rows below idle", "load-above-idle"),
    Misreading("power-by-name", TABLE, "thermal design power times time", "identity"),
    Misreading("volts-in-the-column", TABLE, "millivolts in a column of powers", "typed-units"),
    Misreading("two-scopes", TABLE, "idle of the module beside loads of its GPU", "scope"),
    Misreading("no-record", TABLE, "energies without the record of a power-on test", "power-on-test"),
    Misreading("late-frames", TABLE, "25 frames/s, published as energies at 30", "frame-rate"),
    Misreading("silent-gap", TABLE, "a value is missing and nothing says why", "missing-not-zero"),
    Misreading("power-of-another-run", TABLE, "powers that were measured on another day", "power-times-time"),
    Misreading("time-of-another-run", TABLE, "times that were measured without the sampler", "same-window"),
    Misreading("trace-of-another-run", TABLE, "a trace that was not taken in these windows", "trace-agrees"),
    Misreading("short-windows", TABLE, "windows of 3 s", "window-length"),
    Misreading("few-windows", TABLE, "three windows per arm", "window-count"),
    Misreading("idle-from-elsewhere", TABLE, "net of an idle power that was not measured", "net-of-idle"),
)
