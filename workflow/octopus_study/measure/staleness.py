"""What code a rule's result depends on, as a digest: a change of that code makes the result stale, no other does."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from octopus_study.measure.digest import source_digest
from octopus_study.measure.imports import imported

LIBRARY, ARTIFACT = "octopus", "workflow/octopus_study"
# The settings come as parameters of a rule; the list of the studies, names and units decide no value.
NOT_OF_STUDIES = tuple(f"octopus_study.{name}" for name in ("config", "studies", "names", "units"))


def data_code(root: Path | None = None) -> str:
    """Digest of what gets the data; `root` is the checkout, the one of this package by default."""
    return _digest("data", root=root)


def study_code(study: str, named: Iterable[str] = (), root: Path | None = None) -> str:
    """Digest of what a study runs: its folder, how it is measured, the peers that it names, and the library.

    Parameters
    ----------
    study : str
    named : iterable of str
        Further code, in the artifact's folder, which the study has by names that no source spells out.
    root : Path, optional
    """
    shared = (f"studies/{name}.py" for name in ("comparison", "context", "processes"))
    parts = (f"studies/{study}", *shared, "measure", *named)
    return _digest(*parts, root=root, without=NOT_OF_STUDIES, also=(LIBRARY,))


def report_code(root: Path | None = None) -> str:
    """Digest of what makes numbers, tables, figures, claims and the paper of stored rows."""
    return _digest("report", root=root)


def _digest(*parts: str, root: Path | None, without: Iterable[str] = (), also: Iterable[str] = ()) -> str:
    files = imported([f"{ARTIFACT}/{part}" for part in parts], root, without)
    return source_digest([*files, *also], root)
