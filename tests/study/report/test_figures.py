"""Every figure is drawn for every mix of runs, as PDF and PNG, with nothing cut off at the edges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from synthetic_runs import PUBLISHED, write_run

from octopus.errors import InputError
from octopus_study.report.build import build_numbers
from octopus_study.report.charts import style
from octopus_study.report.labels import METHODS
from octopus_study.report.outputs import draw, figures


@pytest.fixture(scope="module")
def reference_only(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference_only")
    build_numbers(None, runs / "reference", PUBLISHED, folder / "numbers.csv")
    return folder


@pytest.mark.parametrize("name", figures())
@pytest.mark.parametrize("report", ["full", "alone", "reference_only", "old"])
def test_a_figure_is_drawn(
    name: str, report: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder: Path = request.getfixturevalue(report)
    savefig = Figure.savefig
    if report != "full":  # one writer of PDFs embeds the same fonts for all
        monkeypatch.setattr(Figure, "savefig", lambda *given, **options: only_png(savefig, *given, **options))
    drawn, save = [], style.save
    monkeypatch.setattr(style, "save", lambda figure, *rest: drawn.append(figure) or save(figure, *rest))
    pdf, png = draw(name, folder / "numbers.csv", tmp_path / name)
    assert report != "full" or pdf.read_bytes().startswith(b"%PDF")
    pixels = matplotlib.image.imread(png)[..., :3]
    width = style.COLUMN if name == "temporal_jitter" else style.WIDTH
    assert pixels.shape[1] == round(width * 200)
    # Text that is cut off reaches the picture's edge.
    edge = np.concatenate([pixels[:, :2].reshape(-1, 3), pixels[:, -2:].reshape(-1, 3)])
    assert (edge > 0.99).all()
    for axis in drawn[0].findobj(Axes):
        assert not [line.get_label() for line in axis.lines if cut(axis, line)]


def only_png(savefig: Callable[..., None], figure: Figure, path: Path, **options: Any) -> None:
    if path.suffix == ".png":
        savefig(figure, path, **options)


def cut(axis: Axes, line: Line2D) -> bool:
    """Whether a point of a line, other than those of constant value behind everything, is outside of the axes."""
    if line.get_transform() != axis.transData or line.get_zorder() == 0:
        return False
    points = axis.transData.transform(np.asarray(line.get_xydata(), float))
    points = points[np.isfinite(points).all(axis=1)]
    return bool((points < axis.bbox.min - 0.5).any() or (points > axis.bbox.max + 0.5).any())


def test_equal_numbers_give_equal_files(full: Path, tmp_path: Path) -> None:
    first, second = (draw("scaling", full / "numbers.csv", tmp_path / stem)[0] for stem in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()


def test_a_stamp_says_synthetic(full: Path, reference_only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stamped = []
    monkeypatch.setattr(
        style, "finish", lambda figure, footer, synthetic, real: stamped.append((synthetic, footer))
    )
    monkeypatch.setattr(style, "save", lambda *_: None)
    for folder in (full, reference_only):
        draw("scaling", folder / "numbers.csv", "unused")
    assert [synthetic for synthetic, _ in stamped] == [True, False]
    assert "Pretended GPU, VisDrone val, 2026-11-21" in stamped[1][1]


def test_no_method_is_shown_by_its_identifier() -> None:
    libraries = ("cuda.core", "torchvision")  # their own names begin so
    assert all(label[0].isupper() or label.startswith(libraries) for label in METHODS.values())


def test_an_unknown_figure_is_refused(full: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the figures are"):
        draw("pie", full / "numbers.csv", tmp_path / "pie")


def test_a_figure_without_its_study_is_refused(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "m", "cpu", quick=True)
    (folder / "distribution.csv").unlink()
    build_numbers(folder, None, PUBLISHED, tmp_path / "numbers.csv")
    with pytest.raises(InputError, match="needs a run of the study distribution"):
        draw("temporal_jitter", tmp_path / "numbers.csv", tmp_path / "figure")
