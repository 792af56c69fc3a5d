"""When each rule last changed, and by which commit: ``claims_changed.csv`` beside the claims.

The file is made from git's history of the claims, so that it survives where there is no git, and so that nobody dates a
rule by hand. What decides is a rule with the words of its claim: its numbers, what it allows, where it can be measured.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from octopus_study.measure._files import atomic_text
from octopus_study.report.claims.rules import Lookup, Rule, claim_records
from octopus_study.report.history import versions

RECORD = "claims_changed.csv"
_FIELDS = ("number", "each", "operator", "value", "published", "predicted", "tolerance", "room", "unit")
# What a rule never meant until it had it, so that older ones have no part of it in their digest.
_LATER = ("noise", "precondition", "proxy", "exact")


class Change(NamedTuple):
    """The last change of a rule.

    Attributes
    ----------
    claim_id : str
    digest : str
        Of the rule as it was left.
    changed : str
        Time of the commit, ISO 8601 with its zone.
    commit : str
    """

    claim_id: str
    digest: str
    changed: str
    commit: str


def read_changes(claims_yaml: str | Path) -> dict[str, Change]:
    """Read the record beside the claims, by claim; empty where there is none."""
    path = Path(claims_yaml).with_name(RECORD)
    if not path.is_file():
        return {}
    with open(path, newline="", encoding="utf-8") as stream:
        return {row["claim_id"]: Change(**row) for row in csv.DictReader(stream)}


def write_changes(claims_yaml: str | Path, number_of: Lookup) -> Path:
    """Write the record of a committed file of claims from git's history.

    Parameters
    ----------
    claims_yaml : path
        In a clone with its whole history.
    number_of : callable
        Gives the number of a published id.

    Raises
    ------
    MeasureError
        There is no history here.
    """
    out = Path(claims_yaml).with_name(RECORD)
    changes = sorted(history(Path(claims_yaml), number_of), key=lambda change: change.claim_id)
    with atomic_text(out) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(Change._fields)
        writer.writerows(changes)
    return out


def history(claims_yaml: Path, number_of: Lookup) -> Iterator[Change]:
    """Yield the last change of each rule of the newest commit, in the order of the file."""
    last: dict[str, Change] = {}
    for commit, changed, text in versions(claims_yaml):
        digests = {str(record["id"]): digest(record, number_of) for record in claim_records(text.decode())}
        known = {name: change for name, change in last.items() if change.digest == digests.get(name)}
        last = {
            name: known.get(name, Change(name, code, changed, commit[:10])) for name, code in digests.items()
        }
    yield from last.values()


def digest(record: dict[str, Any], number_of: Lookup) -> str:
    """Return the digest of what decides in a claim as it is written."""
    fields = {name: record[name] for name in _FIELDS if record.get(name) is not None}
    parts: Any = record.get("unmeasured", "")
    if fields.get("number"):
        if fields["operator"] == "rounds_to" and fields.get("unit") == "fraction" and "value" in fields:
            fields["unit"] = "percent"  # as it was meant when values were typed
        rule = Rule(**fields, why="…")
        parts = sorted(one for part in rule.parts() for one in _judged(rule, part, number_of))
    decides = [
        record["claim"],
        record["study"],
        record["needs"],
        parts,
        *(record[name] for name in _LATER if record.get(name)),
    ]
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:12]


def _judged(rule: Rule, part: str, number_of: Lookup) -> list[tuple[str, ...]]:
    """Return each number with what it must satisfy."""
    if rule.predicted:
        allowed = [rule.predicted, rule.operator, f"{rule.tolerance:g}", f"{rule.room:g}"]
    else:
        low, high, strict, *_ = rule.limits("", part, number_of)
        allowed = [f"{low:.9g}", f"{high:.9g}", str(strict)]
    return [(name, *allowed) for name in rule.parts()[part]]


def recorded(claims_yaml: str | Path, number_of: Lookup) -> dict[str, Change]:
    """Return the last change of every claim of a file; nothing where there is no record.

    Time and commit are empty where the rule isn't the one on record.
    """
    known = read_changes(claims_yaml)
    if not known:
        return {}
    records = claim_records(Path(claims_yaml).read_text(encoding="utf-8"))
    now = {str(record["id"]): digest(record, number_of) for record in records}
    return {
        name: known[name] if name in known and known[name].digest == code else Change(name, code, "", "")
        for name, code in now.items()
    }


def is_younger(change: Change, started: str) -> bool:
    """Say whether a rule changed after a run had started; one that isn't on record did."""
    if not change.changed:
        return True
    return bool(started) and datetime.fromisoformat(change.changed) > datetime.fromisoformat(started)
