"""A verdict as it is written down: a row of ``claims.csv``."""

import csv
from pathlib import Path
from typing import NamedTuple

from octopus.errors import InputError
from octopus_study.report.claims.outcome import Verdict


class Judgement(NamedTuple):
    """The verdict on one claim of ``config/claims.yaml`` on one machine: a row of ``claims.csv``."""

    claim_id: str
    claim: str
    source: str
    kind: str
    scope: str  # first part of the machine's ids
    machine: str
    rule: str  # what it allows
    target: str  # what was published or set
    measured: str
    verdict: Verdict
    reason: str  # why a verdict is no plain one
    dataset: str
    study: str
    dated: str  # the day of the rule


def read_claims(path: str | Path) -> list[Judgement]:
    """Read ``claims.csv``."""
    with open(path, newline="", encoding="utf-8") as stream:
        header, *records = csv.reader(stream)
    if tuple(header) != Judgement._fields:
        raise InputError(
            f"{path} has the columns {header}, not {list(Judgement._fields)}: run `octopus report claims` again."
        )
    return [Judgement._make(record) for record in records]
