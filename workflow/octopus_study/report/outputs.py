"""What readers see: the tables as Typst and Markdown, the figures as PDF and PNG, found by name in the reports of the
studies."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from octopus.errors import InputError
from octopus_study.measure._files import atomic_text
from octopus_study.report import studies
from octopus_study.report.charts import style
from octopus_study.report.claims import Judgement, read_claims
from octopus_study.report.frame import Frame
from octopus_study.report.missing import footer, no_run
from octopus_study.report.study import Chart
from octopus_study.report.tables import overview, verdicts
from octopus_study.report.tables.spec import make
from octopus_study.report.tables.writers import Table, markdown, typst


def table_names() -> list[str]:
    """Return the names of all tables."""
    return [*tables_of_numbers(), *verdicts.table_names()]


def build_tables(numbers: str | Path, claims: str | Path, out_dir: str | Path) -> list[Path]:
    """Write every table of ``numbers.csv`` and ``claims.csv`` as ``<name>.typ`` and ``<name>.md`` and return the
    paths."""
    made = tables_of(Frame.read(numbers), read_claims(claims))
    texts = {Path(out_dir) / file: text for name, table in made.items() for file, text in written(name, table).items()}
    for path, text in texts.items():
        with atomic_text(path) as stream:
            stream.write(text)
    return list(texts)


def tables_of(frame: Frame, judgements: list[Judgement]) -> dict[str, Table]:
    """Return every table by name."""
    of_numbers = {name: maker(frame) for name, maker in tables_of_numbers().items()}
    return of_numbers | verdicts.tables_of(frame, judgements)


def tables_of_numbers() -> dict[str, Callable[[Frame], Table]]:
    """Return what makes each table of numbers; the others show verdicts."""
    of_studies = (item for report in studies.reports().values() for item in report.tables.items())
    return {"machines": overview.machines} | {name: partial(make, table) for name, table in of_studies}


def written(name: str, table: Table) -> dict[str, str]:
    """Return a table as the text of each of its files."""
    return {f"{name}.typ": typst(name, table), f"{name}.md": markdown(table)}


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
    told = (Frame.read(numbers), Path(out_dir))
    with ProcessPoolExecutor(processes, get_context("fork"), _TOLD.append, (told,)) as pool:
        list(pool.map(_draw_told, figures()))


_TOLD: list[tuple[Frame, Path]] = []  # of a process of `draw_all`


def _draw_told(name: str) -> None:
    frame, folder = _TOLD[-1]
    _draw(name, frame, folder / name)


def _draw(name: str, frame: Frame, stem: Path) -> tuple[Path, Path]:
    figure, area = figure_of(name, frame)
    return style.save(figure, stem, area)


def figure_of(name: str, frame: Frame) -> tuple[Figure, Bbox]:
    """Return a figure of the numbers, and its area to save; see :func:`draw`."""
    study, chart = figures()[name]
    shows = frame.shown(study) or chart.published
    with mpl.rc_context(style.RC):
        figure = chart.draw(frame) if shows else style.empty(no_run(study))
        below = (chart.footer or footer(study))(frame)
        synthetic = chart.synthetic(frame) if chart.synthetic else is_synthetic(frame, study)
        return figure, style.finish(figure, below, synthetic, chart.real)


def is_synthetic(frame: Frame, study: str) -> bool:
    """Say whether any number of a study rests on the generated stand-in for real data; a run that measured nothing has
    none."""
    stand_ins = [m for m in frame.shown(study) if frame.text(f"{m}.{study}.synthetic") == "yes"]
    return any(number.study == study and number.machine in stand_ins and number.known for number in frame)
