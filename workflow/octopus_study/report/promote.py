"""Copying a vetted run into the reference results."""

from __future__ import annotations

import shutil
from pathlib import Path

from octopus_study.errors import DataError, MeasureError
from octopus_study.measure.provenance import validate_provenance
from octopus_study.measure.rows import read_rows, validate_rows
from octopus_study.power.lint import lint_file


def promote(results_dir: str | Path, reference_dir: str | Path) -> Path:
    """Copy ``results_dir`` to ``reference_dir/<machine>``, when it may stand as a reference.

    Parameters
    ----------
    results_dir : path
        ``data/results/<machine>``.
    reference_dir : path
        ``data/reference``.

    Returns
    -------
    Path
        The folder of the machine under `reference_dir`.

    Raises
    ------
    DataError
        There is nothing to promote, or a study may not be a reference: it rests on synthetic objects, comes
        from uncommitted code, lacks its provenance, breaks the schema, or holds energies that the results
        linter refuses. Nothing is copied then.
    """
    folder = Path(results_dir)
    files = sorted(folder.glob("*.csv"))
    if not files:
        raise DataError(f"No results to promote in {folder}: expected one <study>.csv per study.")
    reasons = [f"{path.name}: {reason}" for path in files if (reason := refusal(path))]
    if reasons:
        raise DataError(f"{folder} can't become a reference. " + "; ".join(reasons) + ".")
    target = Path(reference_dir) / folder.name
    target.mkdir(parents=True, exist_ok=True)
    for path in files:
        shutil.copyfile(path, target / path.name)
        shutil.copyfile(path.with_suffix(".json"), target / path.with_suffix(".json").name)
    return target


def refusal(rows_path: Path) -> str:
    """Say why one study may not become a reference; empty when it may."""
    try:
        provenance = validate_provenance(rows_path.with_suffix(".json"))
        validate_rows(rows_path)
        findings = lint_file(rows_path)
    except MeasureError as error:
        return str(error).rstrip(".")
    if provenance["git"]["dirty"] is not False:
        return f"its code was not committed ({provenance['git']['reason'] or 'the git tree was dirty'})"
    if findings:
        return f"the results linter refuses it ({'; '.join(map(str, findings))})"
    stand_ins = sorted(
        name for name in read_rows(rows_path)["dataset"].unique() if name.startswith("synthetic-")
    )
    return f"it rests on synthetic data ({', '.join(stand_ins)})" if stand_ins else ""
