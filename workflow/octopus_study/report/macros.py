"""The numbers as macros for authors: ``numbers.typ`` for Typst, ``numbers.tex`` for LaTeX.

Both offer the same: the text of a number by id, its interval, and whether it exists. An unknown id stops the
build. Percentiles of the box sizes, points of power traces, parts of pictures and series of frames stay out: they are
there for figures, and there are hundreds of them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from octopus_study.measure._files import atomic_text
from octopus_study.report.numbers import Number, Numbers
from octopus_study.report.text import TIMES

_FOR_FIGURES = re.compile(
    r".*\.boxes\.(width|height)\.p(?!50$|95$|100$)\d+|[^.]+\.power\.trace\..*"
    r"|[^.]+\.satellite\.picture\..*|[^.]+\.drone\.frames\..*\.series"
)
_TYPST = """\
// Written by octopus_study.report.macros from numbers.csv. Do not edit.
//   #num("id")       the value with its unit        #ci("id")        its 95 % interval
//   #has("id")       whether there is such a number  #has-run("gpu")  whether a scope has results
#let _numbers = json(bytes({numbers}))
#let _aliases = json(bytes({aliases}))
#let _resolve(id) = {{
  let parts = id.split(".")
  (_aliases.at(parts.first(), default: parts.first()), ..parts.slice(1)).join(".")
}}
#let has(id) = _resolve(id) in _numbers
#let has-run(scope) = scope in _aliases
#let _get(id) = {{
  assert(has(id), message: "there is no number " + id + " in numbers.csv")
  _numbers.at(_resolve(id))
}}
#let num(id) = _get(id).at(0)
#let ci(id) = _get(id).at(1)
"""
_TEX = r"""% Written by octopus_study.report.macros from numbers.csv. Do not edit. Needs UTF-8 input.
%   \octnum{id}  the value with its unit     \octci{id}  its 95 % interval \makeatletter
\newcommand*\oct@define[3]{\@namedef{oct@n@#1}{#2}\@namedef{oct@i@#1}{#3}}
\newcommand*\oct@use[2]{\@ifundefined{oct@#1@#2}{\PackageError{octopus}{There is no number
#2}{}}{\@nameuse{oct@#1@#2}}} \newcommand*\octnum[1]{\oct@use{n}{#1}} \newcommand*\octci[1]{\oct@use{i}{#1}}
"""
_TEX_SPECIAL = {"%": r"\%", "#": r"\#", "&": r"\&", "_": r"\_", "$": r"\$", "\u2009": r"\,", "\u2013": "--"}
_TEX_MATH = {TIMES: r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$", "µ": r"$\mu$", "\u2212": "$-$"}


def export_macros(numbers: str | Path, out_dir: str | Path) -> tuple[Path, Path]:
    """Write ``numbers.typ`` and ``numbers.tex`` into `out_dir` and return their paths.

    Parameters
    ----------
    numbers : path
        ``numbers.csv``.
    out_dir : path
        Folder of the built parts of the paper.
    """
    table = Numbers.read(numbers)
    typst, tex = Path(out_dir) / "numbers.typ", Path(out_dir) / "numbers.tex"
    with atomic_text(typst) as stream:
        stream.write(typst_macros(table))
    with atomic_text(tex) as stream:
        stream.write(tex_macros(table))
    return typst, tex


def typst_macros(numbers: Numbers) -> str:
    """Return the Typst macros; the values travel as JSON, which Typst reads faster than its own
    dictionaries."""
    chosen = {number.id: (number.text, number.interval) for number in _for_authors(numbers)}
    return _TYPST.format(numbers=_typst_string(chosen), aliases=_typst_string(scope_names(numbers)))


def tex_macros(numbers: Numbers) -> str:
    """Return the LaTeX macros; ids under an alias of a scope are defined under both names."""
    names: dict[str, list[str]] = {}
    for alias, scope in scope_names(numbers).items():
        names.setdefault(scope, []).append(alias)
    lines = []
    for number in _for_authors(numbers):
        scope, _, rest = number.id.partition(".")
        for name in dict.fromkeys([scope, *names.get(scope, [])]):
            lines.append(
                rf"\oct@define{{{name}.{rest}}}{{{tex_text(number.text)}}}{{{tex_text(number.interval)}}}"
            )
    return _TEX + "\n".join(lines) + "\n\\makeatother\n"


def scope_names(numbers: Numbers) -> dict[str, str]:
    """Return what may stand before the first dot and what it means: aliases, and ``here`` when there is a
    run."""
    here = {"here": "here"} if numbers.text("here.machine.id") else {}
    return numbers.aliases | here


def tex_text(text: str) -> str:
    """Escape text for LaTeX."""
    return "".join(_TEX_SPECIAL.get(sign) or _TEX_MATH.get(sign, sign) for sign in text)


def _for_authors(numbers: Numbers) -> list[Number]:
    return [number for number in numbers if not _FOR_FIGURES.fullmatch(number.id)]


def _typst_string(content: object) -> str:
    """Return content as JSON inside a Typst string literal."""
    text = json.dumps(content, ensure_ascii=False)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
