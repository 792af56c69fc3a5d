"""Every figure is drawn for every mix of runs, nothing is cut off, and one without a run of its study says so."""

import json
import re
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from committed_runs import BASIS
from fontTools.ttLib import TTFont
from frames import caption, said

from octopus.errors import InputError
from octopus_study.names import METHODS, STUDIES
from octopus_study.report.charts import style
from octopus_study.report.frame import Frame
from octopus_study.report.outputs import draw, figures
from octopus_study.report.studies import report_of

MIXES = [(name, report) for name in figures() for report in ("full", "alone", "old")]


@pytest.mark.parametrize(("name", "report"), MIXES)
def test_a_figure_is_drawn(name: str, report: str, drawn: Callable[..., Path]) -> None:
    stem = drawn(name, report)
    assert report != "full" or stem.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    pixels = matplotlib.image.imread(stem.with_suffix(".png"))[..., :3]
    assert pixels.shape[1] == round(style.WIDTH * style.DPI)
    assert pixels.shape[0] <= (style.TALLEST + 0.6) * style.DPI  # with footer and stamp
    # Text that is cut off reaches the picture's edge.
    edge = np.concatenate([pixels[:, :2].reshape(-1, 3), pixels[:, -2:].reshape(-1, 3)])
    assert (edge > 0.99).all()
    assert json.loads(stem.with_suffix(".json").read_text())["cut"] == []


def test_equal_numbers_give_equal_files(full: Path, tmp_path: Path) -> None:
    first, second = (draw("stage_breakdown", full / "numbers.csv", tmp_path / stem)[0] for stem in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()


def test_fonts_are_embedded_without_what_places_letters(drawn: Callable[..., Path]) -> None:
    pdf = drawn("stage_breakdown").with_suffix(".pdf").read_bytes()
    streams = [zlib.decompress(found) for found in re.findall(rb"stream\r?\n(x.*?)\nendstream", pdf, re.DOTALL)]
    fonts = [TTFont(BytesIO(text)) for text in streams if text.startswith(b"\0\1\0\0")]
    assert fonts
    for font in fonts:
        assert {"glyf", "loca", "hmtx"} <= set(font.keys())
        assert set(font.keys()).isdisjoint(style.SHAPING)


def test_a_stamp_says_synthetic(full: Path, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stamped = []
    monkeypatch.setattr(style, "finish", lambda figure, footer, synthetic, real: stamped.append((synthetic, footer)))
    monkeypatch.setattr(style, "save", lambda *_: None)
    for folder in (full, old):
        draw("stage_breakdown", folder / "numbers.csv", "unused")
    assert [synthetic for synthetic, _ in stamped] == [True, False]
    assert "NVIDIA H200, VisDrone val, 2026-11-28" in stamped[1][1]


def test_no_method_is_shown_by_its_identifier() -> None:
    libraries = ("cuda.core", "torchvision", "kornia-rs", "roiconvert", "cuframe")  # their own names begin so
    assert all(label[0].isupper() or label.startswith(libraries) for label in METHODS.values())


def test_an_unknown_figure_is_refused(full: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the figures are"):
        draw("pie", full / "numbers.csv", tmp_path / "pie")


COMPANIONS = ("concurrency", "image_shape")  # which need a GPU
OTHERS = tuple(study for study in STUDIES if study not in (*BASIS, *COMPANIONS, "arena", "power", "pipelines"))
LATER = (*OTHERS, *COMPANIONS)
FIGURES = {name: study for study in LATER for name in report_of(study).figures}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_says_so(name: str, drawn: Callable[..., Path]) -> None:
    (old,) = said(drawn(name, "old"))
    assert "is at hand: older results lack it." in old
    assert FIGURES[name] not in COMPANIONS or "GPU" in said(drawn(name, "alone"))[0]


def test_tables_say_so(old: Path) -> None:
    known = Frame.read(old / "numbers.csv")
    for study in (*LATER, "arena"):
        assert known.machines(study) == []
        for name in report_of(study).tables:
            assert "is at hand: older results lack" in caption(old, name) or "No run" in caption(old, name)
