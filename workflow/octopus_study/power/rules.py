"""The rules between a sensor and an energy, and the ways to misread a sensor that each of them stops.

A number meets them in the order of its life: a file is parsed into a type, a source is opened, the power-on test sees
it follow a known load, a window is cut out of a trace, and a stored table is read again. `power_on` and `of_tables`
enter the predicates of the last two big stages here; errors name the rule that refused a number. `page` makes
docs/power_checks.md, and the tests inject each misreading and demand that its rule refuses it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

PARSE, OPEN, POWER_ON, WINDOW, TABLE = "parse", "open", "power-on", "window", "table"
STAGES = {
    PARSE: "When a file is parsed",
    OPEN: "When a source is opened",
    POWER_ON: "In the power-on test, before any energy",
    WINDOW: "When a window is cut out of a trace",
    TABLE: "When a stored table is read again",
}
INA3221, NVML, CUT, STORED = "INA3221", "NVML", "a window", "a stored table"


class Misreading(NamedTuple):
    """One way to take something else for a power: where the tests inject it, and what is wrong."""

    sensor: str
    id: str
    what: str


class Rule(NamedTuple):
    """What must hold, at which stage first, what it stops, and the known misreadings of that kind."""

    id: str
    stage: str
    holds: str
    stops: str
    misreadings: tuple[Misreading, ...]


RULES = (
    Rule("typed-units", PARSE, "Watts come from a power, from V x I, or from an energy counter", "another unit", (
        Misreading(INA3221, "voltage-as-power", "in1_input, millivolts, taken as milliwatts"),
        Misreading(INA3221, "current-as-power", "curr1_input, milliamperes, taken as milliwatts"),
        Misreading(INA3221, "power-as-voltage", "a power taken as the voltage of V x I"),
        Misreading(INA3221, "voltage-file-as-current", "V x V: in1_input in the place of curr1_input"),
        Misreading(STORED, "volts-in-the-column", "millivolts in a column of powers"),
    )),
    Rule("same-channel", PARSE, "V and I are of one channel of one chip", "the current of a neighbour", (
        Misreading(INA3221, "neighbour-current", "V of channel 1 times I of channel 2"),
        Misreading(INA3221, "neighbour-chip", "V and I of the same channel number of two chips"),
    )),
    Rule("shunt-channel", PARSE, "A bus voltage is no shunt voltage", "in4 to in7 of an INA3221, microvolts", (
        Misreading(INA3221, "shunt-as-bus", "the rail's label on in4, a shunt voltage in microvolts"),
        Misreading(INA3221, "sum-of-shunts", "the rail's label on in7, the sum of the shunt voltages"),
    )),
    Rule("enabled", OPEN, "The channel is enabled", "the last value of a channel that is switched off", (
        Misreading(INA3221, "channel-disabled", "a channel that is switched off yet shows numbers"),
    )),
    Rule("rail-label", OPEN, "The rail's label stands on exactly one channel", "a rail guessed by its number", (
        Misreading(INA3221, "label-missing", "no channel is labelled VDD_IN"),
        Misreading(INA3221, "label-twice", "two channels are labelled VDD_IN"),
    )),
    Rule("readable", OPEN, "Readings succeed, at opening and in nine of ten later", "a sensor that only initialises", (
        Misreading(INA3221, "current-missing", "the rail has a voltage and no current"),
        Misreading(INA3221, "current-empty", "the file of the current is empty"),
        Misreading(INA3221, "current-no-number", "the file of the current holds a word"),
        Misreading(INA3221, "current-forbidden", "the file of the current may not be read"),
        Misreading(NVML, "initialises-only", "NVML initialises, then supports no reading"),
        Misreading(NVML, "drops-out", "every third reading fails"),
    )),
    Rule("plausible-range", POWER_ON, "Power is above its floor and at most 1.15 times the limit", "a scale wrong", (
        Misreading(INA3221, "current-zero", "a current that couldn't be converted is reported as 0"),
        Misreading(NVML, "zero-for-failed", "every third reading is reported as 0"),
        Misreading(NVML, "thousand-fold", "microwatts and microjoules in the place of milli"),
        Misreading(NVML, "thousandth", "watts and joules in the place of milli"),
    )),
    Rule("sibling-voltage", POWER_ON, "No voltage beside it shows the same number", "a voltage named power", (
        Misreading(INA3221, "episode", "a driver reports the millivolts of the 5 V rail as power"),
        Misreading(INA3221, "core-voltage", "a driver reports a core voltage as power; it follows load"),
    )),
    Rule("hierarchy", POWER_ON, "A rail draws at least what the rails behind it draw", "labels that are swapped", (
        Misreading(INA3221, "labels-swapped", "the labels VDD_IN and VDD_CPU_GPU_CV are swapped"),
    )),
    Rule("counter-monotonic", POWER_ON, "The energy counter never goes back", "a counter that was reset", (
        Misreading(NVML, "counter-reset", "the counter starts anew, as when a driver is loaded"),
    )),
    Rule("distinct-values", POWER_ON, "At least ten different values were seen", "a frozen or modelled value", (
        Misreading(INA3221, "frozen-board", "every file repeats its first number"),
        Misreading(NVML, "constant", "one value, whatever the board does"),
        Misreading(NVML, "by-state", "a model with one value per performance state"),
        Misreading(CUT, "freezes-later", "the power stands still from the power-on test's end on"),
    )),
    Rule("rises", POWER_ON, "Each load raises power by 10 % and 5 sigma", "whatever doesn't follow the device", (
        Misreading(INA3221, "other-rail", "VDD_IN stands on a rail that the module doesn't load"),
        Misreading(NVML, "other-gpu", "another GPU of the machine, idle, in the warm air of this one"),
    )),
    Rule("load-above-idle", POWER_ON, "Each load draws more than any idle phase", "a baseline that drifts", (
        Misreading(NVML, "not-alone", "another program works on the board at first, then ends"),
        Misreading(STORED, "voltage-table", "the published table of millivolts"),
        Misreading(STORED, "voltage-table-relabelled", "its successor, all rows below idle"),
    )),
    Rule("comes-back", POWER_ON, "After a load at least 80 % of its rise is gone", "a quantity that adds up", (
        Misreading(NVML, "leak", "what grows with work and partly stays, such as memory in use"),
    )),
    Rule("counter-agrees", POWER_ON, "Counter and integral of power agree within 5 %", "two devices, two units", (
        Misreading(NVML, "counter-elsewhere", "power of one GPU, energy counter of another"),
        Misreading(NVML, "counter-frozen", "the counter stands still beside a live power"),
    )),
    Rule("power-on-test", WINDOW, "An energy needs the proof that this sensor passed the power-on test",
         "energies of a sensor that nobody saw follow a load", (
        Misreading(CUT, "no-test", "an energy is asked for without a power-on test"),
        Misreading(CUT, "test-of-another", "the module's energies by the test of its GPU"),
        Misreading(STORED, "no-record", "energies without the record of a power-on test"),
    )),
    Rule("idle-drift", WINDOW, "Idle before and after is within 5 %", "net energies against a moving baseline", (
        Misreading(CUT, "moving-idle", "net of an idle power that drifted by 10 % meanwhile"),
    )),
    Rule("identity", TABLE, "Energy is not a constant times time", "a power that is none, whatever its origin", (
        Misreading(STORED, "power-by-name", "thermal design power times time"),
    )),
    Rule("scope", TABLE, "All powers of a table are the power of one thing", "powers of two scopes in one column", (
        Misreading(STORED, "two-scopes", "idle of the module beside loads of its GPU"),
    )),
    Rule("missing-not-zero", TABLE, "A missing value says why, and is no 0", "a failed reading as a small power", (
        Misreading(STORED, "silent-gap", "a value is missing and nothing says why"),
    )),
    Rule("power-times-time", TABLE, "Energy is power times time within 2 %", "columns of different runs", (
        Misreading(STORED, "power-of-another-run", "powers that were measured on another day"),
    )),
    Rule("same-window", TABLE, "Time, frames and energy are of one window", "a time and an energy of two runs", (
        Misreading(STORED, "time-of-another-run", "times that were measured without the sampler"),
    )),
    Rule("trace-agrees", TABLE, "The stored trace gives the stored energy again", "energies that no sensor saw", (
        Misreading(STORED, "trace-of-another-run", "a trace that was not taken in these windows"),
    )),
    Rule("window-length", TABLE, "Windows last 5 s and 50 updates", "energies between two updates of the sensor", (
        Misreading(STORED, "short-windows", "windows of 3 s"),
    )),
    Rule("frame-rate", TABLE, "Paced frames come at their rate", "energies at a rate that wasn't kept", (
        Misreading(STORED, "late-frames", "25 frames/s, published as energies at 30"),
    )),
    Rule("window-count", TABLE, "Each arm has five windows", "a single lucky window", (
        Misreading(STORED, "few-windows", "three windows per arm"),
    )),
    Rule("net-of-idle", TABLE, "Net is gross less the measured idle", "an idle power from elsewhere", (
        Misreading(STORED, "idle-from-elsewhere", "net of an idle power that was not measured"),
    )),
)  # fmt: skip
IDS = tuple(rule.id for rule in RULES)
# The predicates, by rule: of the evidence of a power-on test, and of a stored table.
JUDGES: dict[str, Callable] = {}
LINTS: dict[str, Callable] = {}
_Predicate = TypeVar("_Predicate", bound=Callable)


def _entering(predicates: dict[str, Callable]) -> Callable[[str], Callable[[_Predicate], _Predicate]]:
    def of(rule: str) -> Callable[[_Predicate], _Predicate]:
        if rule not in IDS or rule in predicates:
            raise KeyError(rule)
        return lambda predicate: predicates.setdefault(rule, predicate)

    return of


power_on, of_tables = _entering(JUDGES), _entering(LINTS)
_PAGE = """\
# Checks between a sensor and an energy

<!-- Written by `octopus report power-checks` from octopus_study/power/rules.py. Do not edit. -->

A published table once held the millivolts of a supply rail as milliwatts, so that the energy it saved was nothing but
the time, and no program objected. Here every number passes the checks below on its way from a sensor's file to a
table, and no option switches one off. Where a check fails, `unavailable: <reason>` stands in place of the energy. The
reason names the check, unless there is simply no such sensor or it can't be read.

`tests/study/power/test_misreadings.py` injects every misreading of the second table into a healthy sensor and demands
that the named check refuses it. It and `test_lint.py` beside it also take each check away in turn and demand that a
misreading then gets through, so that no check stands here for show.

## The checks

| Check | Stage | What must hold | Stops |
| :--- | :--- | :--- | :--- |
{rules}

## What they stop

| Misreading | Injected in | What is wrong | Stopped by |
| :--- | :--- | :--- | :--- |
{misreadings}
"""


def page() -> str:
    """Return docs/power_checks.md."""
    rules = [f"| `{one.id}` | {STAGES[one.stage]} | {one.holds} | {one.stops} |" for one in RULES]
    misread = [
        f"| `{each.id}` | {each.sensor} | {each.what} | `{rule.id}` |" for rule in RULES for each in rule.misreadings
    ]
    return _PAGE.format(rules="\n".join(rules), misreadings="\n".join(misread))
