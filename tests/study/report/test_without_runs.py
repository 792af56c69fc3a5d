"""What figures and tables say where no run of their study is shown, or nothing in it could be measured."""

from pathlib import Path

import pytest
from committed_runs import BASIS, GPU, write, write_run
from frames import build_report, caption
from mutating import disable

from octopus_study.measure.rows import read_rows
from octopus_study.names import STUDIES
from octopus_study.report.charts import style
from octopus_study.report.frame import Frame
from octopus_study.report.outputs import draw
from octopus_study.report.studies import drone, mapping_figure, report_of, satellite_figure
from octopus_study.report.view import views

COMPANIONS = ("concurrency", "image_shape")  # which need a GPU
OTHERS = tuple(study for study in STUDIES if study not in (*BASIS, *COMPANIONS, "arena", "power", "pipelines"))
LATER = (*OTHERS, *COMPANIONS)
FIGURES = {name: study for study in LATER for name in report_of(study).figures}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_says_so(name: str, old: Path, alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said, words, stacked = [], style.words, style.stacked
    monkeypatch.setattr(style, "words", lambda figure, text: words(figure, said.append(text) or text))
    monkeypatch.setattr(
        style, "stacked", lambda charts, legend, note="": stacked(charts, legend, said.append(note) or note)
    )
    draw(name, old / "numbers.csv", tmp_path / name)
    assert len(said) == 1 and "is at hand: older results lack it." in said[0]
    if FIGURES[name] in COMPANIONS:
        draw(name, alone / "numbers.csv", tmp_path / name)
        assert "GPU" in said[1]


def test_tables_say_so(old: Path) -> None:
    known = Frame.read(old / "numbers.csv")
    for study in (*LATER, "arena"):
        assert known.machines(study) == []
        for name in report_of(study).tables:
            assert "is at hand: older results lack" in caption(old, name) or "No run" in caption(old, name)


def test_runs_in_which_nothing_works_show_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_run(tmp_path / "reference", GPU, "gpu", only=OTHERS)
    for study in OTHERS:
        table = folder / f"{study}.csv"
        write(table, disable("study", study).apply(read_rows(table)))
    report = build_report(tmp_path / "report", None, tmp_path / "reference")
    stamps, finish = [], style.finish
    monkeypatch.setattr(style, "finish", lambda *given: finish(*given[:2], stamps.append(given[2]), *given[3:]))
    names = [name for name, study in FIGURES.items() if study in OTHERS]
    for name in names:
        draw(name, report / "numbers.csv", tmp_path / name)
    known = Frame.read(report / "numbers.csv")
    assert mapping_figure.measured(known) == []
    shown = {"satellite": satellite_figure.scenes, "drone": drone.clips}
    assert [view for study, has in shown.items() for view in views(known, study) if has(view)] == []
    assert len(stamps) == len(names) and not any(stamps)
