"""The paper is typeset from any mix of runs, and names no number that isn't in numbers.csv."""

import json
import re
import shutil
from pathlib import Path

import pytest
import typst
from committed_runs import PAPER
from PIL import Image

from octopus.errors import InputError
from octopus_study.errors import DataError
from octopus_study.report.committed import write_committed
from octopus_study.report.frame import Frame
from octopus_study.report.outputs import figures
from octopus_study.report.paper import DOCUMENTS, build_paper, build_time, check_paper, referenced_ids, unknown_ids


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("report", ["full", "alone", "old"])
def test_both_documents_are_typeset(
    report: str,
    document: str,
    all_figures: Path,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    folder: Path = request.getfixturevalue(report)
    pdf = build_paper(PAPER, folder, all_figures, tmp_path / "some.pdf", document)
    assert pdf.read_bytes().startswith(b"%PDF") and pdf.stat().st_size > 100_000
    dates = set(re.findall(rb"D:(\d{8})", pdf.read_bytes()))
    assert dates == {b"19700102"}, "the PDF carries the date of its source, whenever it is built"
    if report == "full":
        monkeypatch.setenv("TZ", "Pacific/Kiritimati")
        again = build_paper(PAPER, folder, all_figures, tmp_path / "again.pdf", document)
        assert again.read_bytes() == pdf.read_bytes(), "two builds of one source are equal"


def test_what_is_committed_for_visitors_is_small_and_the_same_bytes_each_time(
    full: Path, runs: Path, all_figures: Path, tmp_path: Path
) -> None:
    for path in all_figures.glob("*.pdf"):
        Image.effect_noise((60, 40), 50).convert("RGB").save(path.with_suffix(".png"))
    for out in ("one", "two"):
        write_committed(full, all_figures, PAPER, runs / "reference", tmp_path / out)
    made = sorted((tmp_path / "one").iterdir())
    assert {path.name for path in made} == {*(f"{name}.png" for name in figures()), "octopus.pdf"}
    assert [path.read_bytes() for path in made] == [(tmp_path / "two" / path.name).read_bytes() for path in made]
    ends = [json.loads(path.read_text())["ended"] for path in runs.glob("reference/*/*.json")]
    assert f"D:{max(ends)[:10].replace('-', '')}".encode() in (tmp_path / "one/octopus.pdf").read_bytes()


def test_the_date_of_the_source_is_the_newest_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert build_time(tmp_path) == 0, "no repository"
    assert build_time(PAPER) > 1_700_000_000 or not (PAPER.parent / ".git").exists()


def test_typst_resolves_aliases_and_refuses_unknown_ids(full: Path, tmp_path: Path) -> None:
    key = "gpu.stage_timing.visdrone.n1000.octopus.end_to_end.host"
    for name in ("numbers.json", "claims.csv", "claims.json"):
        shutil.copy(full / name, tmp_path / name)
    shutil.copy(PAPER / "lib.typ", tmp_path / "lib.typ")
    typeset(f'#num("{key}") #ci("{key}") #assert(has-run("here"))', tmp_path)
    with pytest.raises(typst.TypstError, match=r"there is no number gpu\.nothing"):
        typeset('#num("gpu.nothing")', tmp_path)


def typeset(source: str, folder: Path) -> None:
    (folder / "test.typ").write_text(f'#import "lib.typ": *\n{source}', encoding="utf-8")
    assert typst.compile(str(folder / "test.typ"), sys_inputs={"build": "/"}).startswith(b"%PDF")


def test_every_number_of_the_paper_is_in_numbers_csv(numbers: Frame) -> None:
    assert check_paper(PAPER, numbers) == []


def test_the_paper_uses_numbers_of_every_kind_of_run() -> None:
    used = {key.partition(".")[0] for path in PAPER.rglob("*.typ") for key in referenced_ids(path.read_text("utf-8"))}
    assert {"gpu", "cpu", "here", "published", "shown"} <= used


def test_an_unknown_id_is_found_unless_its_text_is_left_out(numbers: Frame) -> None:
    assert unknown_ids('#num("gpu.stage_timing.nothing")', numbers) == ["gpu.stage_timing.nothing"]
    assert unknown_ids('#if has("gpu.x") [#num("gpu.stage_timing.nothing")]', numbers) == []


def test_an_unknown_number_stops_the_build(full: Path, all_figures: Path, tmp_path: Path) -> None:
    paper = shutil.copytree(PAPER, tmp_path / "paper", ignore=shutil.ignore_patterns("build"))
    section = paper / "supplement" / "method.typ"
    section.write_text(section.read_text("utf-8") + '\nIt takes #num("published.none").\n', "utf-8")
    with pytest.raises(InputError, match=r"supplement/method.typ: unknown number 'published.none'"):
        build_paper(paper, full, all_figures, tmp_path / "octopus.pdf")


@pytest.mark.parametrize("fault", ["tags weren't properly closed", "parent group"])
@pytest.mark.parametrize(("failures", "compiles"), [(0, True), (2, True), (24, False)])
def test_a_layout_that_typst_cannot_tag_is_nudged(
    failures: int,
    compiles: bool,
    fault: str,
    full: Path,
    all_figures: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = []

    def compile(source: str, *, output: str, sys_inputs: dict[str, str], **_: object) -> None:
        tried.append(sys_inputs["nudge"])
        if len(tried) <= failures:
            raise RuntimeError(f"internal error: {fault} (occurred somewhere in tags/tree)")
        Path(output).write_bytes(b"%PDF")

    monkeypatch.setattr("typst.compile", compile)
    if compiles:
        assert build_paper(PAPER, full, all_figures, tmp_path / "octopus.pdf").is_file()
        assert tried == [str(nudge) for nudge in range(failures + 1)]
    else:
        with pytest.raises(DataError, match="tags"):
            build_paper(PAPER, full, all_figures, tmp_path / "octopus.pdf")
