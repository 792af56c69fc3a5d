"""Earlier runs of a reference machine: what its speed-ups and its shares of a bound were in each of them.

``data/reference/past_runs.csv`` is made from the history of this repository (`octopus report past`): every version
of a study's rows that was once committed under ``data/reference`` is taken through the same derivation as today's, and
those are kept. Nothing in it is typed.
"""

from __future__ import annotations

import csv
import logging
import statistics
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from octopus_study.errors import MeasureError
from octopus_study.measure._files import atomic_text
from octopus_study.report import studies
from octopus_study.report.frame import Key, Number, Source, make_number
from octopus_study.report.history import version, versions
from octopus_study.report.measured import comparisons
from octopus_study.report.runs import Run, read_run
from octopus_study.report.selector import either
from octopus_study.report.text import quantity_text, range_text

log = logging.getLogger(__name__)

FILE = "past_runs.csv"  # in the folder of the references
_KEPT = {"speedup": "runs", "share": "runs_of_share"}  # what is kept, and the name of its spread


class Past(NamedTuple):
    """A ratio of an earlier run.

    Attributes
    ----------
    number : str
        Id of today's number that it is an earlier value of.
    value, low, high : float
        With its interval over blocks.
    ended : str
        When the run ended.
    commit, stored : str
        The commit that measured it, and the one whose tree holds the rows; their beginnings.
    sha256 : str
        Of the file of the rows; its beginning.
    """

    number: str
    value: float
    low: float
    high: float
    ended: str
    commit: str
    stored: str
    sha256: str


def write_past(reference_dir: str | Path) -> Path:
    """Derive the ratios of all earlier runs from the repository's history and write them.

    Raises
    ------
    MeasureError
        `reference_dir` isn't in a git repository with its history.
    """
    folder = Path(reference_dir)
    rows = [row for path in sorted(folder.glob("*/*.csv")) for row in _past_of(path)]
    with atomic_text(folder / FILE) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(Past._fields)
        writer.writerows([_cell(value) for value in row] for row in rows)
    return folder / FILE


def read_past(path: Path) -> list[Past]:
    """Read earlier runs; none where there is no such file.

    Raises
    ------
    MeasureError
        The file has other columns.
    """
    if not path.is_file():
        return []
    with open(path, newline="", encoding="utf-8") as stream:
        reader = csv.reader(stream)
        header = tuple(next(reader, ()))
        if header != Past._fields:
            raise MeasureError(f"{path} has the columns {list(header)}, not {list(Past._fields)}.")
        return [Past(row[0], *map(float, row[1:4]), *row[4:]) for row in reader]


def past_spreads(runs: list[Run], numbers: Iterable[Number]) -> Iterator[Number]:
    """Yield, for every ratio that earlier runs of a machine have too, the least and the greatest of all runs; then per
    study and layer how far speed-ups, and shares of a bound, moved between runs."""
    file = next((Path(run.source).parents[1] / FILE for run in runs if run.role == "reference"), Path(FILE))
    earlier: dict[str, list[Past]] = {}
    for past in read_past(file):
        earlier.setdefault(past.number, []).append(past)
    moved: dict[Key, list[tuple[Number, list[Past]]]] = {}
    for number in numbers:
        if number.id in earlier and number.derived in _KEPT and number.known:
            yield _spread(number, earlier[number.id], file.as_posix())
            key = Key(number.machine, number.study, quantity=_KEPT[number.derived], layer=number.layer)
            moved.setdefault(key, []).append((number, earlier[number.id]))
    for key, together in moved.items():
        yield from _moves(key, together, file.as_posix())


def _spread(number: Number, earlier: list[Past], file: str) -> Number:
    values = [*(past.value for past in earlier), number.value]
    low, high = min(values), max(values)
    listing = ", ".join(f"{past.ended[:16]}: {quantity_text(past.value, number.unit)}" for past in earlier)
    text = f"{len(values)} runs: {range_text(low, high, number.unit)}"
    note = (
        f"least and greatest of the machine's runs, each with the code of its commit; earlier ones {listing}"
    )
    key = number.key.derive(_KEPT[number.derived], number.other)
    source = _source(number, file, either([number.selector, f"number={number.id}"]))
    return make_number(key, source, number.unit, number.value, low, high, text=text, note=note)


def _moves(key: Key, together: list[tuple[Number, list[Past]]], file: str) -> Iterator[Number]:
    """Yield by what factor the greatest of each ratio's runs exceeds the least, and how often the last two runs'
    intervals exclude each other."""
    factors, disjoint = [], []
    for number, earlier in together:
        values = [*(past.value for past in earlier), number.value]
        last = earlier[-1]
        factors.append(max(values) / min(values))
        disjoint.append(last.high < number.low or number.high < last.low)
    earlier_rows = f"number={key.machine}.{key.study}.*.{key.layer}.{together[0][0].derived}_*"
    source = _source(together[0][0], file, f"layer={key.layer}, unit=ms; or {earlier_rows}")
    runs = 1 + max(len(earlier) for _, earlier in together)
    note = f"greatest / least of a ratio's runs, over {len(together)} ratios"
    yield make_number(key, source, "count", float(runs), note="runs of the machine that are known")
    yield make_number(key.derive("median_factor"), source, "ratio", statistics.median(factors), note=note)
    yield make_number(key.derive("largest_factor"), source, "ratio", max(factors), note=note)
    share, note = (
        sum(disjoint) / len(disjoint),
        "of the ratios: this run's interval and the last one's exclude each other",
    )
    yield make_number(key.derive("disjoint"), source, "fraction", share, note=note)


def _source(number: Number, file: str, selector: str) -> Source:
    return Source(number.role, number.dataset, f"{number.file} and {file}", selector, number.commit)


def _past_of(path: Path) -> Iterator[Past]:
    """Yield the ratios of every committed version of a study's rows but the present one, the oldest first."""
    seen = {path.read_bytes()}
    for commit, _, rows in versions(path):
        record = version(path.with_suffix(".json"), commit)
        if record is None or rows in seen:
            continue
        seen.add(rows)
        with tempfile.TemporaryDirectory() as folder:
            old = Path(folder, path.parent.name, path.name)
            old.parent.mkdir()
            old.write_bytes(rows)
            old.with_suffix(".json").write_bytes(record)
            yield from _ratios(old, commit)


def _ratios(path: Path, stored: str) -> Iterator[Past]:
    try:
        run = read_run(path, "reference")
    except MeasureError as error:
        log.warning("%s of %s is left out: %s", path.name, stored[:10], error)
        return
    digest = run.provenance["results"]["sha256"]
    end = (run.provenance["ended"], run.commit[:10], stored[:10], digest[:12])
    for number in comparisons(run, studies.report_of(run.study)):
        if number.derived in _KEPT and number.known:
            yield Past(number.id, number.value, number.low, number.high, *end)


def _cell(value: str | float) -> str:
    return f"{value:.6g}" if isinstance(value, float) else value
