"""All verdicts, ``claims.csv``, each with when its rule last changed."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

from octopus_study.measure._files import atomic_text
from octopus_study.report.claims.changes import Change, is_younger, recorded
from octopus_study.report.claims.judge import judge
from octopus_study.report.claims.judgement import Judgement
from octopus_study.report.claims.rules import load_claims
from octopus_study.report.frame import Frame, Key


def build_claims(numbers: str | Path, claims_yaml: str | Path, out: str | Path) -> Path:
    """Judge every claim on every machine and write ``claims.csv``.

    Parameters
    ----------
    numbers : path
        ``numbers.csv``.
    claims_yaml : path
        ``config/claims.yaml``.
    out : path
        The CSV to write: one row per claim and machine.
    """
    judgements = judge_all(Frame.read(numbers), claims_yaml)
    with atomic_text(Path(out)) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(Judgement._fields)
        writer.writerows(judgements)
    return Path(out)


def judge_all(frame: Frame, claims_yaml: str | Path) -> list[Judgement]:
    """Return the verdict on every claim on every machine, with the date of its rule."""
    changes = recorded(claims_yaml, frame.__getitem__)
    digest = hashlib.sha256(Path(claims_yaml).read_bytes()).hexdigest()
    verdicts = (judgement for claim in load_claims(claims_yaml) for judgement in judge(claim, frame))
    return [_dated(judgement, changes, frame, digest) for judgement in verdicts]


def _dated(judgement: Judgement, changes: dict[str, Change], frame: Frame, digest: str) -> Judgement:
    """Add when the rule last changed, and whether that was after the rows that it judges: a run that recorded the
    digest of this very file began with its rules."""
    change = changes.get(judgement.claim_id)
    if change is None:
        return judgement
    run = Key(judgement.scope, judgement.study)
    same = frame.text(run.but(quantity="rules")) == digest
    younger = "" if same or not is_younger(change, frame.text(run.but(quantity="started"))) else "yes"
    return judgement._replace(changed=change.changed, commit=change.commit, younger=younger)
