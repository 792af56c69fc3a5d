"""What readers see: the tables as Typst and Markdown, the figures as PDF and PNG, found by name in the reports of the
studies."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from octopus.errors import InputError
from octopus_study.measure._files import atomic_text
from octopus_study.report import studies
from octopus_study.report.charts.spec import Chart
from octopus_study.report.claims import Judgement, read_claims
from octopus_study.report.frame import Frame
from octopus_study.report.missing import no_run
from octopus_study.report.tables import overview, verdicts
from octopus_study.report.tables.spec import make
from octopus_study.report.tables.writers import Table, markdown, typst

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

TABLE_SUFFIXES = (".typ", ".md")


def table_names() -> list[str]:
    """Return the names of all tables."""
    of_studies = [name for report in studies.reports().values() for name in report.tables]
    return ["machines", *of_studies, *verdicts.table_names()]


def build_tables(numbers: str | Path, claims: str | Path, out_dir: str | Path) -> list[Path]:
    """Write every table of ``numbers.csv`` and ``claims.csv`` as ``<name>.typ`` and ``<name>.md`` and return the
    paths."""
    tables = tables_of(Frame.read(numbers), read_claims(claims))
    return [path for name, table in tables.items() for path in _write(name, table, Path(out_dir))]


def tables_of(frame: Frame, judgements: list[Judgement]) -> dict[str, Table]:
    """Return every table by name."""
    tables = {"machines": overview.machines(frame)}
    for report in studies.reports().values():
        tables |= {name: make(table, frame) for name, table in report.tables.items()}
    return tables | verdicts.tables_of(frame, judgements)


def _write(name: str, table: Table, folder: Path) -> list[Path]:
    paths = [folder / f"{name}{suffix}" for suffix in TABLE_SUFFIXES]
    for path, text in zip(paths, (typst(name, table), markdown(table)), strict=True):
        with atomic_text(path) as stream:
            stream.write(text)
    return paths


def figures() -> dict[str, tuple[str, Chart]]:
    """Return all figures by name, each with its study."""
    return {
        name: (study, chart) for study, report in studies.reports().items() for name, chart in report.figures.items()
    }


def draw(name: str, numbers: str | Path, out_stem: str | Path) -> tuple[Path, Path]:
    """Draw one of :func:`figures` from ``numbers.csv`` at `out_stem`, and return the paths of its PDF and PNG."""
    if name not in figures():
        raise InputError(f"There is no figure {name!r}; the figures are {', '.join(figures())}.")
    return _draw(name, Frame.read(numbers), Path(out_stem))


def draw_all(numbers: str | Path, out_dir: str | Path, processes: int) -> None:
    """Draw all figures into a folder, several side by side; see :func:`draw`."""
    from octopus_study.report.charts import style  # noqa: F401  (forked processes then have it, and the numbers)

    told = (Frame.read(numbers), Path(out_dir))
    with ProcessPoolExecutor(processes, get_context("fork"), _TOLD.append, (told,)) as pool:
        list(pool.map(_draw_told, figures()))


_TOLD: list[tuple[Frame, Path]] = []  # of a process of `draw_all`


def _draw_told(name: str) -> None:
    frame, folder = _TOLD[-1]
    _draw(name, frame, folder / name)


def _draw(name: str, frame: Frame, stem: Path) -> tuple[Path, Path]:
    from octopus_study.report.charts import style

    figure, area = figure_of(name, frame)
    return style.save(figure, stem, area)


def figure_of(name: str, frame: Frame) -> tuple[Figure, Bbox]:
    """Return a figure of the numbers, and its area to save; see :func:`draw`."""
    import matplotlib as mpl

    from octopus_study.report.charts import style

    study, chart = figures()[name]
    shows = frame.shown(study) or chart.published
    with mpl.rc_context(style.RC):
        figure = chart.draw(frame) if shows else style.empty(no_run(study))
        footer = chart.footer(frame) if chart.footer else _footer(frame, study)
        synthetic = chart.synthetic(frame) if chart.synthetic else is_synthetic(frame, study)
        return figure, style.finish(figure, footer, synthetic, chart.real)


def _footer(frame: Frame, study: str) -> str:
    shown = frame.text(f"shown.{study}")
    return f"Measured on: {shown}." if shown else "Nothing was measured."


def is_synthetic(frame: Frame, study: str) -> bool:
    """Say whether any number of a study rests on the generated stand-in for real data; a run that measured nothing has
    none."""
    stand_ins = [m for m in frame.shown(study) if frame.text(f"{m}.{study}.synthetic") == "yes"]
    return any(number.study == study and number.machine in stand_ins and number.known for number in frame)
