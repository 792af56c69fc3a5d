"""Which rows a number rests on, as a text that people read and programs follow.

A selector is one or several alternatives joined by ``"; or "``. Each is a list of conditions joined by ``", "``, which
rows must all satisfy: ``column=value``, ``column=value and value`` (any of them) or ``column!=value and value`` (none
of them); ``*`` in a value stands for any characters. ``all rows`` selects everything. No rows are selected by
``by rule``, a constant of this project, and by what begins with ``provenance``: the JSON beside the rows, and the
place in it.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from octopus.errors import InputError

ALL_ROWS = "all rows"
PROVENANCE = "provenance"
BY_RULE = "by rule"
_AND, _NEXT, _OR = " and ", ", ", "; or "


class Condition(NamedTuple):
    """What one column must be, or must not be."""

    column: str
    values: tuple[str, ...]
    wanted: bool = True

    def __str__(self) -> str:
        return f"{self.column}{'=' if self.wanted else '!='}{_AND.join(self.values)}"


def where(**columns: object) -> str:
    """Return the selector of rows whose columns have the given values, each a value or a sequence of them."""
    return _NEXT.join(str(Condition(name, _texts(value))) for name, value in columns.items())


def either(selectors: Iterable[str]) -> str:
    """Return the selector of all rows that any of some selectors takes; those that differ in one column are joined."""
    alternatives: list[tuple[Condition, ...]] = []
    for text in dict.fromkeys(selectors):
        for conditions in parse(text):
            _add(alternatives, conditions)
    return _OR.join(_NEXT.join(map(str, conditions)) for conditions in alternatives)


def selects_rows(selector: str) -> bool:
    """Say whether a number with this selector rests on rows."""
    return selector != BY_RULE and not selector.startswith(PROVENANCE)


def parse(selector: str) -> list[tuple[Condition, ...]]:
    """Return the alternatives of a selector of rows."""
    if selector == ALL_ROWS:
        return [()]
    return [tuple(map(_condition, part.split(_NEXT))) for part in selector.split(_OR)]


def values_of(selector: str, column: str) -> list[str]:
    """Return the values that a selector asks of a column, each once."""
    conditions = [one for part in parse(selector) for one in part] if selector and selects_rows(selector) else []
    return list(dict.fromkeys(v for one in conditions if one.column == column and one.wanted for v in one.values))


class Table:
    """Columns of texts of one CSV, all of one length, and which of its rows a selector takes; values are compared as
    texts."""

    def __init__(self, columns: Mapping[str, Sequence[object]]) -> None:
        self.columns = columns
        self.length = len(next(iter(columns.values()), ()))
        self._codes: dict[str, tuple[dict[str, int], np.ndarray]] = {}
        self._masks: dict[Condition, np.ndarray] = {}

    def rows(self, selector: str, one_of_several: bool = False) -> np.ndarray:
        """Return the indices of the rows that a selector takes, ascending; for `one_of_several` tables, alternatives on
        columns that this one hasn't are those of another."""
        chosen = np.zeros(self.length, bool)
        for conditions in parse(selector):
            if one_of_several and any(condition.column not in self.columns for condition in conditions):
                continue
            part = np.ones(self.length, bool)
            for condition in conditions:
                part &= self._mask(condition)
            chosen |= part
        return np.flatnonzero(chosen)

    def _mask(self, condition: Condition) -> np.ndarray:
        if condition not in self._masks:
            if condition.column not in self.columns:
                raise InputError(f"No column {condition.column!r} among {', '.join(self.columns)}.")
            codes, column = self._coded(condition.column)
            hits = [code for text, code in codes.items() if _matches(text, condition.values)]
            self._masks[condition] = np.isin(column, hits) == condition.wanted
        return self._masks[condition]

    def _coded(self, name: str) -> tuple[dict[str, int], np.ndarray]:
        if name not in self._codes:
            codes: dict[str, int] = {}
            column = [codes.setdefault(str(value), len(codes)) for value in self.columns[name]]
            self._codes[name] = codes, np.array(column, np.int32)
        return self._codes[name]


def _texts(value: object) -> tuple[str, ...]:
    several = isinstance(value, Iterable) and not isinstance(value, str)
    return tuple(map(str, value)) if several else (str(value),)


def _condition(text: str) -> Condition:
    column, sign, values = text.partition("=")
    if not sign or not column.rstrip("!").isidentifier():
        raise InputError(f"{text!r} is no condition on a column: a selector has column=value, {ALL_ROWS} …")
    return Condition(column.rstrip("!"), tuple(values.split(_AND)), not column.endswith("!"))


def _matches(text: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(text, one) if "*" in one else text == one for one in patterns)


def _add(alternatives: list[tuple[Condition, ...]], conditions: tuple[Condition, ...]) -> None:
    """Add an alternative, joined with the last one where both differ in the values of one column alone."""
    if alternatives and len(alternatives[-1]) == len(conditions):
        differing = [i for i, pair in enumerate(zip(alternatives[-1], conditions, strict=True)) if pair[0] != pair[1]]
        if len(differing) == 1:
            place = differing[0]
            old, new = alternatives[-1][place], conditions[place]
            if old.column == new.column and old.wanted and new.wanted:
                values = tuple(dict.fromkeys((*old.values, *new.values)))
                joined = (*conditions[:place], old._replace(values=values), *conditions[place + 1 :])
                alternatives[-1] = joined
                return
    alternatives.append(conditions)
