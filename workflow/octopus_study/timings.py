"""How long steps take: as long as they took where they were timed (`config/timings.tsv`) or the references measured."""

import csv
import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

TIMINGS = Path("config/timings.tsv")
TARGETS = {"core": "paper", "full": "paper EFFORT=full"}
REPORT = "report"  # the step after the studies: numbers, figures, tables, page and PDFs


class Timing(NamedTuple):
    """One step of one target of `make` on one machine."""

    target: str  # what follows `make`
    device: str  # ``cpu`` or ``cuda``
    step: str  # a study, `install`, `report`, or `all` for the whole command, installation included
    seconds: int
    where: str  # machine and cores
    commit: str
    day: str


def read(path: Path = TIMINGS) -> list[Timing]:
    """Return what `workflow/scripts/timings.py` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [Timing(**{**row, "seconds": int(row["seconds"])}) for row in rows]


def seconds_of(provenance: dict[str, Any]) -> float:
    """Return how long a study took, from its record."""
    begin, end = (datetime.fromisoformat(provenance[key]) for key in ("started", "ended"))
    return (end - begin).total_seconds()


def expected(step: str, device: str, effort: str, reference: Path, timings: Iterable[Timing]) -> float | None:
    """Return how long a step is expected to take: as in a timed run of that effort, or as where references measured,
    and the report as in any timed run; None where that isn't known."""
    target = TARGETS.get(effort)
    timed = [row.seconds for row in timings if row.step == step and (step == REPORT or row[:2] == (target, device))]
    if not timed and effort == "full":
        records = [json.loads(path.read_text()) for path in sorted(reference.glob(f"*/{step}.json"))]
        timed = [seconds_of(record) for record in records if record["machine"]["device"] == device]
    return median(timed) if timed else None


def rounded(seconds: float | None) -> str:
    """Return a time for a reader; empty where it isn't known."""
    if seconds is None:
        return ""
    return f"about {seconds / 60:.0f} min" if seconds > 90 else f"about {max(seconds, 1):.0f} s"


def remaining(seconds: Iterable[float | None]) -> str:
    """Return how long several steps take together, "at least" where some time isn't known; empty where none is."""
    steps = list(seconds)
    known = [time for time in steps if time is not None]
    return f"{'at least ' * (len(known) < len(steps))}{rounded(sum(known))}" if known else ""
