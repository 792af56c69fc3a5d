"""Digests of all that the report makes of the committed references: one line per deriving function, study, table,
figure and of the claims. ``python tests/golden/digests.py`` renews ``digests.tsv``; its diff is what a change changes.

Values are digested with nine digits, so that another processor's last digit is no change. Words are digested where a
reader sees them: in tables and figures.
"""

import csv
import hashlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from matplotlib import pyplot
from matplotlib.figure import Figure
from matplotlib.text import Text

from octopus_study.report import build, outputs
from octopus_study.report.claims import judge_all
from octopus_study.report.frame import Frame, Number
from octopus_study.report.tables.writers import typst

STORED = Path(__file__).with_name("digests.tsv")


class Digest(NamedTuple):
    """What one part of the report comes to: how many values it has, and the digest of all of them."""

    kind: str
    name: str
    count: int
    digest: str


def stored() -> list[Digest]:
    with open(STORED, newline="", encoding="utf-8") as stream:
        return [Digest(kind, name, int(count), digest) for kind, name, count, digest in _body(stream)]


def _body(stream: Iterable[str]) -> list[list[str]]:
    return list(csv.reader(stream, delimiter="\t"))[1:]


def made(root: Path, report: Path | None = None) -> list[Digest]:
    """Return the digests of a report of the committed references, and build its numbers unless it is there."""
    with TemporaryDirectory() as folder:
        numbers = (report or Path(folder)) / "numbers.csv"
        if report is None:
            build.build_numbers(None, root / "data/reference", root / "data/published", numbers)
        frame = Frame.read(numbers)
        judgements = judge_all(frame, root / "config/claims.yaml")
        tables = outputs.tables_of(frame, judgements)
        return [
            *_numbers(frame),
            *(_digest("table", name, typst(name, table).splitlines()) for name, table in sorted(tables.items())),
            *(_digest("figure", name, _drawn(name, frame)) for name in sorted(outputs.figures())),
            _digest("claims", "all", (_line(*one[:1], *one[4:9], one.verdict) for one in judgements)),
        ]


def _numbers(frame: Frame) -> Iterator[Digest]:
    of_functions: dict[str, list[str]] = {}
    of_studies: dict[str, list[str]] = {}
    for number in frame:
        line = _line(number.id, *map(_rounded, (number.value, number.low, number.high)), number.text)
        of_functions.setdefault(number.function.removeprefix("octopus_study.report."), []).append(line)
        of_studies.setdefault(_part(number), []).append(line)
    for kind, parts in (("function", of_functions), ("study", of_studies)):
        yield from (_digest(kind, name, sorted(lines)) for name, lines in sorted(parts.items()))


def _part(number: Number) -> str:
    return f"{number.machine}.{number.study}" if number.study else number.machine


def _drawn(name: str, frame: Frame) -> Iterator[str]:
    """Yield what a figure shows: lines, marks, bars and words of each of its axes."""
    figure: Figure = outputs.figure_of(name, frame)[0]
    for axes in figure.axes:
        for line in axes.lines:
            yield _line("line", *map(_rounded, np.ravel(np.asarray(line.get_xydata(), float))))
        for patch in axes.patches:
            yield _line("patch", *map(_rounded, patch.get_path().get_extents(patch.get_patch_transform()).bounds))
        for collection in axes.collections:
            points = np.asarray(collection.get_offsets(), float)
            yield _line("marks", *map(_rounded, np.ravel(points)))
    yield from (text for part in figure.findobj(Text) if (text := part.get_text()))
    pyplot.close(figure)


def _rounded(value: float) -> str:
    return f"{value:.9g}"


def _line(*parts: object) -> str:
    return "\t".join(map(str, parts))


def _digest(kind: str, name: str, lines: Iterable[str]) -> Digest:
    lines = list(lines)
    return Digest(kind, name, len(lines), hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16])


if __name__ == "__main__":
    found = made(Path(__file__).parents[2])  # before the file is emptied: a checkout may lack the references
    with open(STORED, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
        writer.writerow(Digest._fields)
        writer.writerows(found)
    sys.exit(0)
