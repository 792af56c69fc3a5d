"""The same numbers for authors of Typst and of LaTeX."""

from __future__ import annotations

from pathlib import Path

import pytest
import typst
from octopus_study.report.macros import tex_text

KEY = "gpu.stage_timing.visdrone.n1000.octopus.end_to_end.host"


def typeset(source: str, folder: Path) -> bytes:
    (folder / "test.typ").write_text(f'#import "numbers.typ": *\n{source}', encoding="utf-8")
    return typst.compile(str(folder / "test.typ"))


def test_typst_resolves_aliases_and_refuses_unknown_ids(full: Path) -> None:
    assert typeset(f'#num("{KEY}") #ci("{KEY}") #assert(has-run("here"))', full).startswith(b"%PDF")
    with pytest.raises(typst.TypstError, match=r"there is no number gpu\.nothing"):
        typeset('#num("gpu.nothing")', full)


def test_latex_defines_aliases_and_leaves_percentiles_out(full: Path) -> None:
    text = (full / "numbers.tex").read_text(encoding="utf-8")
    assert (
        rf"\oct@define{{{KEY}}}" in text
        and rf"\oct@define{{{KEY.replace('gpu', 'pretended-gpu', 1)}}}" in text
    )
    assert "boxes.width.p50}" in text and "boxes.width.p51}" not in text


def test_latex_text_is_escaped() -> None:
    assert tex_text("94.9 % of 2\u00d73 µs_") == r"94.9 \% of 2$\times$3 $\mu$s\_"
