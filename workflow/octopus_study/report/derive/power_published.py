"""What follows from the published power tables alone: their ratios, and the symptom that tells the wrong table from the
right one."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from statistics import stdev

from octopus_study.power.lint import lint_file
from octopus_study.report.labels import PUBLISHED_POWER
from octopus_study.report.numbers import Number, make_number

# The table that multiplies voltage and current, and the one that took a voltage for a power.
TABLES = ("power", "power_voltage_misread")
LINTED = ("power_voltage_misread", "power_voltage_relabelled", "power")
ONE, MANY = PUBLISHED_POWER["published"], PUBLISHED_POWER["n-launches"]


def published_power_numbers(numbers: Iterable[Number]) -> Iterator[Number]:
    """Yield ``published.derived.<table>.n<count>.<name>`` for the time, power and energy of one launch over N, and for
    the whole table how much of the energy's ratio is not the time's, and what the results linter says of it.

    Energy is time x power throughout, since the wrong table prints no energies.
    """
    known = {number.id: number for number in numbers}
    for table in TABLES:
        yield from _table(table, known)
    yield from _idle(known)
    yield from _linted(known)


def _linted(known: dict[str, Number]) -> Iterator[Number]:
    """Yield the linter's verdict on each published power table, with the checks that refuse it."""
    for table in LINTED:
        first = known.get(f"published.{table}.n0.idle.power")
        if first is None:
            continue
        findings = lint_file(first.file)
        checks = ", ".join(dict.fromkeys(finding.check for finding in findings))
        text = f"refused ({checks})" if findings else "accepted"
        note = findings[0].message if findings else ""
        yield _derived(first, f"{table}.linter", "text", math.nan, note, text=text)


def _table(table: str, known: dict[str, Number]) -> Iterator[Number]:
    logs = []
    for n in counts(table, known):
        first = known[f"published.{table}.n{n}.{ONE}.time"]
        time, power = (_ratio(known, table, n, quantity) for quantity in ("time", "power"))
        logs.append(math.log(power))
        for name, unit, value in (
            ("time", "ratio", time),
            ("power", "ratio", power),
            ("energy", "ratio", time * power),
            ("time_saved", "fraction", 1 - time),
            ("energy_saved", "fraction", 1 - time * power),
            ("power_added", "fraction", power - 1),
            ("longer", "fraction", 1 / time - 1),
        ):
            yield _derived(
                first, f"{table}.n{n}.{name}", unit, value, f"{ONE} over {MANY}, energy = time x power"
            )
    if len(logs) > 1:
        note = "standard deviation over n of log(energy ratio / time ratio)"
        yield _derived(first, f"{table}.identity", "text", stdev(logs), note, text=f"{stdev(logs):.2g}")


def _idle(known: dict[str, Number]) -> Iterator[Number]:
    """Yield the highest power under load over idle of each table: below one is the plainest symptom."""
    for table in TABLES:
        idle = known.get(f"published.{table}.n0.idle.power")
        loads = [number for n in counts(table, known) for number in _powers(known, table, n)]
        if idle and loads:
            highest = max(number.value for number in loads) / idle.value
            yield _derived(idle, f"{table}.highest_load_over_idle", "ratio", highest, "highest load / idle")


def counts(table: str, known: Iterable[str]) -> list[int]:
    """Return the numbers of boxes of a published power table, ascending."""
    pattern = re.compile(rf"published\.{table}\.n(\d+)\.{ONE}\.time")
    return sorted(int(match[1]) for key in known if (match := pattern.fullmatch(key)))


def _powers(known: dict[str, Number], table: str, n: int) -> list[Number]:
    return [known[f"published.{table}.n{n}.{method}.power"] for method in (ONE, MANY)]


def _ratio(known: dict[str, Number], table: str, n: int, quantity: str) -> float:
    one, many = (known[f"published.{table}.n{n}.{method}.{quantity}"] for method in (ONE, MANY))
    return one.value / many.value


def _derived(
    source: Number, name: str, unit: str, value: float, note: str, text: str | None = None
) -> Number:
    origin = ("published", "jetson-orin-nano", "", source.source)
    return make_number(f"published.derived.{name}", origin, "all rows", unit, value, note=note, text=text)
