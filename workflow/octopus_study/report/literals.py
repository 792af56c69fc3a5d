"""The rule that every measured number in the paper's text comes from ``numbers.csv``.

A digit in the prose of a Typst source is allowed only inside code (raw text, a call such as ``#num("id")``,
an import), a citation or label, or one of the constants that ``paper/constants.yaml`` lists with a reason:
numbers that define the work (the size of a crop, the confidence of an interval) and that no measurement can
change. Everything else is a literal number, and a test fails on it. Math counts as prose, and so do
headings.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from octopus.errors import InputError
from octopus_study.report.frame import Frame

# What is not prose, blanked in this order with the lines kept.
_NOT_PROSE = [
    re.compile(r"//[^\n]*|/\*.*?\*/", re.S),
    re.compile(r"```.*?```|`[^`\n]*`", re.S),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"^\s*#(?:import|include|let|set|show)\b[^\n\[]*", re.M),
    re.compile(r"@[A-Za-z][\w:.-]*|<[A-Za-z][\w:.-]*>"),
    # Arguments of a call are code: names, lengths and fractions, no prose.
    re.compile(r"#?[A-Za-z][\w.-]*\([^()\[\]]*\)"),
]
_COMMENT = re.compile(r"(?<!:)//[^\n]*|/\*.*?\*/", re.S)
_REFERENCE = re.compile(r'#?\b(?:num|ci|measured)\(\s*"([^"]+)"\s*\)')
_GUARD = re.compile(r'\bif has\(\s*"([^"]+)"\s*\)')
_TOKEN = re.compile(r"\S*\d\S*")
# Files of lengths, sizes and helpers, without prose.
LAYOUT = ("template.typ", "lib.typ")


class Literal(NamedTuple):
    """A number typed into the prose."""

    path: str
    line: int
    text: str


def load_constants(path: str | Path) -> list[str]:
    """Read the texts of ``paper/constants.yaml``, longest first so that the longest match wins.

    Raises
    ------
    InputError
        An entry has no reason.
    """
    import yaml

    entries = yaml.safe_load(Path(path).read_text(encoding="utf-8"))["constants"]
    for entry in entries:
        if not entry.get("why"):
            raise InputError(f"The constant {entry.get('text')!r} in {path} has no reason (`why`).")
    return sorted((entry["text"] for entry in entries), key=len, reverse=True)


def literal_numbers(source: str, constants: list[str], path: str = "") -> list[Literal]:
    """Return the numbers in the prose of a Typst source that are neither macros nor constants."""
    prose = source
    for pattern in _NOT_PROSE:
        prose = pattern.sub(_blank, prose)
    for constant in constants:
        prose = re.sub(rf"(?<![\w.]){re.escape(constant)}(?![\w]|\.\d)", lambda match: _blank(match), prose)
    return [
        Literal(path, number, token)
        for number, line in enumerate(prose.splitlines(), start=1)
        for token in _TOKEN.findall(line)
    ]


def referenced_ids(source: str) -> list[str]:
    """Return the ids that a Typst source uses through ``num``, ``ci`` or ``measured``."""
    return _REFERENCE.findall(_COMMENT.sub("", source))


def check_paper(paper_dir: str | Path, numbers: Frame) -> list[str]:
    """Return what is wrong with the paper's sources: literal numbers and unknown ids; empty when all is well.

    Text that is left out of a paper is not judged: ids of a scope without results (no reference GPU, nothing
    measured here), and ids of a scope of which the same file guards an absent number with ``if has``.
    """
    folder = Path(paper_dir)
    constants = load_constants(folder / "constants.yaml")
    problems = []
    for path in sorted(folder.rglob("*.typ")):
        if path.name in LAYOUT or "build" in path.relative_to(folder).parts:
            continue
        source, name = path.read_text(encoding="utf-8"), path.relative_to(folder).as_posix()
        literals = literal_numbers(source, constants, name)
        problems += [f"{name}:{item.line}: literal number {item.text!r}" for item in literals]
        problems += [f"{name}: unknown number {key!r}" for key in unknown_ids(source, numbers)]
    return problems


def unknown_ids(source: str, numbers: Frame) -> list[str]:
    """Return the ids in a source that would stop the paper from being typeset."""
    absent = {name for name in ("gpu", "cpu", "here") if not numbers.text(f"{name}.machine.id")}
    absent |= {_scope(key) for key in _GUARD.findall(source) if key not in numbers}
    return [key for key in referenced_ids(source) if _scope(key) not in absent and key not in numbers]


def _scope(identifier: str) -> str:
    return identifier.partition(".")[0]


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])
