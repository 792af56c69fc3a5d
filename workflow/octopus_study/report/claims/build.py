"""All verdicts, ``claims.csv``."""

import csv
import json
from pathlib import Path

from octopus_study.measure._files import atomic_text
from octopus_study.report.claims.judge import judge
from octopus_study.report.claims.judgement import Judgement
from octopus_study.report.claims.rules import load_claims
from octopus_study.report.claims.tally import tally
from octopus_study.report.frame import Frame


def build_claims(numbers: str | Path, claims_yaml: str | Path, out: str | Path) -> Path:
    """Judge every claim on every machine and write ``claims.csv``, and beside it, as JSON, how many ended how."""
    judgements = judge_all(Frame.read(numbers), claims_yaml)
    with atomic_text(Path(out)) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(Judgement._fields)
        writer.writerows(judgements)
    with atomic_text(Path(out).with_suffix(".json")) as stream:
        json.dump(tally(judgements), stream, indent=1)
    return Path(out)


def judge_all(frame: Frame, claims_yaml: str | Path) -> list[Judgement]:
    """Return the verdict on every claim on every machine."""
    return [judgement for claim in load_claims(claims_yaml) for judgement in judge(claim, frame)]
