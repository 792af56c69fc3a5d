"""Where a number is used: the lines of the paper's text, claims, cells of tables, and figures.

Text is read, not run: an id that is put together from pieces is looked for by its pieces, and one that a loop puts
together by any text in the place of the loop's name. So a line may be named that in the end shows another number of
the same kind, and none is missed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from octopus_study.report.frame import Frame, Key, Number
from octopus_study.report.outputs import figure_of, figures
from octopus_study.report.paper import prose
from octopus_study.report.series import Series
from octopus_study.report.studies import reports
from octopus_study.report.tables import overview
from octopus_study.report.tables.spec import Maker, make
from octopus_study.report.tables.writers import Table

# A call of the paper's functions -> what it adds to the id that it is given; `{over}` is its second argument.
_CALLS = {
    **dict.fromkeys(("num", "ci", "has", "measured", "time-or-why", "share"), ("",)),
    "best": (".best_peer", ".speedup_over_best_peer", ".verdict_over_best_peer"),
    **dict.fromkeys(("versus", "versus-like", "speedup"), (".speedup_over_{over}", ".verdict_over_{over}")),
    "takes": (".verdict_over_{over}",),
}
_CALL = re.compile(rf"(?<![\w-])({'|'.join(sorted(_CALLS, key=len, reverse=True))})\(")
_LET = re.compile(r"#?\blet ([\w-]+) = (?=[\w\"(])([^\n]*)")
_PIECE = re.compile(r'"(?P<text>[^"]*)"|(?P<name>[A-Za-z][\w-]*)')
_ANYTHING = r"[\w.-]+"
_DEPTH = 5  # a name that is made of names


class Watched(Frame):
    """The numbers of a frame, which remember which of them, and which series, were looked up."""

    def __init__(self, frame: Frame) -> None:
        self.folder, self.aliases = frame.folder, frame.aliases
        # Shared: they are of thousands, and there are dozens of tables and figures.
        self._by_id, self._index = frame._by_id, frame._index
        self.seen: set[str] = set()
        self.drawn: list[Series] = []

    def find(self, key: Key | str) -> Number | None:
        """As in :class:`Frame`."""
        self.seen.add(self.resolve(key))
        return super().find(key)

    def select(self, machine: str, study: str, **columns: Any) -> list[Number]:
        """As in :class:`Frame`."""
        numbers = super().select(machine, study, **columns)
        self.seen.update(number.id for number in numbers)
        return numbers

    def series(self, machine: str, study: str, name: str) -> Series | None:
        """As in :class:`Frame`."""
        found = super().series(machine, study, name)
        self.drawn += [found] if found else []
        return found


def in_text(identifier: str, frame: Frame, paper_dir: Path) -> Iterator[str]:
    """Yield ``file:line`` of every place in the paper's text that may show a number."""
    names = [identifier] + [
        f"{alias.partition('-')[0]}.{identifier.partition('.')[2]}"
        for alias, machine in frame.aliases.items()
        if identifier.startswith(f"{machine}.")
    ]
    found = _all_references(paper_dir)
    numbers = {number for name in names for number in found.by_text.get(name, ())}
    for length in found.lengths:
        for tail in {name[len(name) - length :] for name in names if len(name) >= length}:
            for one, places in found.by_tail.get(tail, {}).items():
                if any(one.fullmatch(name) for name in names):
                    numbers.update(places)
    yield from (found.places[number] for number in sorted(numbers))


class _References(NamedTuple):
    """All references of the paper's text, so that a number is told from those that none names at once.

    Attributes
    ----------
    places : list of str
        Places that show some, in the order of the text; `by_text` and `by_tail` count in it.
    by_text : dict
        Those of references that are an id.
    by_tail : dict
        Those of references that are ids of a kind, by what such ids end with: most ids end with none of these.
    lengths : set of int
        Of these ends: there are few, so that an id's own ends are looked up, instead of trying each.
    """

    places: list[str]
    by_text: dict[str, list[int]]
    by_tail: dict[str, dict[re.Pattern[str], list[int]]]
    lengths: set[int]


@cache
def _all_references(paper_dir: Path) -> _References:
    found = _References([], {}, {}, set())
    for path in prose(paper_dir):
        for line, pattern in _references(path):
            place, text = f"{path.as_posix()}:{line}", _unescaped(pattern.pattern)
            if re.escape(text) == pattern.pattern:
                found.by_text.setdefault(text, []).append(len(found.places))
            else:
                tail = _unescaped(re.split(r"\]\+|(?<!\\)\)", pattern.pattern)[-1])
                found.by_tail.setdefault(tail, {}).setdefault(pattern, []).append(len(found.places))
            found.places.append(place)
    found.lengths.update(map(len, found.by_tail))
    return found


def _unescaped(pattern: str) -> str:
    return re.sub(r"\\(.)", r"\1", pattern)


def _references(path: Path) -> list[tuple[int, re.Pattern[str]]]:
    """Return every reference of a source as its line and a pattern of ids."""
    source = path.read_text(encoding="utf-8")
    lets: dict[str, list[str]] = {}
    for match in _LET.finditer(source):
        lets.setdefault(match[1], []).append(match[2])
    found = []
    for call in _CALL.finditer(source):
        line = source.count("\n", 0, call.start()) + 1
        first, *others = _arguments(source[call.end() :])
        name, over = _pattern(first, lets), _pattern(others[0], lets) if others else _ANYTHING
        if call[1] == "versus-like":
            name = name.replace(r"\.octopus\.", re.escape(".octopus-image."))
        for suffix in _CALLS[call[1]]:
            added = re.escape(suffix).replace(re.escape("{over}"), over)
            found.append((line, re.compile(name + added)))
    return found


def _arguments(text: str) -> list[str]:
    """Return the arguments of a call from behind its bracket on."""
    parts, depth, start, quoted = [], 0, 0, False
    for place, char in enumerate(text):
        quoted ^= char == '"'
        if not quoted:
            depth += (char in "([{") - (char in ")]}")
            if depth < 0 or (char == "," and depth == 0):
                parts.append(text[start:place])
                start = place + 1
            if depth < 0:
                break
    return parts or [""]


def _pattern(expression: str, lets: dict[str, list[str]], depth: int = 0) -> str:
    """Return a pattern of the texts that an expression may be."""
    whole = ""
    for piece in _PIECE.finditer(expression):
        if piece["text"] is not None:
            whole += re.escape(piece["text"])
        elif piece["name"] in lets and depth < _DEPTH:
            values = dict.fromkeys(_pattern(value, lets, depth + 1) for value in lets[piece["name"]])
            whole += "".join(values) if len(values) == 1 else f"(?:{'|'.join(values)})"
        else:
            whole += _ANYTHING
    return whole or _ANYTHING


def in_tables(number: Number, frame: Frame) -> Iterator[str]:
    """Yield ``table, row, column`` of every cell that shows a number, and the captions that do."""
    for name, (table, ids) in _read_by_tables(frame).items():
        if number.id in ids and number.text:
            yield from (f"{name}: {place}" for place in _places(table, number))


@lru_cache(maxsize=1)
def _read_by_tables(frame: Frame) -> dict[str, tuple[Table, set[str]]]:
    """Return each table, and the ids that it looks up; kept, since all are made for one number."""
    made = {name: watch(maker, frame) for name, maker in _tables().items()}
    return {name: (table, watched.seen) for name, (table, watched) in made.items()}


def _tables() -> dict[str, Maker]:
    """Return what makes each table of numbers; those of claims show verdicts."""
    specs = (item for report in reports().values() for item in report.tables.items())
    return {"machines": overview.machines} | {name: partial(make, spec) for name, spec in specs}


def _places(table: Table, number: Number) -> Iterator[str]:
    # A cell may have the interval between the digits and their unit.
    digits = number.text.partition(" ")[0] if number.known else number.text
    section = ""
    for row in table.rows:
        if isinstance(row, str):
            section = f"{row}; "
            continue
        for head, cell in zip(table.header, row, strict=True):
            # Few cells have the digits, and only these are worth a pattern.
            if digits in cell and re.search(rf"(?<![\d.]){re.escape(digits)}(?![\d.]*\d)", cell):
                yield f"{section}{row[0]}, {head or 'first column'}"
    if number.text in table.caption:
        yield "caption"


def in_figures(number: Number, frame: Frame) -> Iterator[str]:
    """Yield the figures that look a number up."""
    yield from (name for name, ids in read_by_figures(frame).items() if number.id in ids)


@lru_cache(maxsize=1)
def read_by_figures(frame: Frame) -> dict[str, set[str]]:
    """Return the ids that each figure looks up; kept, since all are drawn for it."""
    from matplotlib import pyplot

    read = {}
    for name in figures():
        _, watched = watch(partial(figure_of, name), frame)
        pyplot.close("all")
        read[name] = watched.seen
    return read


def watch(make: Callable[[Frame], Any], frame: Frame) -> tuple[Any, Watched]:
    """Return what is made of numbers, and what was looked up meanwhile."""
    watched = Watched(frame)
    return make(watched), watched
