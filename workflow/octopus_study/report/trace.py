"""``octopus trace ID``: where a number or a claim comes from, and where it is used."""

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

from octopus.errors import InputError
from octopus_study.names import AGAIN, CROP_METHODS
from octopus_study.report import uses
from octopus_study.report.claims import Claim, judge
from octopus_study.report.frame import HERE, PUBLISHED, SECOND, Frame, Number
from octopus_study.report.rows import AND, Row, rows_of
from octopus_study.report.selector import selects_rows, values_of

_PACKAGE = Path(__file__).resolve().parents[1]
_SHOWN_ROWS, _SHOWN_METHODS = 4, 4


def trace(identifier: str, frame: Frame, claims: Sequence[Claim], paper_dir: Path, claims_yaml: Path) -> Iterator[str]:
    """Yield lines on a number (its id may have ``gpu.`` or ``cpu.`` in the place of a machine), or on a claim and the
    numbers that decide it. `InputError` names near ones where there is no such number or claim."""
    by_id = {claim.id: claim for claim in claims}
    if identifier in by_id:
        yield from _of_claim(by_id[identifier], frame, claims_yaml, paper_dir)
        return
    number = frame.find(identifier)
    if number is None:
        known = [*by_id, *(number.id for number in frame)]
        near = difflib.get_close_matches(frame.resolve(identifier), known, n=5, cutoff=0.5)
        hint = f" Did you mean one of: {', '.join(near)}?" if near else ""
        raise InputError(f"There is no number and no claim {identifier!r}.{hint} All ids stand in numbers.csv.")
    decides = [claim.id for claim in claims if number.id in claim.ids(number.machine)]
    yield from _whole(number, frame, decides, paper_dir)


def all_traces(frame: Frame, claims: Sequence[Claim], paper_dir: Path, claims_yaml: Path) -> dict[str, list[str]]:
    """Return what :func:`trace` says of every number and every claim, by its id."""
    decided: dict[str, list[str]] = {}
    machines = dict.fromkeys(number.machine for number in frame)
    for claim in claims:
        for name in dict.fromkeys(name for machine in machines for name in claim.ids(machine)):
            decided.setdefault(name, []).append(claim.id)
    traces = {n.id: list(_whole(n, frame, decided.get(n.id, ()), paper_dir)) for n in frame}
    return traces | {one.id: list(_of_claim(one, frame, claims_yaml, paper_dir)) for one in claims}


def _whole(number: Number, frame: Frame, decides: Sequence[str], paper_dir: Path) -> Iterator[str]:
    """Yield lines on a number and on its uses; `decides` are the claims whose rules name it."""
    yield from _of_number(number, frame)
    yield from _uses(number, frame, decides, paper_dir)


def _of_number(number: Number, frame: Frame) -> Iterator[str]:
    yield number.id
    yield from _field("shown as", f"{number.precise} [{number.interval}]" if number.interval else number.text)
    if number.known:
        ends = f", {number.low:.7g} to {number.high:.7g}" if number.interval else ""
        yield from _field("value", f"{number.value!r}{ends} ({number.unit})")
    yield from _field("interval", _basis(number) if number.interval else "")
    yield from _field("note", number.note)
    yield from _field("data set", number.dataset)
    yield from _field("derived by", f"{number.function}, {_place_of(number.function)}")
    yield from _field("file", number.file)
    yield from _field("selector", number.selector)
    yield from _rows(number)
    yield from _methods(number)
    yield from recorded(number)
    for command in dict.fromkeys(_commands(number, frame)):
        yield from _field("made anew by", command)


def _basis(number: Number) -> str:
    """Say what an interval rests on."""
    processes = number.processes or 1
    how = f"over {processes} processes, by Student's t" if processes > 1 else "resampled" if number.resampled else ""
    one = "of one process: it does not hold another run" if number.of_one_process else ""
    blocks = f"{number.blocks} blocks" if number.blocks else ""
    return "; ".join(filter(None, (blocks, how, one)))


def _field(name: str, text: str) -> Iterator[str]:
    if text:
        yield f"  {name + ': ':<14}{text}"


def _rows(number: Number) -> Iterator[str]:
    found = rows_of(number)
    count = sum(len(places) for _, places in found)
    yield from _field("rows", f"{count}{f' of {len(found)} files' if len(found) > 1 else ''}" * bool(found))
    some = (rows[place] for rows, places in found for place in places[:_SHOWN_ROWS].tolist())
    yield from (f"    {_row(row)}" for row in islice(some, _SHOWN_ROWS))
    if count > _SHOWN_ROWS:
        last = next(rows[places[-1]] for rows, places in reversed(found) if len(places))
        yield f"    … and {count - _SHOWN_ROWS} more, up to {last.file}:{last.line}"


def _row(row: Row) -> str:
    left_out = ("study", "dataset", "source")
    cells = ", ".join(f"{name} {text}" for name, text in row.cells.items() if text and name not in left_out)
    return f"{row.file}:{row.line}  {cells}"


def _methods(number: Number) -> Iterator[str]:
    """Yield where the code of the methods stands whose rows these are."""
    if number.role == PUBLISHED or not selects_rows(number.selector):
        return
    names = values_of(number.selector, "method") or [number.method] * bool(number.method)
    for name in names[:_SHOWN_METHODS]:
        yield from _field("method", f"{name}, {_code_of(name, number.study)}")


@cache
def _code_of(method: str, study: str) -> str:
    """Return the place of a method's class, or the folder of the study that names it."""
    name = method.removesuffix(AGAIN)
    module, _, kind = next((row.target for row in CROP_METHODS if row.name == name), "").partition(":")
    if not module:
        return _short(_PACKAGE / f"studies/{study}")
    return _line_of(_PACKAGE / f"baselines/{module}.py", f"class {kind}(")


def recorded(number: Number) -> Iterator[str]:
    """Yield by which commit and command line the rows were measured, as the provenance beside them says; the commit
    alone where that isn't there."""
    known = [
        (git.get("commit") or number.commit, "with changes" if git.get("dirty") else "", git.get("reason"), command)
        for git, command in map(_provenance, number.file.split(AND))
    ]
    for commit, *said, command in known:
        yield from _field("measured at", commit and "; ".join(filter(None, (f"commit {commit}", *said))))
        yield from _field("measured by", command or "")


@cache
def _provenance(file: str) -> tuple[dict, str | None]:
    """Return what the provenance beside rows says of git, and the command line; nothing where there is none."""
    path = Path(file).with_suffix(".json")
    found = json.loads(path.read_text(encoding="utf-8")) if file and path.is_file() else {}
    return found.get("git") or {}, found.get("command")


@cache
def _line_of(path: Path, start: str) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return f"{_short(path)}:{next((i for i, line in enumerate(lines, 1) if line.startswith(start)), 1)}"


@cache
def _place_of(function: str) -> str:
    """Return file and line of a function by its dotted name."""
    module, _, name = function.rpartition(".")
    path = _PACKAGE.parent.joinpath(*module.split("."))
    return _line_of(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"), f"def {name}(")


def _short(path: Path) -> str:
    """Return a path of this package from the folder on that the repository calls it by."""
    return f"workflow/{path.resolve().relative_to(_PACKAGE.parent).as_posix()}"


def _commands(number: Number, frame: Frame) -> Iterator[str]:
    """Yield what measures the rows again on such a machine; the numbers then follow by `snakemake`."""
    if number.role == PUBLISHED:
        yield "nothing: it was typed from the source named in its note"
        return
    for file in number.file.split(AND):
        path = Path(file)
        here = number.role == HERE
        folder = path.parent.parent if path.parent.name == SECOND else path.parent
        machine = (frame.fact(HERE, "id") if here else None) or folder.name
        target = (
            path.as_posix() if here and path.parts[:2] == ("data", "results") else f"data/results/{machine}/{path.name}"
        )
        core = "--config effort=core " if here and "core" in path.parts else ""
        commit = f"git switch --detach {number.commit[:10]} && " if number.commit and AND not in number.commit else ""
        yield f"{commit}snakemake --cores all {core}--force {target}"


def _uses(number: Number, frame: Frame, decides: Sequence[str], paper_dir: Path) -> Iterator[str]:
    found = {
        "text": list(uses.in_text(number.id, frame, paper_dir)),
        "claims": decides,
        "tables": uses.in_tables(number, frame),
        "figures": uses.in_figures(number, frame),
    }
    for where, places in found.items():
        for place in dict.fromkeys(places):
            yield from _field(f"in {where}", place)
    if not any(found.values()):
        yield from _field("used", "nowhere but in numbers.csv")


def _of_claim(claim: Claim, frame: Frame, claims_yaml: Path, paper_dir: Path) -> Iterator[str]:
    lines = claims_yaml.read_text(encoding="utf-8").splitlines()
    named = re.compile(rf"\bid: {re.escape(claim.id)}(,|$)")
    starts = (i for i, text in enumerate(lines, 1) if named.search(text))
    yield claim.id
    yield from _field("claim", claim.claim)
    yield from _field("source", f"{claim.source}; {claim.kind}")
    yield from _field("rule at", f"{claims_yaml.as_posix()}:{next(starts, 1)}, of {claim.dated or 'no date'}")
    yield from (line for place in _said(claim.id, paper_dir) for line in _field("in text", place))
    for judgement in judge(claim, frame):
        why = f" ({judgement.reason})" if judgement.reason else ""
        said = f"{judgement.verdict}, {judgement.measured}; rule {judgement.rule}{why}"
        yield from _field(judgement.machine, said)
        for identifier in claim.ids(judgement.scope):
            number = frame.find(identifier)
            yield from ("", *(_of_number(number, frame) if number else [f"{identifier}: this run has no such number"]))


def _said(identifier: str, paper_dir: Path) -> Iterator[str]:
    """Yield the places of the paper's text that name a claim."""
    pattern = re.compile(rf'"{re.escape(identifier)}"')
    for path in sorted(paper_dir.rglob("*.typ")):
        source = path.read_text(encoding="utf-8")
        yield from (
            f"{path.as_posix()}:{source.count(chr(10), 0, one.start()) + 1}" for one in pattern.finditer(source)
        )
