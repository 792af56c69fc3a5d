"""How every figure looks: one set of sizes, one way to save."""

import textwrap
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from matplotlib.transforms import Bbox

from octopus_study.measure._files import whole_files
from octopus_study.report.charts.palette import GREY, VERMILION
from octopus_study.report.frame import Number

DPI = 200  # of a PNG
SHAPING = ("GDEF", "GPOS", "GSUB")  # tables of a font
WIDTH = 7.2  # inches: the text of the paper
TALLEST = 9.0  # inches: a figure that shares a page with its caption, without footer and stamp
DIFFERENT = {"Different answer": {"color": GREY, "markerfacecolor": "white"}}  # in a legend
# Behind words that a line may cross.
BEHIND = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
RC = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "pdf.fonttype": 42,
    "svg.hashsalt": "octopus",
}


def new_figure(height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """Return a figure of the given size in inches and its axes (always a 2-D array). Figures are made without pyplot,
    so that drawing changes no global state and needs no display."""
    with mpl.rc_context(RC):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        FigureCanvasAgg(figure)
        # A legend outside of the axes is only kept clear of them within a subfigure.
        axes = figure.subfigures().subplots(rows, columns, squeeze=False, **options)
    return figure, axes


def finish(figure: Figure, footer: str, synthetic: bool, real: str = "VisDrone") -> Bbox:
    """Write below the figure its note and what it shows, stamp it where data are synthetic and stand in for `real`
    ones, and return the area to save. Footer and stamp lie outside of the laid-out figure, so they can't cover
    anything."""
    width, height = figure.get_size_inches()
    text = textwrap.fill(f"{figure.get_label()} {footer}".strip(), round(20 * width))
    figure.text(0.005, -0.04 / height, text, fontsize=6.5, color=GREY, va="top")
    below, above = 0.08 + 0.12 * (text.count("\n") + 1), 0.0
    if synthetic:
        above = 0.24
        style = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": VERMILION}
        note = f"synthetic: generated data stand in for {real} on this machine"
        figure.text(
            1 - 0.08 / width, 1 + 0.12 / height, note, ha="right", va="center", fontsize=7, color=VERMILION, bbox=style
        )
    return Bbox([[0, -below], [width, height + above]])


def save(figure: Figure, stem: Path, area: Bbox) -> tuple[Path, Path]:
    """Save as PDF (vector, without a date, so that equal data give equal files) and PNG. The PDF is cut off above the
    footer: it goes into a paper, whose caption says the same."""
    _leave_shaping_out()
    paper = Bbox([[area.x0, 0], [area.x1, area.y1]])
    with mpl.rc_context(RC), whole_files(stem.parent) as folder:
        pdf, png = folder / f"{stem.name}.pdf", folder / f"{stem.name}.png"
        figure.set_dpi(DPI)
        if figure.axes:
            figure.get_layout_engine().execute(figure)
        # With an engine a figure is drawn twice for each file, first to be laid out.
        figure.set_layout_engine(None)
        figure.savefig(png, dpi=DPI, bbox_inches=area)
        figure.savefig(pdf, metadata={"CreationDate": None}, bbox_inches=paper)
    return stem.parent / pdf.name, stem.parent / png.name


@cache
def _leave_shaping_out() -> None:
    """Leave the tables of ligatures, kerning and marks out of the fonts in PDFs: letters there are placed already, and
    to thin these tables out takes longer than all else about a font."""
    from fontTools.subset import Options  # as matplotlib does when it writes a PDF

    Options._drop_tables_default = [*Options._drop_tables_default, *SHAPING]


def title(axis: Axes, text: str, width: int = 26) -> None:
    """Set a title that wraps, for panels that stand side by side."""
    axis.set_title(textwrap.fill(text, width))


def errors(numbers: list[Number], scale: float = 1.0) -> list[list[float]]:
    """Return distances from the value to both ends of the interval, as matplotlib wants; zero without
    interval."""
    ends = [
        (number.value - number.low, number.high - number.value) if number.low == number.low else (0.0, 0.0)
        for number in numbers
    ]
    return [[max(0.0, scale * low) for low, _ in ends], [max(0.0, scale * high) for _, high in ends]]


def stacked(charts: list[float], legend: float, note: str = "") -> tuple[Figure, list[Any], Any]:
    """Return a figure with a part per chart (heights in inches), and a part for a legend below them. Each has its own
    room, so that none can cover another. `note` becomes part of the footer: the paper's captions and tables say it."""
    heights = [*charts, legend]
    result, _ = new_figure(sum(heights))
    result.clear()
    result.set_label(note)
    parts = list(result.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0])
    return result, parts[:-1], parts[-1]


def row_height(wanted: float, rows: int, rest: float) -> float:
    """Return the height of a row in inches: the wanted one, or less where all rows and `rest` need more than a page."""
    return max(min(wanted, (TALLEST - rest) / rows), wanted / 2)


def per_machine(height: float, machines: int) -> list[float]:
    """Return the heights of as many rows of panels; more than two are lower, so that they share a page with text."""
    return [height * (1 if machines < 3 else 0.7)] * machines


def legend_of(part: Any, axes: list[Axes], columns: int, **options: Any) -> None:
    """Fill the part of a legend with the entries of some axes, each label once."""
    entries = _entries(axes)
    part.legend(entries.values(), entries.keys(), loc="center", ncols=columns, **options)


def legend_of_looks(part: Any, looks: Mapping[str, Mapping[str, Any]], columns: int = 0) -> None:
    """Fill the part of a legend with marks that look as those drawn, in one line or in some columns."""
    handles = [
        Line2D([], [], label=label, linestyle="none", **({"marker": "o"} | look)) for label, look in looks.items()
    ]
    part.legend(handles=handles, loc="center", ncols=columns or len(handles), handletextpad=0.3, columnspacing=1.4)


def empty(sentence: str) -> Figure:
    """Return a figure of one sentence: there is nothing to draw."""
    return words(new_figure(1.2)[0], sentence)


def heading(part: Any, text: str) -> None:
    """Write a machine's name over its row of panels."""
    part.suptitle(text, fontsize=8.5, fontweight="bold", x=0.005, ha="left")


def words(figure: Figure, sentence: str) -> Figure:
    """Write a sentence where there is nothing to draw."""
    figure.clear()
    figure.text(0.5, 0.5, textwrap.fill(sentence, 90), ha="center", va="center", color=GREY)
    return figure


def bottom_legend(axes: list[Axes], columns: int, **options: Any) -> None:
    """Put one legend for all axes below them, each label once."""
    entries = _entries(axes)
    axes[0].figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns, **options)


def _entries(axes: list[Axes]) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    return entries


def plain_log(axis: Any, narrow: bool = False) -> None:
    """Label a logarithmic axis with plain numbers; over less than two decades also between the powers of ten, in a
    narrow panel fewer of them."""
    low, high = sorted(axis.get_view_interval())
    decades = high / low if low > 0 else float("inf")
    steps = (1.0,) if decades >= 100 else (1.0, 3.0) if narrow and decades >= 20 else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def near_log(axis: Any) -> None:
    """Label a logarithmic axis as `plain_log` does; over less than a factor of four, where powers of ten
    and their halves are too few, at even distances."""
    low, high = sorted(axis.get_view_interval())
    plain_log(axis, narrow=True)
    if low > 0 and high / low < 4:
        axis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10], min_n_ticks=3))
        axis.set_minor_locator(NullLocator())
