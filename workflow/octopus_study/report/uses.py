"""Where a number is used: the lines of the paper's text, claims, tables, and figures.

Text is read, not run: an id that is put together from pieces is found by the piece that it begins with, so a line may
be named that in the end shows another number of the same kind.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

from octopus_study.measure._files import atomic_text
from octopus_study.report import outputs
from octopus_study.report.frame import Frame, Key, Number
from octopus_study.report.paper import prose
from octopus_study.report.series import Series

_QUOTED = re.compile(r'"\.?([\w-]+(?:\.[\w-]+)+)[._]?"')  # an id, or the beginning of one
_LEAST = 3  # parts of a beginning that names numbers of one kind


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
    """Yield ``file:line`` of every place in the paper's text that may show a number: one that has its id, whole or as
    far as the text's functions add the rest, with its machine, with what stands for that, or without."""
    machine, _, rest = identifier.partition(".")
    aliases = (alias for alias, of in frame.aliases.items() if of == machine)
    found = _quoted(paper_dir)
    places: list[tuple[int, str]] = []
    for name in dict.fromkeys((identifier, rest, *(f"{alias}.{rest}" for alias in aliases))):
        parts = name.split(".")
        for count in range(min(_LEAST, len(parts)), len(parts) + 1):
            places += found.get(".".join(parts[:count]), ())
    yield from (place for _, place in sorted(set(places)))


@cache
def _quoted(paper_dir: Path) -> dict[str, list[tuple[int, str]]]:
    """Return the ids, and beginnings of ids, that stand in the paper's text, with the places in their order."""
    found: dict[str, list[tuple[int, str]]] = {}
    for path in prose(paper_dir):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for match in _QUOTED.finditer(line):
                found.setdefault(match[1], []).append((len(found), f"{path.as_posix()}:{number}"))
    return found


def in_tables(number: Number, frame: Frame) -> list[str]:
    """Return the tables that look a number up."""
    return [name for name, ids in _read(frame)["tables"].items() if number.id in ids]


def in_figures(number: Number, frame: Frame) -> list[str]:
    """Return the figures that look a number up."""
    return [name for name, ids in read_by_figures(frame).items() if number.id in ids]


def read_by_figures(frame: Frame) -> dict[str, set[str]]:
    """Return the ids that each figure looks up."""
    return _read(frame)["figures"]


@lru_cache(maxsize=1)
def _read(frame: Frame) -> dict[str, dict[str, set[str]]]:
    """Return the ids that each table and each figure looks up.

    All of them are made to know it, which takes seconds: ``uses.json`` beside the numbers keeps them for as long as
    these, and the code of the report, are the same.
    """
    numbers = frame.folder / "numbers.csv" if frame.folder else None
    if numbers is None or not numbers.is_file():
        return _sets(_looked_up(frame))
    code = sorted(Path(__file__).parent.rglob("*.py"))
    of = hashlib.sha256(b"".join(path.read_bytes() for path in (numbers, *code))).hexdigest()
    kept = numbers.with_name("uses.json")
    with suppress(OSError, ValueError, KeyError):
        known = json.loads(kept.read_text(encoding="utf-8"))
        if known["of"] == of:
            return _sets(known["found"])
    found = _looked_up(frame)
    with suppress(OSError), atomic_text(kept) as stream:  # a build that may only be read is no reason to say nothing
        json.dump({"of": of, "found": found}, stream)
    return _sets(found)


def _sets(found: dict[str, dict[str, list[str]]]) -> dict[str, dict[str, set[str]]]:
    return {kind: {name: set(ids) for name, ids in of.items()} for kind, of in found.items()}


def _looked_up(frame: Frame) -> dict[str, dict[str, list[str]]]:
    figures = {name: partial(outputs.figure_of, name) for name in outputs.figures()}
    return {
        kind: {name: sorted(watch(make, frame)[1].seen) for name, make in makers.items()}
        for kind, makers in (("tables", outputs.tables_of_numbers()), ("figures", figures))
    }


def watch(make: Callable[[Frame], Any], frame: Frame) -> tuple[Any, Watched]:
    """Return what is made of numbers, and what was looked up meanwhile."""
    watched = Watched(frame)
    return make(watched), watched
