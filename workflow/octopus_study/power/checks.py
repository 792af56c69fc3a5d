"""The checks that stand between a sensor and an energy, each with the id that reasons, records and the docs use.

A number passes them in the order of its life: the parser gives it a type, a source is opened, the power-on test sees
it follow a known load, a window is cut out of a trace, and a stored table is read again. The list only names them;
`quantities` and the sources hold those of the first two stages, `judges` those of the power-on test, `energy` those of
a window and `lint` those of a table.
"""

from __future__ import annotations

from dataclasses import dataclass

PARSE, OPEN, POWER_ON, WINDOW, TABLE = "parse", "open", "power-on", "window", "table"
STAGES = (PARSE, OPEN, POWER_ON, WINDOW, TABLE)


@dataclass(frozen=True, slots=True)
class Check:
    """One check.

    Attributes
    ----------
    id : str
        Stable: reasons, provenance and the docs use it.
    stage : str
        One of `STAGES`, where it is made first.
    title : str
        What must hold, as a short sentence without a full stop.
    catches : str
        Which mistake it stops.
    """

    id: str
    stage: str
    title: str
    catches: str


CHECKS: tuple[Check, ...] = (
    Check(
        "typed-units", PARSE, "Watts come from a power, from V x I, or from an energy counter", "another unit"
    ),
    Check("same-channel", PARSE, "V and I are of one channel of one chip", "the current of a neighbour"),
    Check(
        "shunt-channel", PARSE, "A bus voltage is no shunt voltage", "in4 to in7 of an INA3221, microvolts"
    ),
    Check("enabled", OPEN, "The channel is enabled", "the last value of a channel that is switched off"),
    Check(
        "rail-label", OPEN, "The rail's label stands on exactly one channel", "a rail guessed by its number"
    ),
    Check(
        "readable",
        OPEN,
        "Readings succeed, at opening and in nine of ten later",
        "a sensor that only initialises",
    ),
    Check(
        "plausible-range",
        POWER_ON,
        "Power is above its floor and at most 1.15 times the limit",
        "a scale wrong",
    ),
    Check("sibling-voltage", POWER_ON, "No voltage beside it shows the same number", "a voltage named power"),
    Check(
        "hierarchy",
        POWER_ON,
        "A rail draws at least what the rails behind it draw",
        "labels that are swapped",
    ),
    Check("counter-monotonic", POWER_ON, "The energy counter never goes back", "a counter that was reset"),
    Check(
        "distinct-values", POWER_ON, "At least ten different values were seen", "a frozen or modelled value"
    ),
    Check(
        "rises", POWER_ON, "Each load raises power by 10 % and 5 sigma", "whatever doesn't follow the device"
    ),
    Check("load-above-idle", POWER_ON, "Each load draws more than any idle phase", "a baseline that drifts"),
    Check(
        "comes-back", POWER_ON, "After a load at least 80 % of its rise is gone", "a quantity that adds up"
    ),
    Check(
        "counter-agrees", POWER_ON, "Counter and integral of power agree within 5 %", "two devices, two units"
    ),
    Check(
        "power-on-test",
        WINDOW,
        "An energy needs the proof that this sensor passed the power-on test",
        "energies of a sensor that nobody saw follow a load",
    ),
    Check(
        "idle-drift", WINDOW, "Idle before and after is within 5 %", "net energies against a moving baseline"
    ),
    Check(
        "identity", TABLE, "Energy is not a constant times time", "a power that is none, whatever its origin"
    ),
    Check(
        "scope", TABLE, "A power's name says what it is the power of", "powers of two scopes in one column"
    ),
    Check(
        "missing-not-zero",
        TABLE,
        "A missing value says why, and is no 0",
        "a failed reading as a small power",
    ),
    Check("power-times-time", TABLE, "Energy is power times time within 2 %", "columns of different runs"),
    Check(
        "same-window", TABLE, "Time, frames and energy are of one window", "a time and an energy of two runs"
    ),
    Check(
        "trace-agrees", TABLE, "The stored trace gives the stored energy again", "energies that no sensor saw"
    ),
    Check(
        "window-length",
        TABLE,
        "Windows last 5 s and 50 updates",
        "energies between two updates of the sensor",
    ),
    Check("frame-rate", TABLE, "Paced frames come at their rate", "energies at a rate that wasn't kept"),
    Check("window-count", TABLE, "Each arm has five windows", "a single lucky window"),
    Check("net-of-idle", TABLE, "Net is gross less the measured idle", "an idle power from elsewhere"),
)
IDS = tuple(check.id for check in CHECKS)


def by_id(check: str) -> Check:
    """Return a check by its id."""
    return CHECKS[IDS.index(check)]
