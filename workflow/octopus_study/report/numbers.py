"""``numbers.csv``: every number that a figure, a table, a claim or the paper shows, with where it comes from.

An id is read from left to right: ``<scope>.<study>.<workload>.n<count>.<method>.<quantity>.<layer>`` is a
median over blocks, and one more part names what was derived from it (``.speedup_over_published``,
``.per_object`` …). The scope is ``here`` for this machine's run, the machine for a reference run
(``nvidia-h200``), and ``published`` for typed values (``published.<table>.<keys>.<quantity>``). The rows
``alias.gpu`` and ``alias.cpu`` name the reference machines that the paper means by ``gpu.`` and ``cpu.``, so
its text needs no machine's name.
"""

from __future__ import annotations

import csv
import difflib
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from octopus.errors import InputError
from octopus_study.measure._files import atomic_text
from octopus_study.report.text import interval_text, quantity_text


class Number(NamedTuple):
    """One number and its origin; `value`, `low` and `high` are NaN where there is none.

    Attributes
    ----------
    id : str
    role : str
        ``here``, ``reference`` or ``published``.
    machine, dataset : str
    value, low, high : float
        `low` and `high` are the 95 % interval of a measured value, or the published range.
    unit, text : str
        `text` is the value as a reader sees it, with its unit.
    note : str
        What the reader must know: ``unavailable: why``, ``different: why``, or how the value was derived.
    source, selector : str
        The CSV and how its rows were chosen.
    """

    id: str
    role: str
    machine: str
    dataset: str
    value: float
    low: float
    high: float
    unit: str
    text: str
    note: str
    source: str
    selector: str

    @property
    def interval(self) -> str:
        """The interval as text, empty where there is none."""
        return interval_text(self.value, self.low, self.high, self.unit)

    @property
    def synthetic(self) -> bool:
        """Whether the number rests on generated data."""
        return "synthetic" in self.dataset


def make_number(
    identifier: str,
    origin: tuple[str, str, str, str],
    selector: str,
    unit: str,
    value: float,
    low: float = math.nan,
    high: float = math.nan,
    *,
    text: str | None = None,
    note: str = "",
) -> Number:
    """Make a number; `origin` is (role, machine, dataset, source) and `text` follows from the value unless
    given."""
    role, machine, dataset, source = origin
    shown = quantity_text(value, unit) if text is None else text
    return Number(identifier, role, machine, dataset, value, low, high, unit, shown, note, source, selector)


class Numbers:
    """The numbers by id, with aliases of scopes resolved."""

    def __init__(self, numbers: Iterable[Number]) -> None:
        self._by_id: dict[str, Number] = {}
        for number in numbers:
            if number.id in self._by_id:
                raise InputError(f"Two numbers have the id {number.id!r}: {number.selector}.")
            self._by_id[number.id] = number
        self.aliases = {
            number.id.removeprefix("alias."): number.text
            for number in self._by_id.values()
            if number.id.startswith("alias.")
        }

    @classmethod
    def read(cls, path: str | Path) -> Numbers:
        """Read ``numbers.csv``.

        Raises
        ------
        InputError
            The file is absent or has other columns.
        """
        if not Path(path).is_file():
            raise InputError(f"No numbers at {path}: run `octopus report numbers` first.")
        with open(path, newline="", encoding="utf-8") as stream:
            reader = csv.DictReader(stream)
            if tuple(reader.fieldnames or ()) != Number._fields:
                raise InputError(f"{path} has the columns {reader.fieldnames}, not {list(Number._fields)}.")
            return cls(_from_record(record) for record in reader)

    def write(self, path: str | Path) -> Path:
        """Write ``numbers.csv``, whole or not at all."""
        with atomic_text(Path(path)) as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(Number._fields)
            writer.writerows([_cell(value) for value in number] for number in self)
        return Path(path)

    def __iter__(self) -> Iterator[Number]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, identifier: str) -> bool:
        return self.resolve(identifier) in self._by_id

    def __getitem__(self, identifier: str) -> Number:
        try:
            return self._by_id[self.resolve(identifier)]
        except KeyError:
            near = difflib.get_close_matches(self.resolve(identifier), self._by_id, n=3)
            raise InputError(
                f"There is no number {identifier!r}. Nearest: {', '.join(near) or 'none'}."
            ) from None

    def get(self, identifier: str) -> Number | None:
        """Return the number, or None where there is none or where it was unavailable."""
        number = self._by_id.get(self.resolve(identifier))
        return number if number is not None and math.isfinite(number.value) else None

    def value(self, identifier: str) -> float:
        """Return the value, NaN where there is none."""
        number = self.get(identifier)
        return math.nan if number is None else number.value

    def text(self, identifier: str, default: str = "") -> str:
        """Return the text of a number or fact, `default` where there is none."""
        number = self._by_id.get(self.resolve(identifier))
        return default if number is None else number.text

    def matching(self, pattern: str) -> list[tuple[re.Match[str], Number]]:
        """Return the numbers whose whole id matches a regular expression, with the match."""
        compiled = re.compile(pattern)
        pairs = ((compiled.fullmatch(number.id), number) for number in self)
        return [(match, number) for match, number in pairs if match]

    def scopes(self, study: str) -> list[str]:
        """Return the scopes that have numbers of a study: this machine's first, then reference GPUs, then
        CPUs."""
        found = {match[1] for match, _ in self.matching(rf"([^.]+)\.{study}\.measured_on")}
        return sorted(
            found, key=lambda scope: (scope != "here", self.text(f"{scope}.machine.kind") != "gpu", scope)
        )

    def resolve(self, identifier: str) -> str:
        """Replace an alias of a scope, such as ``gpu``, by the scope that it stands for."""
        scope, dot, rest = identifier.partition(".")
        return f"{self.aliases.get(scope, scope)}{dot}{rest}"


def build_numbers(
    results_dir: str | Path | None,
    reference_dir: str | Path | None,
    published_dir: str | Path,
    out: str | Path,
) -> Path:
    """Derive every number from the result rows and the published tables, and write ``numbers.csv``.

    Parameters
    ----------
    results_dir, reference_dir : path, optional
        As in :func:`octopus_study.report.runs.load_runs`.
    published_dir : path
        ``data/published``.
    out : path
        The CSV to write.

    Raises
    ------
    InputError
        There is nothing to report, or two numbers got the same id.
    """
    from octopus_study.report.derive import derive_all
    from octopus_study.report.derive.against_published import compared_numbers
    from octopus_study.report.derive.published import derived_numbers, published_numbers
    from octopus_study.report.runs import load_runs

    measured = list(derive_all(load_runs(results_dir, reference_dir)))
    published = list(published_numbers(published_dir))
    known = [*measured, *published, *derived_numbers(published)]
    return Numbers([*known, *compared_numbers(Numbers(known))]).write(out)


def _from_record(record: dict[str, str]) -> Number:
    floats = {key: float(record[key]) if record[key] else math.nan for key in ("value", "low", "high")}
    return Number(**(record | floats))


def _cell(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return repr(float(value)) if math.isfinite(value) else ""
