"""What figures and tables say where no run of their study is shown, or nothing in it could be measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from frames import build_report, caption
from synthetic_runs import without_values, write_run

from octopus_study.report.charts import style
from octopus_study.report.frame import Frame
from octopus_study.report.outputs import draw
from octopus_study.report.studies import drone, mapping_figure, report_of, satellite_figure
from octopus_study.report.view import views

MAPPING, EDGE = ("mapping", "total_cost", "sequences", "images"), ("satellite", "drone", "detector")
COMPANIONS = ("concurrency", "image_shape")
FIGURES = [name for study in (*MAPPING, *EDGE) for name in report_of(study).figures]
TABLES = [name for study in (*MAPPING, *EDGE, *COMPANIONS) for name in report_of(study).tables]


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_says_so(name: str, old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said, words, stacked = [], style.words, style.stacked
    monkeypatch.setattr(style, "words", lambda figure, text: words(figure, said.append(text) or text))
    monkeypatch.setattr(
        style, "stacked", lambda charts, legend, note="": stacked(charts, legend, said.append(note) or note)
    )
    draw(name, old / "numbers.csv", tmp_path / name)
    assert len(said) == 1 and "is at hand: older results lack it." in said[0]


def test_tables_say_so(old: Path) -> None:
    known = Frame.read(old / "numbers.csv")
    assert all(known.machines(study) == [] for study in (*MAPPING, *EDGE))
    for name in TABLES:
        assert "is at hand: older results lack" in caption(old, name)
    for name in (name for study in MAPPING for name in report_of(study).tables):
        assert "is at hand: older results lack it." in caption(old, name)


def test_runs_in_which_nothing_works_show_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    studies = (*MAPPING, *EDGE)
    folder = write_run(tmp_path / "reference", "pretended-gpu", "gpu", only=studies)
    without_values(folder, studies)
    report = build_report(tmp_path / "report", None, tmp_path / "reference")
    stamps, finish = [], style.finish
    monkeypatch.setattr(style, "finish", lambda *given: finish(*given[:2], stamps.append(given[2]), *given[3:]))
    for name in FIGURES:
        draw(name, report / "numbers.csv", tmp_path / name)
    known = Frame.read(report / "numbers.csv")
    assert mapping_figure.measured(known) == []
    shown = {"satellite": satellite_figure.scenes, "drone": drone.clips}
    assert [view for study, has in shown.items() for view in views(known, study) if has(view)] == []
    assert len(stamps) == len(FIGURES) and not any(stamps)
