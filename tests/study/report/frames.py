"""Numbers made by hand or found by their ids; reports, lines of their tables, and figures that tell what is cut off."""

import json
import math
import re
import shutil
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from committed_runs import BASIS, CLAIMS, PUBLISHED
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from octopus_study.names import STUDIES
from octopus_study.report.build import build_numbers
from octopus_study.report.charts import style
from octopus_study.report.claims import build_claims
from octopus_study.report.frame import Frame, Key, Number, Source, make_number, make_text
from octopus_study.report.outputs import build_tables, draw

# Files of all studies but the first two.
LATER = shutil.ignore_patterns(*(f"{study}.*" for study in STUDIES if study not in BASIS))
SOURCE = Source("reference", "visdrone-val", "s", "")
TIME = Key("m", "stage_timing", "visdrone", 1000, "octopus", "end_to_end", "host")


def build_report(folder: Path, results: Path | None, reference: Path | None) -> Path:
    """Build numbers, claims and tables into `folder` and return it."""
    build_numbers(results, reference, PUBLISHED, folder / "numbers.csv")
    return judged(folder)


def judged(folder: Path) -> Path:
    """Build claims and tables beside numbers and return their folder."""
    build_claims(folder / "numbers.csv", CLAIMS, folder / "claims.csv")
    build_tables(folder / "numbers.csv", folder / "claims.csv", folder / "tables")
    return folder


def number(key: Key, unit: str, value: float = math.nan, *ends: float, dataset: str = "visdrone-val") -> Number:
    return make_number(key, SOURCE._replace(dataset=dataset), unit, value, *ends)


def text(key: Key, words: str) -> Number:
    return make_text(key, SOURCE, words)


def matching(frame: Frame, pattern: str) -> list[tuple[re.Match[str], Number]]:
    """Return the numbers whose whole id matches a regular expression, with the match."""
    pairs = ((re.fullmatch(pattern, number.id), number) for number in frame)
    return [(match, number) for match, number in pairs if match]


def lines(folder: Path, name: str) -> list[list[str]]:
    """Return the cells of a table in a report's folder, line by line."""
    text = (folder / "tables" / f"{name}.md").read_text(encoding="utf-8")
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]


def caption(folder: Path, name: str) -> str:
    return (folder / "tables" / f"{name}.md").read_text(encoding="utf-8").partition("\n")[0]


read_once = lru_cache(maxsize=4)(Frame.read)  # a report has thirty figures


def draw_watched(name: str, numbers: Path, stem: Path, pdf: bool = True) -> Path:
    """Draw a figure as PNG and, unless that is not wanted, PDF; write into a JSON beside it the labels of lines that
    are cut off, and the words and notes that it shows."""
    seen: list[Figure] = []
    said: list[str] = []
    save, savefig, words = style.save, Figure.savefig, style.words

    def watched(figure: Figure, *rest: object) -> object:
        seen.append(figure)
        return save(figure, *rest)

    def only_png(figure: Figure, path: Path, **options: object) -> None:
        if path.suffix == ".png":
            savefig(figure, path, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "save", watched)
        patch.setattr(style, "words", lambda figure, text: words(figure, said.append(text) or text))
        patch.setattr(Frame, "read", read_once)
        if not pdf:
            patch.setattr(Figure, "savefig", only_png)
        draw(name, numbers, stem)
    (figure,) = seen
    cut = [line.get_label() for axis in figure.findobj(Axes) for line in axis.lines if is_cut(axis, line)]
    stem.with_suffix(".json").write_text(json.dumps({"cut": cut, "said": [*said, figure.get_label()]}))
    return stem


def said(stem: Path) -> list[str]:
    found: list[str] = json.loads(stem.with_suffix(".json").read_text())["said"]
    return list(filter(None, found))


def is_cut(axis: Axes, line: Line2D) -> bool:
    """Whether a point of a line, other than those of constant value behind everything, is outside of the axes."""
    if line.get_transform() != axis.transData or line.get_zorder() == 0:
        return False
    points = axis.transData.transform(np.asarray(line.get_xydata(), float))
    points = points[np.isfinite(points).all(axis=1)]
    return bool((points < axis.bbox.min - 0.5).any() or (points > axis.bbox.max + 0.5).any())
