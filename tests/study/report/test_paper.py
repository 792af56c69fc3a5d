"""The paper is typeset from any mix of runs, and holds no number that isn't in numbers.csv."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import typst
from synthetic_runs import PAPER

from octopus.errors import InputError
from octopus_study.errors import DataError
from octopus_study.report.frame import Frame
from octopus_study.report.literals import (
    check_paper,
    literal_numbers,
    load_constants,
    referenced_ids,
    unknown_ids,
)
from octopus_study.report.paper import DOCUMENTS, build_paper


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("report", ["full", "alone", "tensorrt", "old"])
def test_both_documents_are_typeset(
    report: str, document: str, all_figures: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    folder: Path = request.getfixturevalue(report)
    pdf = build_paper(PAPER, folder, all_figures, tmp_path / "some.pdf", document)
    assert pdf.read_bytes().startswith(b"%PDF") and pdf.stat().st_size > 100_000


def test_typst_resolves_aliases_and_refuses_unknown_ids(full: Path, tmp_path: Path) -> None:
    key = "gpu.stage_timing.visdrone.n1000.octopus.end_to_end.host"
    for name in ("numbers.json", "claims.csv"):
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
    used = {
        key.partition(".")[0]
        for path in PAPER.rglob("*.typ")
        for key in referenced_ids(path.read_text("utf-8"))
    }
    assert {"gpu", "cpu", "here", "published", "shown"} <= used


@pytest.mark.parametrize(
    "prose",
    [
        "It takes 0.19 ms.",
        "a speed-up of 5\u00d7",
        "= Twice 2 as fast",
        "$x = 3.5$",
        "see @p1 and 7 others",
        "*12 %* less",
        '#strong("34.4x")',
        '#box("192 times")',
        '#let x = "5.3x"',
        "#let x = 5.3",
        "`34.4x` as fast",
        "```\n34.4 ms\n```",
        "It is seven times as fast.",
        "ten percent less",
        "Slower by a factor of ten.",
        '#num("gpu.x") and #emph("3 ms")',
    ],
)
def test_a_literal_number_is_found(prose: str) -> None:
    assert literal_numbers(prose, ["224 \u00d7 224"])


@pytest.mark.parametrize(
    "source",
    [
        '#num("gpu.stage_timing.visdrone.n1000.octopus.end_to_end.host") in all',
        "crops of 224 \u00d7 224 pixels",
        "by `cv2.resize` on `int32` as @p1 says // 3 times",
        "#set text(size: 9.5pt)",
        "#let gap = 9.5pt",
        '#if num("here.runs") == "1" [one]',
        '#num(at + ".n1000.x") of two models',
    ],
)
def test_code_citations_and_constants_are_no_literal_numbers(source: str) -> None:
    assert literal_numbers(source, ["224 \u00d7 224"]) == []


def test_a_constant_covers_only_itself() -> None:
    assert literal_numbers("within 1.2 % or 12 %", ["2 %"])


def test_every_constant_has_a_reason_and_is_used(tmp_path: Path) -> None:
    prose = "".join(path.read_text("utf-8") for path in PAPER.rglob("*.typ")).replace("\n", " ")
    assert [text for text in load_constants(PAPER / "constants.yaml") if text not in prose] == []
    (tmp_path / "constants.yaml").write_text("constants: [{text: '5'}]")
    with pytest.raises(InputError, match="no reason"):
        load_constants(tmp_path / "constants.yaml")


def test_an_unknown_id_is_found_unless_its_text_is_left_out(numbers: Frame) -> None:
    assert unknown_ids('#num("gpu.stage_timing.nothing")', numbers) == ["gpu.stage_timing.nothing"]
    assert unknown_ids('#if has("gpu.x") [#num("gpu.stage_timing.nothing")]', numbers) == []


def test_a_literal_number_stops_the_build(full: Path, all_figures: Path, tmp_path: Path) -> None:
    paper = shutil.copytree(PAPER, tmp_path / "paper", ignore=shutil.ignore_patterns("build"))
    section = paper / "supplement" / "method.typ"
    section.write_text(section.read_text("utf-8") + "\nIt takes 0.19 ms.\n", "utf-8")
    with pytest.raises(InputError, match=r"supplement/method.typ:\d+: literal number '0.19'"):
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
