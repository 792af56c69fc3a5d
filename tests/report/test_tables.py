"""Tables in three formats say the same, mark what is synthetic, and leave no silent gap."""

from __future__ import annotations

from pathlib import Path

import pytest

from octopus.report.tables import NAMES
from octopus.report.tables.writers import Table, latex, markdown, typst


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("report", ["full", "alone"])
def test_every_table_exists_in_every_format(name: str, report: str, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(report) / "tables"
    for suffix in (".typ", ".tex", ".md"):
        assert (folder / f"{name}{suffix}").stat().st_size > 100


def lines(folder: Path, name: str) -> list[list[str]]:
    text = (folder / "tables" / f"{name}.md").read_text(encoding="utf-8")
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"
    ]


def test_stage_table_shows_published_beside_measured(full: Path) -> None:
    table = lines(full, "stage_timing")
    assert table[0][2] == "Jetson Orin Nano, as published"
    assert table[6][:3] == ["Crop and resize", "Published", "172.165 ms"]
    assert any("unavailable" in row for row in table)


def test_padding_table_gives_a_verdict(full: Path) -> None:
    verdicts = {row[0]: row[-1] for row in lines(full, "padding_waste")[2:]}
    assert verdicts["Uniform (synthetic)"] == "identical"
    assert verdicts["Temporal (synthetic)"] == "not published"
    assert verdicts["VisDrone (synthetic)"] == "not comparable"


def test_synthetic_runs_are_called_so(full: Path) -> None:
    for name in ("stage_timing", "scaling", "memory", "limits", "machines", "distribution_speed"):
        assert "synthetic" in (full / "tables" / f"{name}.md").read_text(encoding="utf-8")


def test_special_characters_survive_each_format() -> None:
    table = Table("t", "50 % of *all* & more_than_that", ["a#", "b"], [["x|y", "2 µs \u00d7 3"]])
    assert r"50 \% of *all* \& more\_than\_that" in latex(table) and r"$\times$" in latex(table)
    assert r"50 % of \*all\* & more\_than\_that" in typst(table)
    assert r"x\|y" in markdown(table)
