"""The rule that every measured number in the paper's text comes from ``numbers.csv``.

A digit in a Typst source is allowed in code (an id, a name in raw text, a length or another argument of a call), in a
citation or label, and in the constants that ``paper/constants.yaml`` lists with a reason: phrases that define the work
(the size of a crop, the confidence of an interval) and that no measurement can change. Everything else is a literal
number, and a test fails on it: in prose, headings and math, in texts such as ``#strong("34.4x")`` or
``#let x = "5.3x"``, in a bare ``#let x = 5.3``, in raw text, and in words as ``seven times`` or ``ten percent``.

It doesn't see digits within names (``float32``), words without a unit (``two models``, ``half``, ``faster``), and what
Typst computes from numbers that it was given; the paper says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from octopus.errors import InputError
from octopus_study.report.frame import Frame

_COMMENT = re.compile(r"(?<!:)//[^\n]*|/\*.*?\*/", re.S)
_RAW = re.compile(r"```.*?```|`[^`\n]*`", re.S)
_COMPARED = re.compile(r'[=!]= *"[^"\n]*"')  # no reader sees what a text is compared with
_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"')
# What stands in code: ids, names, paths and their ends.
_NAME = re.compile(r"(?<![\w.%])[A-Za-z_./-][\w./-]*")
_LET = re.compile(r"#?\blet [\w-]+ = -?\d[\d.]*(?![\w.%]| *[*/+])")
# What is not prose, blanked in this order with the lines kept.
_NOT_PROSE = [
    re.compile(r"^\s*#(?:import|include|let|set|show)\b[^\n\[]*", re.M),
    re.compile(r"@[A-Za-z][\w:.-]*|<[A-Za-z][\w:.-]*>"),
    # Arguments of a call are code: names, lengths and fractions, no prose.
    re.compile(r"#?[A-Za-z][\w.-]*\([^()\[\]]*\)"),
]
_COUNT = (
    "(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|seventy|"
    "eighty|ninety|(?:a )?hundred|(?:a )?thousand|(?:a )?million|(?:a )?dozen)"
)
_UNIT = "(?:times|fold|per ?cent|%|[a-z]*seconds?|ms|µs|minutes?|[KMG]?i?B|[a-z]*bytes?|[a-z]*watts?|[a-z]*joules?)"
_WORDS = re.compile(rf"\b(?:{_COUNT}[ -]{_UNIT}|factor of {_COUNT})(?!\w)", re.I)
_REFERENCE = re.compile(r'#?\b(?:num|ci|measured)\(\s*"([^"]+)"\s*\)')
_GUARD = re.compile(r'\bif has\(\s*"([^"]+)"\s*\)')
_TOKEN = re.compile(r"\S*\d\S*")
_SPACE = re.compile(r"\s+")
# Files of lengths, sizes and helpers, without prose.
LAYOUT = ("template.typ", "lib.typ", "drawing.typ")


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
    """Return the numbers that are typed into a Typst source and are no constants."""
    source = _COMPARED.sub(_blank, _COMMENT.sub(_blank, source))
    for constant in constants:
        words = r"\s+".join(map(re.escape, _SPACE.split(constant)))
        source = re.sub(rf"(?<![\w.]){words}(?![\w]|\.\d)", _blank, source)
    found = dict.fromkeys((place, text) for place, text in _typed(source) if text)
    return [Literal(path, source.count("\n", 0, place) + 1, text) for place, text in sorted(found)]


def _typed(source: str) -> Iterator[tuple[int, str]]:
    """Yield place and text of each typed number, kind by kind."""
    for pattern in (_RAW, _TEXT):
        for quoted in pattern.finditer(source):
            words = _NAME.sub(_blank, quoted[0].replace('"', " ").replace("`", " "))
            yield from ((quoted.start() + token.start(), token[0]) for token in _TOKEN.finditer(words))
        source = pattern.sub(_blank, source)
    yield from ((let.start(), let[0]) for let in _LET.finditer(source))
    for pattern in _NOT_PROSE:
        source = pattern.sub(_blank, source)
    for pattern in (_TOKEN, _WORDS):
        yield from ((match.start(), match[0]) for match in pattern.finditer(source))


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
