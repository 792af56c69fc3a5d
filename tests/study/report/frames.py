"""Numbers for tests: made by hand, and found by a pattern of their ids; and the lines of a table."""

from __future__ import annotations

import math
import re
from pathlib import Path

from octopus_study.report.frame import Frame, Key, Number, Source, make_number, make_text

SOURCE = Source("reference", "visdrone-val", "s", "")
TIME = Key("m", "stage_timing", "visdrone", 1000, "octopus", "end_to_end", "host")


def number(
    key: Key, unit: str, value: float = math.nan, *ends: float, dataset: str = "visdrone-val"
) -> Number:
    return make_number(key, SOURCE._replace(dataset=dataset), unit, value, *ends)


def text(key: Key, words: str) -> Number:
    return make_text(key, SOURCE, words)


def matching(frame: Frame, pattern: str) -> list[tuple[re.Match[str], Number]]:
    """Return the numbers whose whole id matches a regular expression, with the match."""
    pairs = ((re.fullmatch(pattern, number.id), number) for number in frame)
    return [(match, number) for match, number in pairs if match]


def lines(folder: Path, name: str) -> list[list[str]]:
    """Return the cells of a table in a report's folder, line by line."""
    text = (folder / "tables" / f"{name}.md").read_text(encoding="utf-8")
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"
    ]


def caption(folder: Path, name: str) -> str:
    """Return the caption of a table in a report's folder."""
    return (folder / "tables" / f"{name}.md").read_text(encoding="utf-8").partition("\n")[0]
