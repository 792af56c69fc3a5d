"""How long things take: as long as they took where they were timed (`config/doors.tsv`) or the references measured."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

DOORS = Path("config/doors.tsv")
CORE, FULL = "paper", "paper EFFORT=full"


class Timed(NamedTuple):
    """One step of one door on one machine.

    Attributes
    ----------
    door : str
        What follows `make`.
    device : {"cpu", "cuda"}
    step : str
        A study, or `all` for the whole command, installation included.
    seconds : int
    where : str
        Machine and cores.
    commit, day : str
    """

    door: str
    device: str
    step: str
    seconds: int
    where: str
    commit: str
    day: str


def read(path: Path = DOORS) -> list[Timed]:
    """Return what `workflow/scripts/doors.py` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [Timed(**{**row, "seconds": int(row["seconds"])}) for row in rows]


def seconds_of(provenance: dict[str, Any]) -> float:
    """How long a study took, from its record."""
    begin, end = (datetime.fromisoformat(provenance[key]) for key in ("started", "ended"))
    return (end - begin).total_seconds()


def study_seconds(
    study: str, device: str, door: str, reference: Path, doors: Iterable[Timed]
) -> float | None:
    """How long a study is expected to take: as in a timed run of that door, or as where the references measured."""
    timed = [row.seconds for row in doors if row[:3] == (door, device, study)]
    if not timed and door == FULL:
        records = [json.loads(path.read_text()) for path in sorted(reference.glob(f"*/{study}.json"))]
        timed = [seconds_of(record) for record in records if record["machine"]["device"] == device]
    return median(timed) if timed else None


def said(seconds: float | None) -> str:
    """A time for a reader; empty where nobody knows it."""
    if seconds is None:
        return ""
    return f"about {seconds / 60:.0f} min" if seconds > 90 else f"about {max(seconds, 1):.0f} s"


def left(seconds: Mapping[str, float | None]) -> str:
    """Say how long several studies take together, and which they are; at least so long where some time is unknown."""
    known = [time for time in seconds.values() if time is not None]
    least = "at least " if len(known) < len(seconds) else ""
    return f"{least}{said(sum(known))} left: {', '.join(seconds)}" if known else f"left: {', '.join(seconds)}"
