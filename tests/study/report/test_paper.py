"""The paper is typeset from any mix of runs, names no number that isn't in numbers.csv, and keeps its limits."""

import json
import re
import shutil
import zlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import typst
from committed_runs import PAPER
from PIL import Image

from octopus.errors import InputError
from octopus_study.errors import DataError
from octopus_study.report import outputs
from octopus_study.report.committed import write_committed
from octopus_study.report.frame import Frame
from octopus_study.report.outputs import figures
from octopus_study.report.paper import DOCUMENTS, build_paper, build_time, check_paper, typst_inputs, unknown_ids


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("report", ["full", "alone", "old"])
def test_both_documents_are_typeset(report, document, all_figures, request, tmp_path, monkeypatch):
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


def test_what_is_committed_for_visitors_is_small_and_the_same_bytes_each_time(full, runs, all_figures, tmp_path):
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
def test_a_layout_that_typst_cannot_tag_is_nudged(failures, compiles, fault, full, all_figures, tmp_path, monkeypatch):
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


PAGES, APPENDIX_PAGES = 10, 3
MOST = {"image": 7, "table": 7}
ABSTRACT_WORDS, ABSTRACT_NUMBERS = 200, 6
SMALLEST = 6.0  # points


class Typeset:
    """A document that can be asked for what is in it."""

    def __init__(self, report: Path, figures: Path, document: str) -> None:
        self.figures = figures
        self.main = PAPER / f"{document}.typ"
        self.root, self.inputs = typst_inputs(PAPER, report, figures, document)

    def _query(self, selector: str) -> list[dict[str, Any]]:
        options = {"root": self.root, "sys_inputs": self.inputs, "ignore_system_fonts": True}
        found: list[dict[str, Any]] = json.loads(typst.query(str(self.main), selector, **options))
        return found

    @cached_property
    def kinds(self) -> list[str]:
        return [element["kind"] for element in self._query("figure")]

    @cached_property
    def facts(self) -> dict[str, list[Any]]:
        facts: dict[str, list[Any]] = {}
        for element in self._query("metadata"):
            facts.setdefault(element["label"].strip("<>"), []).append(element["value"])
        return facts


@pytest.fixture(scope="module")
def shipped(references: Path) -> Typeset:
    """The paper over the committed references, with its figures alone."""
    for name in re.findall(r'figure-of\("(\w+)"', sources("sections")):
        outputs.draw(name, references / "numbers.csv", references / "figures" / name)
    return Typeset(references, references / "figures", DOCUMENTS[0])


def sources(folder: str) -> str:
    return "".join(path.read_text("utf-8") for path in sorted((PAPER / folder).glob("*.typ")))


def test_the_paper_has_ten_pages_and_its_appendix_few(shipped: Typeset) -> None:
    (begin,), (end,) = shipped.facts["appendix"], shipped.facts["end"]
    assert begin <= PAGES and end - begin < APPENDIX_PAGES


@pytest.mark.parametrize("kind", MOST)
def test_the_paper_has_few_figures_and_tables(shipped: Typeset, kind: str) -> None:
    """In the build that is shipped, and in one that has all that the sources name."""
    assert 0 < shipped.kinds.count(kind) <= MOST[kind]
    named = {"image": r"figure-of\(|#figure\(", "table": r"(?:column-)?table(?:-of)?\(\""}[kind]
    assert len(re.findall(named, sources("sections"))) <= MOST[kind]


def test_the_abstract_is_short(shipped: Typeset) -> None:
    words = "".join(texts(shipped.facts["abstract"])).split()
    assert 100 < len(words) <= ABSTRACT_WORDS
    assert 0 < sum(word.lstrip("([")[:1].isdigit() for word in words) <= ABSTRACT_NUMBERS


def texts(content: Any) -> Iterator[str]:
    """Yield the texts of a piece of content in their order."""
    if isinstance(content, list):
        for part in content:
            yield from texts(part)
    elif isinstance(content, dict):
        if content.get("func") == "space":
            yield " "
        yield from texts([content[key] for key in ("text", "child", "children", "body") if key in content])
    elif isinstance(content, str):
        yield content


@pytest.mark.parametrize("document", DOCUMENTS)
def test_letters_of_figures_can_be_read_as_placed(document, shipped, request):
    if document != DOCUMENTS[0]:
        full = request.getfixturevalue("full")
        shipped = Typeset(full, request.getfixturevalue("all_figures"), document)
    placed = shipped.facts["placed"]
    letters = {name: smallest_letter(shipped.figures / f"{name}.pdf", width) for name, width in placed}
    assert placed and {name: size for name, size in letters.items() if size < SMALLEST} == {}


def smallest_letter(pdf: Path, width: float) -> float:
    """Return the least size of letters, in points, of a figure that is placed with a width."""
    data = pdf.read_bytes()
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", data)
    streams = re.findall(rb"/FlateDecode.*?stream\r?\n(.*?)endstream", data, re.S)
    texts = (zlib.decompressobj().decompress(stream) for stream in streams)
    sizes = [float(size) for text in texts for size in re.findall(rb"/F\S+ ([\d.]+) Tf", text)]
    assert box and sizes, pdf
    return min(sizes) * width / float(box[1])


def test_every_table_and_figure_stands_once_and_the_text_names_it() -> None:
    texts = [sources(folder) for folder in ("sections", "supplement")]
    call = r'(?<![\w-])(?:column-)?(table|figure)(?:-of)?\("(\w+)"'
    placed = [(kind[:3], name, text) for text in texts for kind, name in re.findall(call, text)]
    names = [(kind, name) for kind, name, _ in placed]
    assert sorted(names) == sorted(set(names))
    assert {name for _, name in names} == {*outputs.table_names(), *outputs.figures()}
    labels = [(f"@{kind}-{name.replace('_', '-')}", text) for kind, name, text in placed]
    assert [label for label, text in labels if not re.search(rf"{label}(?![\w-])", text)] == []


def test_the_parts_of_the_supplement_are_numbered_as_they_stand() -> None:
    (parts,) = re.findall(r"#let parts = \((.*?)\)", (PAPER / "lib.typ").read_text("utf-8"), re.S)
    named = re.findall(r'"(\w+)"', parts)
    assert sorted(named) == sorted(path.stem for path in (PAPER / "supplement").glob("*.typ"))
    for part in named:
        text = (PAPER / "supplement" / f"{part}.typ").read_text("utf-8")
        assert len(re.findall(r"^= ", text, re.M)) == 1, part
