"""The tables, written as Typst and Markdown."""

from __future__ import annotations

from pathlib import Path

from octopus_study.measure._files import atomic_text
from octopus_study.report import studies
from octopus_study.report.claims import read_claims
from octopus_study.report.frame import Frame
from octopus_study.report.tables import overview
from octopus_study.report.tables.spec import Spec, build
from octopus_study.report.tables.writers import Table, markdown, typst


def names() -> list[str]:
    """Return the names of all tables."""
    of_studies = [name for report in studies.reports().values() for name in report.tables]
    return ["machines", *of_studies, *overview.CLAIMS]


def build_tables(numbers: str | Path, claims: str | Path, out_dir: str | Path) -> list[Path]:
    """Write every table in both formats and return the paths.

    Parameters
    ----------
    numbers : path
        ``numbers.csv``.
    claims : path
        ``claims.csv``.
    out_dir : path
        Folder that gets ``<name>.typ`` and ``<name>.md`` for each of :func:`names`.
    """
    frame, judgements = Frame.read(numbers), read_claims(claims)
    tables = {"machines": overview.machines(frame)}
    for report in studies.reports().values():
        tables |= {name: make(table, frame) for name, table in report.tables.items()}
    tables |= {name: overview.claims(name, frame, judgements) for name in overview.CLAIMS}
    return [path for name, table in tables.items() for path in _write(name, table, Path(out_dir))]


def make(table: Spec | overview.Maker, frame: Frame) -> Table:
    """Return the table of a specification, or that which a function makes."""
    return build(table, frame) if isinstance(table, Spec) else table(frame)


def _write(name: str, table: Table, folder: Path) -> list[Path]:
    texts = {".typ": typst(name, table), ".md": markdown(table)}
    for suffix, text in texts.items():
        with atomic_text(folder / f"{name}{suffix}") as stream:
            stream.write(text)
    return [folder / f"{name}{suffix}" for suffix in texts]
