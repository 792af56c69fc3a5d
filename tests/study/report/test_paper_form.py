"""What the paper may be: ten pages, seven figures, seven tables, letters that can be read.

And what the supplement must have: everything."""

import json
import re
import zlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import typst
from committed_runs import PAPER

from octopus_study.report import outputs
from octopus_study.report.paper import DOCUMENTS, typst_inputs

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
        """What each of its figures and tables is."""
        return [element["kind"] for element in self._query("figure")]

    @cached_property
    def facts(self) -> dict[str, list[Any]]:
        """What it says of itself, by label."""
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
def test_letters_of_figures_can_be_read_as_placed(
    document: str, shipped: Typeset, request: pytest.FixtureRequest
) -> None:
    if document != DOCUMENTS[0]:
        full = request.getfixturevalue("full")
        shipped = Typeset(full, request.getfixturevalue("all_figures"), document)
    placed = shipped.facts["placed"]
    small = {
        name: size
        for name, width in placed
        if (size := smallest_letter(shipped.figures / f"{name}.pdf", width)) < SMALLEST
    }
    assert placed and small == {}


def smallest_letter(pdf: Path, width: float) -> float:
    """Return the least size of letters, in points, of a figure that is placed with a width."""
    data = pdf.read_bytes()
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", data)
    streams = re.findall(rb"/FlateDecode.*?stream\r?\n(.*?)endstream", data, re.S)
    sizes = [
        float(size)
        for stream in streams
        for size in re.findall(rb"/F\S+ ([\d.]+) Tf", zlib.decompressobj().decompress(stream))
    ]
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
