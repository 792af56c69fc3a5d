"""What of a figure is cut off, and what it says, found while it is drawn."""

import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from octopus_study.report.charts import style
from octopus_study.report.frame import Frame
from octopus_study.report.outputs import draw

read_once = lru_cache(maxsize=4)(Frame.read)  # a report has thirty figures


def draw_watched(name: str, numbers: Path, stem: Path, pdf: bool = True) -> Path:
    """Draw a figure as PNG and, unless that is not wanted, PDF; write into a JSON beside it the labels of lines that
    are cut off, and the words and notes that it shows."""
    seen: list[Figure] = []
    said: list[str] = []
    save, savefig, words, stacked = style.save, Figure.savefig, style.words, style.stacked

    def watched(figure: Figure, *rest: object) -> object:
        seen.append(figure)
        return save(figure, *rest)

    def only_png(figure: Figure, path: Path, **options: object) -> None:
        if path.suffix == ".png":
            savefig(figure, path, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "save", watched)
        patch.setattr(style, "words", lambda figure, text: words(figure, said.append(text) or text))
        patch.setattr(
            style, "stacked", lambda charts, legend, note="": stacked(charts, legend, said.append(note) or note)
        )
        patch.setattr(Frame, "read", read_once)
        if not pdf:
            patch.setattr(Figure, "savefig", only_png)
        draw(name, numbers, stem)
    (figure,) = seen
    cut = [line.get_label() for axis in figure.findobj(Axes) for line in axis.lines if is_cut(axis, line)]
    stem.with_suffix(".json").write_text(json.dumps({"cut": cut, "said": said}))
    return stem


def said(stem: Path) -> list[str]:
    """Return the words and notes of a figure that `draw_watched` drew."""
    found: list[str] = json.loads(stem.with_suffix(".json").read_text())["said"]
    return found


def is_cut(axis: Axes, line: Line2D) -> bool:
    """Whether a point of a line, other than those of constant value behind everything, is outside of the axes."""
    if line.get_transform() != axis.transData or line.get_zorder() == 0:
        return False
    points = axis.transData.transform(np.asarray(line.get_xydata(), float))
    points = points[np.isfinite(points).all(axis=1)]
    return bool((points < axis.bbox.min - 0.5).any() or (points > axis.bbox.max + 0.5).any())
