"""A verdict as it is written down: a row of ``claims.csv``."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

from octopus.errors import InputError
from octopus_study.report.claims.outcome import Verdict


class Judgement(NamedTuple):
    """The verdict on one claim on one machine: a row of ``claims.csv``.

    Attributes
    ----------
    claim_id, claim, source, kind, study : str
        As in ``config/claims.yaml``.
    scope, machine : str
        First part of the machine's ids, and its name.
    rule, target, measured : str
        What the rule allows, what was published or set, and what was measured.
    verdict, reason : str
        `reason` says why a verdict is no plain one.
    dataset : str
    """

    claim_id: str
    claim: str
    source: str
    kind: str
    scope: str
    machine: str
    rule: str
    target: str
    measured: str
    verdict: Verdict
    reason: str
    dataset: str
    study: str


def read_claims(path: str | Path) -> list[Judgement]:
    """Read ``claims.csv``.

    Raises
    ------
    InputError
        The file has other columns.
    """
    with open(path, newline="", encoding="utf-8") as stream:
        header, *records = csv.reader(stream)
    if tuple(header) != Judgement._fields:
        raise InputError(
            f"{path} has the columns {header}, not {list(Judgement._fields)}: run `octopus report claims` again."
        )
    return [Judgement._make(record) for record in records]
