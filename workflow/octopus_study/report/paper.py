"""Typesetting the paper and its supplement with the Typst compiler of the PyPI wheel: no TeX, no fonts and no packages
from elsewhere."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import which

from octopus.errors import InputError
from octopus_study.errors import DataError
from octopus_study.measure._files import whole_files
from octopus_study.names import STUDIES
from octopus_study.report.frame import Frame

DOCUMENTS = ("octopus", "supplement")
# Typst 0.15 can't nest the tags of a PDF for some layouts with floats over both columns (its issues 8487 and 8776, both
# open): about one in ten where floats pile up, none seen since each study is flushed. Should one come, the same text
# with a little more space around its floats has another layout.
_TAG_FAULTS = ("tags weren't properly closed", "internal error: parent group")
_NUDGES = 24  # all that `paper/lib.typ` makes of a number
_MACHINES = ("gpu", "cpu", "here")
_LAYOUT = ("template.typ", "lib.typ", "drawing.typ")  # lengths, sizes and helpers, without prose
_COMMENT = re.compile(r"(?<!:)//[^\n]*|/\*.*?\*/", re.S)
_REFERENCE = re.compile(r'#?\b(?:num|ci|measured)\(\s*"([^"]+)"\s*\)')
_GUARD = re.compile(r'\bif has\(\s*"([^"]+)"\s*\)')


def build_paper(
    paper_dir: str | Path,
    build_dir: str | Path,
    figures_dir: str | Path,
    out: str | Path,
    document: str = DOCUMENTS[0],
    timestamp: int | None = None,
) -> Path:
    """Check the sources against the numbers and compile one of `DOCUMENTS` to PDF (a ``.png`` with ``{p}`` in its name
    gives pages as pictures), dated `timestamp`, or as :func:`build_time` says. `InputError` names each number that the
    text asks for and ``numbers.csv`` hasn't."""
    import typst

    problems = check_paper(paper_dir, Frame.read(Path(build_dir) / "numbers.csv"))
    if problems:
        raise InputError(f"{len(problems)} numbers of the paper have no origin:\n" + "\n".join(problems))
    main = Path(paper_dir).resolve() / f"{document}.typ"
    root, inputs = typst_inputs(paper_dir, build_dir, figures_dir, document)
    for nudge in range(_NUDGES):
        try:
            with whole_files(Path(out).parent) as folder:
                typst.compile(
                    str(main),
                    output=str(folder / Path(out).name),
                    root=root,
                    sys_inputs=inputs | {"nudge": str(nudge)},
                    ignore_system_fonts=True,
                    timestamp=build_time(main.parent) if timestamp is None else timestamp,
                )
        except (typst.TypstError, RuntimeError) as error:
            if any(fault in str(error) for fault in _TAG_FAULTS) and nudge + 1 < _NUDGES:
                continue
            raise DataError(f"Typst can't compile {main}: {error}") from error
        break
    return Path(out)


def build_time(folder: Path) -> int:
    """Return the date that the PDF carries, in seconds: ``SOURCE_DATE_EPOCH``, else the newest commit's, else 1970. The
    clock would make two builds of one commit differ."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    if given.isdigit():
        return int(given)
    command = ["git", "-C", str(folder), "log", "-1", "--format=%ct"]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() if which("git") else ""
    return int(found or 0)


def typst_inputs(
    paper_dir: str | Path, build_dir: str | Path, figures_dir: str | Path, document: str = DOCUMENTS[0]
) -> tuple[str, dict[str, str]]:
    """Return Typst's root and what the sources are told: which document it is, and where numbers and figures are. Typst
    reads nothing outside of its root; all paths are given as absolute ones below it."""
    paper, build, figures = (Path(path).resolve() for path in (paper_dir, build_dir, figures_dir))
    root = Path(os.path.commonpath([paper, build, figures]))
    places = {"build": build, "figures": figures}
    inputs = {name: f"/{path.relative_to(root).as_posix()}" for name, path in places.items()}
    return str(root), inputs | {"document": document}


def prose(paper_dir: str | Path) -> Iterator[Path]:
    """Yield the Typst sources that have text."""
    folder = Path(paper_dir)
    # The folder "build" is not walked: another process may be writing there.
    places = [folder, *(place for place in folder.iterdir() if place.is_dir() and place.name != "build")]
    for path in sorted(path for place in places for path in place.glob("*.typ")):
        if path.name not in _LAYOUT:
            yield path


def check_paper(paper_dir: str | Path, numbers: Frame) -> list[str]:
    """Return the unknown ids in the paper's sources, each with its file; empty when all is well. Text that is left out
    of a paper is not judged: ids of a machine without results, or without any of a study, for which
    the text shows a dash, and ids of a scope of which the same file guards an absent number with ``if has``."""
    return [
        f"{path.relative_to(paper_dir).as_posix()}: unknown number {key!r}"
        for path in prose(paper_dir)
        for key in unknown_ids(path.read_text(encoding="utf-8"), numbers)
    ]


def unknown_ids(source: str, numbers: Frame) -> list[str]:
    """Return the ids in a source that would stop the paper from being typeset."""
    absent = {name for name in _MACHINES if not numbers.text(f"{name}.machine.id")}
    absent |= {_scope(key) for key in _GUARD.findall(source) if key not in numbers}
    unknown = [key for key in referenced_ids(source) if _scope(key) not in absent and key not in numbers]
    return [key for key in unknown if _scope(key) not in _MACHINES or _has_study(key, numbers)]


def _has_study(key: str, numbers: Frame) -> bool:
    machine, study, *_ = f"{numbers.resolve(key)}.".split(".")
    return study not in STUDIES or bool(numbers.select(machine, study))


def referenced_ids(source: str) -> list[str]:
    """Return the ids that a Typst source uses through ``num``, ``ci`` or ``measured``."""
    return _REFERENCE.findall(_COMMENT.sub("", source))


def _scope(identifier: str) -> str:
    return identifier.partition(".")[0]
