"""What is looked up while a figure is drawn or a table made, and what of a figure is cut off."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from octopus_study.report.charts import style
from octopus_study.report.frame import Frame, Key, Number
from octopus_study.report.outputs import draw

read_once = lru_cache(maxsize=4)(Frame.read)  # a report has thirty figures


@contextmanager
def looked_up() -> Iterator[set[str]]:
    """The ids of all numbers that are looked up meanwhile."""
    ids: set[str] = set()
    find, select = Frame.find, Frame.select

    def finding(self: Frame, key: Key | str) -> Number | None:
        ids.add(self.resolve(key))
        return find(self, key)

    def selecting(self: Frame, *where: str, **columns: object) -> list[Number]:
        numbers = select(self, *where, **columns)
        ids.update(number.id for number in numbers)
        return numbers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Frame, "find", finding)
        patch.setattr(Frame, "select", selecting)
        yield ids


def draw_watched(name: str, numbers: Path, stem: Path, pdf: bool = True) -> Path:
    """Draw a figure as PNG and, unless that is not wanted, PDF; write into a JSON beside it the labels of lines that
    are cut off, and the ids of the numbers that were looked up."""
    seen: list[Figure] = []
    save, savefig = style.save, Figure.savefig

    def watched(figure: Figure, *rest: object) -> object:
        seen.append(figure)
        return save(figure, *rest)

    def only_png(figure: Figure, path: Path, **options: object) -> None:
        if path.suffix == ".png":
            savefig(figure, path, **options)

    with looked_up() as ids, pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "save", watched)
        patch.setattr(Frame, "read", read_once)
        if not pdf:
            patch.setattr(Figure, "savefig", only_png)
        draw(name, numbers, stem)
    (figure,) = seen
    cut = [line.get_label() for axis in figure.findobj(Axes) for line in axis.lines if is_cut(axis, line)]
    stem.with_suffix(".json").write_text(json.dumps({"cut": cut, "read": sorted(ids)}))
    return stem


def is_cut(axis: Axes, line: Line2D) -> bool:
    """Whether a point of a line, other than those of constant value behind everything, is outside of the axes."""
    if line.get_transform() != axis.transData or line.get_zorder() == 0:
        return False
    points = axis.transData.transform(np.asarray(line.get_xydata(), float))
    points = points[np.isfinite(points).all(axis=1)]
    return bool((points < axis.bbox.min - 0.5).any() or (points > axis.bbox.max + 0.5).any())
