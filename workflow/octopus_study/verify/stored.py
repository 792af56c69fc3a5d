"""The stored rows themselves: those that were measured, complete, and of the form that rows have."""

import csv
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from octopus_study.errors import MeasureError
from octopus_study.measure import validate_rows
from octopus_study.power.lint import lint_file
from octopus_study.report.frame import PUBLISHED
from octopus_study.report.rows import rows_of
from octopus_study.report.selector import selects_rows
from octopus_study.verify.scene import Outcome, Scene


def digests(scene: Scene) -> Outcome:
    """The digest and the number of rows of each CSV against the provenance that was written with it."""
    files = _files(scene)
    return Outcome(len(files), [fault for path in files for fault in _changed(path)])


def _files(scene: Scene) -> list[Path]:
    own = scene.results.glob("*.csv") if scene.results else ()
    return sorted([*scene.paths.reference.rglob("*.csv"), *own])


def _changed(path: Path) -> Iterator[str]:
    record = path.with_suffix(".json")
    if not record.is_file():
        yield f"{path} has no provenance beside it"
        return
    written = json.loads(record.read_text(encoding="utf-8")).get("results") or {}
    if written.get("sha256") != hashlib.sha256(path.read_bytes()).hexdigest():
        yield f"{path} is not the one that {record.name} was written for"
    with open(path, newline="", encoding="utf-8") as stream:
        rows = sum(1 for _ in csv.reader(stream)) - 1
    if written.get("rows") != rows:
        yield f"{path} has {rows} rows, {record.name} says {written.get('rows')}"


def rows(scene: Scene) -> Outcome:
    """Each CSV against the schema of rows, and its powers against what a power can be."""
    files, faults = _files(scene), []
    for path in files:
        try:
            validate_rows(path)
            faults += [f"{path}: {finding}" for finding in lint_file(path)]
        except MeasureError as error:
            faults.append(str(error))
    return Outcome(len(files), faults, "files")


def selectors(scene: Scene) -> Outcome:
    """Each number that rests on rows: its selector takes some, and one alone of what was published."""
    count, faults = 0, []
    for number in scene.frame:
        if selects_rows(number.selector):
            count += 1
            found = sum(len(places) for _, places in rows_of(number))
            if not found or (number.role == PUBLISHED and number.study != "derived" and found != 1):
                faults.append(f"{number.id}: {number.selector!r} takes {found or 'no'} rows")
    return Outcome(count, faults)
