#!/usr/bin/env python3
"""Time targets of make, each in a fresh clone, and write config/timings.tsv: timings.py verify paper test.

Run it while nothing else runs. Rows of other targets and of other devices stay. It needs no package.
"""

import argparse
import csv
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "config/timings.tsv"
COLUMNS = ["target", "device", "step", "seconds", "where", "commit", "day"]


def main() -> None:
    """Time the named targets, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="+", help="what follows make: verify, paper, 'paper EFFORT=full', test")
    for target in parser.parse_args().targets:
        keep(target, timed(target))


def timed(target: str) -> list[dict[str, str]]:
    """Clone, install, run the target, and return its rows."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder, "octopus")
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        installing = seconds(["make", "install"], clone) if target != "test" else 0.0
        running = seconds(["make", *target.split()], clone)
        records = [json.loads(path.read_text()) for path in sorted(clone.glob("data/results/**/*.json"))]
        studies = {record["study"]: lasted(record) for record in records}
        steps = {"all": installing + running} | studies
        if target != "test":
            steps |= {"install": installing, "report": running - sum(studies.values())}
        about = {"target": target, "device": device(records), "where": f"{machine()}, {cores()} cores"}
        about |= {"commit": git(clone), "day": datetime.date.today().isoformat()}
        return [{**about, "step": step, "seconds": f"{value:.0f}"} for step, value in steps.items()]


def seconds(command: list[str], folder: Path) -> float:
    """Run a command and return how long it took."""
    begin = time.monotonic()
    subprocess.run(command, cwd=folder, check=True)
    return time.monotonic() - begin


def lasted(record: dict) -> float:
    """Seconds of a study."""
    begin, end = (datetime.datetime.fromisoformat(record[key]) for key in ("started", "ended"))
    return (end - begin).total_seconds()


def device(records: list[dict]) -> str:
    """What was measured; what measures nothing needs no GPU."""
    return records[0]["machine"]["device"] if records else "cpu"


def machine() -> str:
    """The model of the CPU."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), os.uname().machine)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def git(clone: Path) -> str:
    """The commit that was timed."""
    command = ["git", "rev-parse", "--short=10", "HEAD"]
    return subprocess.run(command, cwd=clone, check=True, capture_output=True, text=True).stdout.strip()


def keep(target: str, rows: list[dict[str, str]]) -> None:
    """Put the rows in the place of those of the same target and device."""
    old = list(csv.DictReader(TABLE.open(), delimiter="\t")) if TABLE.is_file() else []
    old = [row for row in old if (row["target"], row["device"]) != (target, rows[0]["device"])]
    with TABLE.open("w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n")
        table.writeheader()
        table.writerows([*old, *rows])
    print(f"{target}: {int(rows[0]['seconds']) / 60:.1f} minutes", file=sys.stderr)


if __name__ == "__main__":
    main()
