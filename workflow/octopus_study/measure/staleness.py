"""What code a rule's result depends on, as a digest: a change of that code makes the result stale, no other does."""

from __future__ import annotations

from pathlib import Path

from octopus_study.measure.digest import source_digest
from octopus_study.measure.imports import imported

LIBRARY, ARTIFACT = "octopus", "workflow/octopus_study"
# The settings come as parameters of a rule, and the list of the studies decides no value.
NOT_CODE = ("octopus_study.config", "octopus_study.studies")


def data_code(root: Path | None = None) -> str:
    """Digest of what gets the data; `root` is the checkout, the one of this package by default."""
    return _digest("data", root=root)


def study_code(study: str, root: Path | None = None) -> str:
    """Digest of what a study runs: its folder, how it is measured, the peers that it names, and the library."""
    return _digest(f"studies/{study}", "studies/context.py", "measure", root=root, library=True)


def report_code(root: Path | None = None) -> str:
    """Digest of what makes numbers, tables, figures, claims and the paper of stored rows."""
    return _digest("report", root=root)


def _digest(*parts: str, root: Path | None, library: bool = False) -> str:
    files = imported([f"{ARTIFACT}/{part}" for part in parts], root, without=NOT_CODE)
    return source_digest([*files, LIBRARY] if library else files, root)
