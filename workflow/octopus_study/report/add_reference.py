"""Copying a vetted run into the reference results."""

import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from octopus_study.errors import DataError, MeasureError
from octopus_study.measure.provenance import validate_provenance
from octopus_study.measure.rows import read_rows, validate_rows
from octopus_study.names import stand_in
from octopus_study.power.lint import lint_file
from octopus_study.report.frame import SECOND
from octopus_study.report.quiet import loaded, unsteady

APART = timedelta(hours=1)  # of a second run on the same card: by then a shared host is another


def add_reference(
    results_dir: str | Path, reference_dir: str | Path, standard: Mapping[str, Any], second: bool = False
) -> Path:
    """Copy ``results_dir`` (``data/results/<machine>``) to ``reference_dir/<machine>``, when it may stand as a
    reference; return that folder. `standard` holds the settings of a reference by section; a section that it lacks may
    have any. With `second` its studies are second runs of those in the reference, and go to a folder of it, `again`.

    `DataError`, and nothing is copied: there is nothing to add, or a study rests on synthetic objects, comes from
    uncommitted code, lacks its provenance, breaks the schema, was measured on a loaded machine or while a method
    differed from itself, lacks what one of its processes failed to measure, has other settings than the standard, or
    holds energies that the results linter refuses. Or the reference would be of several commits; or a second run has no
    first, or is of the same card within `APART`.
    """
    folder = Path(results_dir)
    files = sorted(folder.glob("*.csv"))
    if not files:
        raise DataError(f"No results to add in {folder}: expected one <study>.csv per study.")
    target = Path(reference_dir) / folder.name
    reasons = [f"{path.name}: {reason}" for path in files if (reason := refusal(path, standard))]
    if not reasons and (mixed := several_commits([] if second else files, target, files if second else ())):
        reasons = [mixed]
    if second:
        reasons = reasons or [f"{path.name}: {why}" for path in files if (why := too_near(path, target / path.name))]
        target /= SECOND
    if reasons:
        raise DataError(f"{folder} can't become a reference. " + "; ".join(reasons) + ".")
    target.mkdir(parents=True, exist_ok=True)
    for path in files:
        shutil.copyfile(path, target / path.name)
        shutil.copyfile(path.with_suffix(".json"), target / path.with_suffix(".json").name)
    return target


def refusal(rows_path: Path, standard: Mapping[str, Any]) -> str:
    """Say why one study may not become a reference; empty when it may."""
    try:
        provenance = validate_provenance(rows_path.with_suffix(".json"))
        validate_rows(rows_path)
        findings = lint_file(rows_path)
    except MeasureError as error:
        return str(error).rstrip(".")
    if failed := provenance["extra"].get("processes", {}).get("failed"):
        return f"of the processes that share its comparisons some failed ({'; '.join(failed)})"
    if provenance["git"]["dirty"] is not False:
        return f"its code was not committed ({provenance['git']['reason'] or 'the git tree was dirty'})"
    if findings:
        return f"the results linter refuses it ({'; '.join(map(str, findings))})"
    rows = read_rows(rows_path)
    stand_ins = sorted(filter(stand_in, rows["dataset"].unique()))
    if stand_ins:
        return f"it rests on synthetic data ({', '.join(stand_ins)})"
    return other_settings(provenance, standard) or loaded(provenance) or unsteady(rows)


def other_settings(provenance: Mapping[str, Any], standard: Mapping[str, Any]) -> str:
    """Say in which settings a study differs from the standard, as in a quick or core run; empty where in none."""
    values = provenance["config"]["values"]
    found = [
        f"{section}.{key} is {values[section].get(key)!r}, not {value!r}"
        for section in ("measure", "crop", provenance["study"])
        for key, value in standard.get(section, {}).items()
        if values[section].get(key) != value
    ]
    return f"it was measured with other settings: {', '.join(found)}" if found else ""


def too_near(again: Path, first: Path) -> str:
    """Say why a study is no second run of another: there is none, or it was on the same card within an hour."""
    if not first.exists():
        return "the reference has no first run of it"
    card, begun = zip(*(_card_and_time(path) for path in (first, again)), strict=True)
    if card[0] != card[1] or abs(begun[1] - begun[0]) >= APART:
        return ""
    return (
        f"its first run was on the same card {abs(begun[1] - begun[0])} before; a second run is at least {APART} apart"
    )


def _card_and_time(path: Path) -> tuple[Any, datetime]:
    provenance = validate_provenance(path.with_suffix(".json"))
    return provenance["machine"]["identity"]["gpu"], datetime.fromisoformat(provenance["started"])


def several_commits(files: Sequence[Path], target: Path, more: Sequence[Path]) -> str:
    """Say which commits a reference would mix, those of studies that stay in it included, and of second runs."""
    kept = [path for path in target.glob("*.csv") if path.name not in {file.name for file in files}]
    studies: dict[str, list[str]] = {}
    for path in sorted([*files, *kept, *more], key=lambda path: path.name):
        commit = validate_provenance(path.with_suffix(".json"))["git"]["commit"]
        studies.setdefault(commit, []).append(path.stem)
    if len(studies) < 2:
        return ""
    listing = ", ".join(f"{commit[:10]} ({' '.join(names)})" for commit, names in studies.items())
    return f"it would mix the code of {len(studies)} commits: {listing}. Measure all studies at one commit"
