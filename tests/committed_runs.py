"""Runs for tests: few blocks of the committed rows of a GPU and a CPU, under any name and data set."""

import hashlib
import json
from collections.abc import Collection
from functools import cache
from pathlib import Path

import pandas as pd

from octopus_study.measure.dependence import PROCESS_BLOCKS
from octopus_study.measure.rows import read_rows
from octopus_study.names import STUDIES
from octopus_study.report.studies import report_of

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = ROOT / "data" / "published"
REFERENCE = ROOT / "data" / "reference"
CLAIMS = ROOT / "config" / "claims.yaml"
PAPER = ROOT / "paper"

BASIS = ("stage_timing", "distribution")  # studies that every report has
GPU, CPU = "nvidia-h200", "intel-xeon-2c"
MACHINES = {"gpu": GPU, "cpu": CPU}
BLOCKS = 24  # of all processes: enough for a verdict
COMMIT = "0123456789abcdef0123456789abcdef01234567"  # of all studies
SYNTHETIC = {"visdrone-val": "synthetic-visdrone", "sentinel2-b04": "synthetic-sentinel2"}


def write_run(
    root: Path, machine: str, kind: str, synthetic: bool = False, only: Collection[str] = (), whole: bool = False
) -> Path:
    """Write the studies of one machine, or those of `BASIS` and `only`, under ``root/<machine>`` and return that
    folder; `synthetic` data may stand in for the real ones, and the rows be `whole`."""
    folder = root / machine
    folder.mkdir(parents=True, exist_ok=True)
    for study in {*BASIS, *only} if only else STUDIES:
        path = REFERENCE / MACHINES[kind] / f"{study}.csv"
        record = json.loads(path.with_suffix(".json").read_text("utf-8"))
        record["machine"]["id"], record["git"]["commit"] = machine, COMMIT
        for data in record["datasets"] if synthetic else ():
            data.update(dataset=SYNTHETIC.get(data["dataset"], data["dataset"]), synthetic=True)
        (folder / f"{study}.json").write_text(json.dumps(record))
        rows = read_rows(path) if whole else few_blocks(path)
        write(folder / f"{study}.csv", rows.replace({"dataset": SYNTHETIC}) if synthetic else rows)
    return folder


@cache
def few_blocks(path: Path) -> pd.DataFrame:
    """Return the first blocks of each process; where a block is an index or a window, all."""
    rows, report = read_rows(path), report_of(path.stem)
    indexed = rows[["quantity", "layer"]].isin(report.indexed).any(axis=1)
    most = BLOCKS / (rows.loc[~indexed, "block"] // PROCESS_BLOCKS).nunique()
    return rows if report.windows else rows[indexed | (rows["block"] % PROCESS_BLOCKS < most)]


def of_one_process(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows as if one process had measured all of their blocks."""
    process, block = rows["block"] // PROCESS_BLOCKS, rows["block"] % PROCESS_BLOCKS
    return rows.assign(block=block + process * (1 + block[process > 0].max() if process.any() else 0))


def write(table: Path, rows: pd.DataFrame) -> Path:
    """Write rows as those that were measured."""
    rows.to_csv(table, index=False, lineterminator="\n")
    sign(table)
    return table


def sign(table: Path) -> None:
    """Let the provenance of a table say that these are the rows that were measured."""
    path = table.with_suffix(".json")
    record = json.loads(path.read_text())
    content = table.read_bytes()
    record["results"] |= {"sha256": hashlib.sha256(content).hexdigest(), "rows": content.count(b"\n") - 1}
    path.write_text(json.dumps(record))


def edit_record(path: Path, **changes: object) -> None:
    """Change entries of a provenance, named by their place with a double underscore between levels."""
    record = json.loads(path.read_text())
    for place, value in changes.items():
        *outer, last = place.split("__")
        part = record
        for name in outer:
            part = part[name]
        part[last] = value
    path.write_text(json.dumps(record))
