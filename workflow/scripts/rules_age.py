"""List the reference runs that began before a rule of their study had its form; with ``--strict`` there must be none.

``--renew`` gives today's date, in ``config/rules.tsv``, to rules that are new or decide something else than before.
"""

import csv
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from octopus_study.report.claims.rules import DATES, load_claims

ROOT = Path(__file__).parents[2]
CLAIMS = ROOT / "config/claims.yaml"


def main() -> int:
    """Print each such run with these claims; return whether that is an error, as a rule without a date is."""
    if "--renew" in sys.argv:
        renew(CLAIMS, datetime.now(UTC))
    claims = load_claims(CLAIMS)
    undated = [claim.id for claim in claims if not claim.dated]
    records = sorted((ROOT / "data/reference").rglob("*.json"))
    older = {path: younger for path in records if (younger := later_rules(json.loads(path.read_text()), claims))}
    print(f"{len(older)} of {len(records)} reference runs began before a rule of their study")
    print(
        "".join(f"  {path.relative_to(ROOT / 'data/reference')}: {' '.join(ids)}\n" for path, ids in older.items()),
        end="",
    )
    print(f"rules without a date, rules_age.py --renew gives them one: {' '.join(undated)}\n" * bool(undated), end="")
    return int(bool(undated) or ("--strict" in sys.argv and bool(older)))


def later_rules(record: dict, claims: list) -> list[str]:
    """Return the claims of a run's study whose rules are younger than the run."""
    began = datetime.fromisoformat(record["started"])
    own = (claim for claim in claims if claim.study == record["study"] and claim.dated)
    return [claim.id for claim in own if datetime.fromisoformat(claim.dated) > began]


def renew(path: Path, now: datetime) -> None:
    """Write the dates: that of a rule which stays as it is stays."""
    rows = [(claim.id, claim.dated or f"{now:%Y-%m-%dT%H:%M}+00:00", claim.digest) for claim in load_claims(path)]
    with open(path.with_name(DATES), "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, delimiter="\t", lineterminator="\n").writerows([("claim", "dated", "digest"), *rows])


if __name__ == "__main__":
    sys.exit(main())
