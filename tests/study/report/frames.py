"""Numbers for tests: made by hand, and found by a pattern of their ids; reports, and the lines of their tables."""

import math
import re
import shutil
from pathlib import Path

from committed_runs import BASIS, CLAIMS, PUBLISHED

from octopus_study.names import STUDIES
from octopus_study.report.build import build_numbers
from octopus_study.report.claims import build_claims
from octopus_study.report.frame import Frame, Key, Number, Source, make_number, make_text
from octopus_study.report.outputs import build_tables

# Files of all studies but the first two.
LATER = shutil.ignore_patterns(*(f"{study}.*" for study in STUDIES if study not in BASIS))
SOURCE = Source("reference", "visdrone-val", "s", "")
TIME = Key("m", "stage_timing", "visdrone", 1000, "octopus", "end_to_end", "host")


def build_report(folder: Path, results: Path | None, reference: Path | None) -> Path:
    """Build numbers, claims and tables into `folder` and return it."""
    build_numbers(results, reference, PUBLISHED, folder / "numbers.csv")
    build_claims(folder / "numbers.csv", CLAIMS, folder / "claims.csv")
    build_tables(folder / "numbers.csv", folder / "claims.csv", folder / "tables")
    return folder


def number(key: Key, unit: str, value: float = math.nan, *ends: float, dataset: str = "visdrone-val") -> Number:
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
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]


def caption(folder: Path, name: str) -> str:
    """Return the caption of a table in a report's folder."""
    return (folder / "tables" / f"{name}.md").read_text(encoding="utf-8").partition("\n")[0]
