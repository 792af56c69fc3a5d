"""The figures: each is a :class:`octopus_study.report.charts.spec.Chart` of a study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from octopus.errors import InputError
from octopus_study.report import studies

if TYPE_CHECKING:
    from octopus_study.report.frame import Frame


def names() -> list[str]:
    """Return the names of all figures."""
    return [name for report in studies.reports().values() for name in report.figures]


def draw(name: str, numbers: str | Path, out_stem: str | Path) -> tuple[Path, Path]:
    """Draw a figure and return the paths of its PDF and PNG.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    numbers : path
        ``numbers.csv``.
    out_stem : path
        Where to write, without suffix.

    Raises
    ------
    InputError
        There is no such figure, or no run of its study and nothing to say about it.
    """
    import matplotlib as mpl

    from octopus_study.report.charts import style
    from octopus_study.report.frame import Frame

    charts = {
        key: (study, one)
        for study, report in studies.reports().items()
        for key, one in report.figures.items()
    }
    if name not in charts:
        raise InputError(f"There is no figure {name!r}; the figures are {', '.join(charts)}.")
    study, chart = charts[name]
    frame = Frame.read(numbers)
    shows = bool(frame.machines(study)) or chart.published
    if not shows and not chart.absent:
        raise InputError(f"The figure {name} needs a run of the study {study}; {numbers} has none.")
    with mpl.rc_context(style.RC):
        figure = chart.draw(frame) if shows else style.empty(chart.absent)
        footer = chart.footer(frame) if chart.footer else _footer(frame, study)
        synthetic = chart.synthetic(frame) if chart.synthetic else _is_synthetic(frame, study)
        area = style.finish(figure, footer, synthetic, chart.real)
    return style.save(figure, Path(out_stem), area)


def _footer(frame: Frame, study: str) -> str:
    shown = frame.text(f"shown.{study}")
    return f"Measured on: {shown}." if shown else "Nothing was measured."


def _is_synthetic(frame: Frame, study: str) -> bool:
    """Say whether any number of a study rests on the generated stand-in for real data; a run that measured nothing has
    none."""
    stand_ins = [m for m in frame.machines(study) if frame.text(f"{m}.{study}.synthetic") == "yes"]
    return any(number.study == study and number.machine in stand_ins and number.known for number in frame)
