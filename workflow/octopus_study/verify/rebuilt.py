"""Everything built anew and compared with what was built: numbers, verdicts, tables, the paper's text, figures."""

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from octopus_study.report.build import for_authors
from octopus_study.report.claims import read_claims
from octopus_study.report.committed import comparable, stored
from octopus_study.report.frame import Number
from octopus_study.report.outputs import figures, tables_of, written
from octopus_study.report.paper import check_paper, prose, referenced_ids
from octopus_study.verify.scene import Outcome, Scene


def numbers(scene: Scene) -> Outcome:
    """Each number of ``numbers.csv``, derived anew from the rows, and its copy for the paper."""
    built, derived = scene.frame, scene.derived
    names = dict.fromkeys(number.id for frame in (built, derived) for number in frame)
    faults = [name for name in names if not _same(built.find(name), derived.find(name))]
    authors = scene.built / "numbers.json"
    copied = json.loads(authors.read_text(encoding="utf-8"))["numbers"]
    expected = for_authors(derived)["numbers"]
    for name in dict.fromkeys([*expected, *copied]):
        if name not in faults and copied.get(name) != list(expected.get(name, ())):
            faults.append(f"{name} (in {authors.name})")
    return Outcome(len(built), faults)


def _same(built: Number | None, derived: Number | None) -> bool:
    return bool(built and derived) and all(_equal(a, b) for a, b in zip(built, derived, strict=True))


def _equal(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or not (math.isfinite(a) or math.isfinite(b))  # what isn't finite has an empty cell
    return ("" if a is None else str(a)) == ("" if b is None else str(b))


def verdicts(scene: Scene) -> Outcome:
    """Each row of ``claims.csv``, decided anew by the rules."""
    built = {(one.claim_id, one.scope): one for one in read_claims(scene.built / "claims.csv")}
    decided = {(one.claim_id, one.scope): one for one in scene.judgements}
    names = dict.fromkeys([*decided, *built])
    faults = [" on ".join(name) for name in names if _texts(built.get(name)) != _texts(decided.get(name))]
    return Outcome(len(names), faults)


def _texts(row: Iterable[object] | None) -> list[str] | None:
    return None if row is None else [str(value) for value in row]


def tables(scene: Scene) -> Outcome:
    """Each cell of each table, made anew, in both formats."""
    count, faults = 0, []
    for name, table in tables_of(scene.derived, scene.judgements).items():
        count += sum(len(row) for row in table.rows if not isinstance(row, str))
        for file, text in written(name, table).items():
            faults += [f"{file}: {line}" for line in _differing(_read(scene.built / "tables" / file).decode(), text)]
    return Outcome(count, faults, "cells")


def _differing(stored: str, made: str) -> Iterator[str]:
    """Yield the lines that differ, as they are stored."""
    if stored != made:
        old, new = stored.splitlines(), made.splitlines()
        pairs = [line for line, other in zip(old, new, strict=False) if line != other]
        yield from pairs or [f"{len(old)} lines instead of {len(new)}"]


def text(scene: Scene) -> Outcome:
    """Each number that the paper's text names."""
    sources = (path.read_text(encoding="utf-8") for path in prose(scene.paths.paper))
    count = sum(len(referenced_ids(source)) for source in sources)
    return Outcome(count, check_paper(scene.paths.paper, scene.frame), "references")


def pictures(scene: Scene) -> Outcome:
    """Each figure that was drawn before, drawn anew and compared byte by byte; those of another version of matplotlib
    differ."""
    before = [path for name in figures() if (path := scene.paths.figures / f"{name}.png").is_file()]
    faults = [path.stem for path in before if (scene.drawn / path.name).read_bytes() != path.read_bytes()]
    return Outcome(len(before), faults, "" if before else "none was drawn before")


def committed(scene: Scene) -> Outcome:
    """The paper, figures and notebooks that are committed, made anew from the references and compared byte by byte."""
    places = stored(scene.paths.figures, scene.paths.paper, scene.paths.notebooks)
    if not comparable():
        return Outcome(0, [], "compared on Linux on x86-64 alone: other processors round pictures otherwise")
    made = {name: scene.committed / name for name in places}
    faults = [f"{path}: run make committed" for name, path in places.items() if _read(path) != _read(made[name])]
    return Outcome(len(places), faults)


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""
