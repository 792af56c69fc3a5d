"""List the reference runs that began before the last change of the claims' rules; with ``--strict`` there must be none.

A run that recorded the digest of today's ``config/claims.yaml`` began with these rules, whatever the dates say.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).parents[2]
RULES = "config/claims.yaml"


def main() -> int:
    """Print each such run; return whether that is an error."""
    digest = hashlib.sha256((ROOT / RULES).read_bytes()).hexdigest()
    command = ["git", "log", "-1", "--format=%cI", "--", RULES]
    changed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    if not changed:
        print(f"rules_age: git knows no commit of {RULES}")
        return 0
    records = sorted((ROOT / "data/reference").glob("*/*.json"))
    older = [path for path in records if is_older(json.loads(path.read_text()), digest, changed)]
    print(f"{len(older)} of {len(records)} reference runs began before the rules of {changed}")
    print("".join(f"  {path.relative_to(ROOT / 'data/reference')}\n" for path in older), end="")
    return int("--strict" in sys.argv and bool(older))


def is_older(record: dict, digest: str, changed: str) -> bool:
    """Say whether a run began before the rules changed."""
    same = (record.get("rules") or {}).get("sha256") == digest
    return not same and datetime.fromisoformat(record["started"]) < datetime.fromisoformat(changed)


if __name__ == "__main__":
    sys.exit(main())
