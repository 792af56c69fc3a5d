"""The runs that a report is made of: this machine's and the committed reference ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar

from octopus.errors import InputError
from octopus_study.errors import MeasureError
from octopus_study.measure.provenance import validate_provenance
from octopus_study.measure.rows import read_rows, require_distinct
from octopus_study.report.frame import HERE, SECOND, Key, Source

if TYPE_CHECKING:
    from pandas import DataFrame
    from pandas import Series as Samples
else:
    DataFrame = Samples = Any  # figures do without pandas, whose import takes longer than one of them

Role = Literal["here", "reference"]
_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Run:
    """One study on one machine."""

    scope: str  # first part of the ids of its numbers: ``here`` for this machine's own run, else the machine
    machine: str
    role: Role
    study: str
    source: str  # path of the CSV, as given
    rows: DataFrame  # result rows (:class:`octopus_study.measure.rows.Row`)
    provenance: dict[str, Any]  # what the run's JSON file says
    second: Run | None = None  # the study measured again, on another card or at another hour
    # what :func:`cached` made of the run
    kept: dict[tuple, list] = field(default_factory=dict, init=False, repr=False, compare=False)

    def key(self, workload: str = "", n: int | None = None, method: str = "", **columns: str) -> Key:
        """Return the key of one of its numbers; `columns` are those of :class:`Key` that follow."""
        return Key(self.scope, self.study, workload, n, slug(method), **columns)

    def fact_key(self, name: str) -> Key:
        """Return the key of a fact about the whole run."""
        return self.key(quantity=name)

    def from_rows(self, dataset: str, selector: str) -> Source:
        """Return what a number from chosen rows rests on."""
        return Source(self.role, dataset, self.source, selector, self.commit)

    @property
    def commit(self) -> str:
        """The commit that measured it, empty when the provenance doesn't say."""
        return str((self.provenance.get("git") or {}).get("commit") or "")

    @property
    def datasets(self) -> list[str]:
        """Names of the data sets in the rows, sorted."""
        return sorted(self.rows["dataset"].unique())

    @property
    def measured_on(self) -> str:
        """Day on which the run ended, as ISO date; empty when the provenance doesn't say."""
        return str(self.provenance.get("ended", ""))[:10]


def cached(
    make: Callable[Concatenate[Run, _Given], Iterable[_Made]],
) -> Callable[Concatenate[Run, _Given], list[_Made]]:
    """Let a function make its list of a run once, since several derivations read it and none changes what it holds."""

    @wraps(make)
    def kept(run: Run, *given: _Given.args, **named: _Given.kwargs) -> list[_Made]:
        key = (make, *given, *named.items())
        if key not in run.kept:
            run.kept[key] = list(make(run, *given, **named))
        return run.kept[key]

    return kept


def slug(identifier: str) -> str:
    """Make a method's name fit for one part of an id."""
    return identifier.replace("/", "-").replace(".", "-")


def load_runs(results_dir: str | Path | None, reference_dir: str | Path | None) -> list[Run]:
    """Read every study of this machine's run, which may be absent, and of each machine below `reference_dir`.
    `MeasureError` names each file whose rows are not those that were measured, or of which nothing says where they come
    from."""
    found = _tables(Path(results_dir), "here") if results_dir else []
    if reference_dir and Path(reference_dir).is_dir():
        for folder in sorted(path for path in Path(reference_dir).iterdir() if path.is_dir()):
            found += _tables(folder, "reference")
    runs, refused = [], []
    for path, role in found:
        try:
            runs.append(_with_second(read_run(path, role), path, role))
        except MeasureError as error:
            refused.append(str(error))
    if refused:
        raise MeasureError(
            f"{len(refused)} of {len(found)} results can't be reported. {' '.join(refused)} Measure these studies "
            "again, or put the files back as they were."
        )
    if not runs:
        places = filter(None, (results_dir, reference_dir))
        raise InputError(
            f"No results to report: there is no <study>.csv in {' or '.join(map(str, places))}. Measure first "
            "(`octopus measure`), or pass a folder with results."
        )
    return runs


def _with_second(run: Run, path: Path, role: Role) -> Run:
    again = path.parent / SECOND / path.name
    if not again.exists():
        return run
    return replace(run, second=replace(read_run(again, role), scope=run.scope, machine=run.machine))


def _tables(folder: Path, role: Role) -> list[tuple[Path, Role]]:
    return [(path, role) for path in sorted(folder.glob("*.csv"))]


def read_run(path: Path, role: Role = "here") -> Run:
    """Read the rows of a study, which must be those of its provenance."""
    provenance = validate_provenance(path.with_suffix(".json"))
    rows = _rows(path)
    if provenance["results"] is None or provenance["results"]["file"] != path.name:
        raise MeasureError(f"{path.with_suffix('.json')} is no provenance of {path.name}.")
    studies = sorted({provenance["study"], *rows["study"]})
    if studies != [path.stem]:
        raise MeasureError(f"{path} and its provenance are of the studies {', '.join(studies)}.")
    require_distinct(rows, str(path))
    folder = path.parent.name
    return Run(HERE if role == HERE else folder, folder, role, path.stem, path.as_posix(), rows, provenance)


def _rows(path: Path) -> DataFrame:
    """Read result rows; texts and names are plain objects, of which small groups are made much faster."""
    rows = read_rows(path)
    rows = rows.astype({name: object for name in rows.columns if rows[name].dtype == "str"})
    return rows.set_axis(rows.columns.astype(object), axis=1)
