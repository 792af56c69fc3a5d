"""The figure of the mapping strategies: what each costs against the others, over the number of items."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.names import DISTRIBUTIONS, PUBLISHED_MACHINES, SUBJECT, human
from octopus_study.report.charts import lines, style
from octopus_study.report.charts.palette import BLACK, METHOD_COLORS, METHOD_MARKERS, SKY, YELLOW
from octopus_study.report.frame import Frame, Key, published
from octopus_study.report.view import KERNEL, View, views

STUDY = "mapping"
EVEN = "even"
UNEVEN = tuple(name for name in DISTRIBUTIONS if name != EVEN)
NO_TIMES = "No run of the study mapping that is shown timed a kernel."
# Like for like: block metadata against a search by every thread, both with as many elements per thread; as published,
# that is one.
PAIRS = {"scalar": ("block-metadata-scalar", "thread-search-scalar"), "vector": ("block-metadata", "thread-search")}
_BANDS = {"t4": SKY, "jetson-orin-nano": YELLOW}
# What a line is called -> its pair, or the width of block metadata and search; whose look it has; dashes.
_LINES: dict[str, tuple[tuple[str, str] | str, str, str]] = {
    "Octopus over A": ((SUBJECT, "lookup"), "lookup", "-"),
    "Octopus over B": ((SUBJECT, "thread-search"), "thread-search", "-"),
    "C over B": ("vector", "block-metadata", "--"),
    "C over B, one element in both (as published)": ("scalar", "block-metadata-scalar", "--"),
}


def pair_of(width: str, is_gpu: bool) -> tuple[str, str]:
    """Return block metadata and the search of one width. A CPU reads owners one by one, whatever the search does."""
    method, other = PAIRS[width]
    return (method if is_gpu else "block-metadata", other)


def timed(view: View, distribution: str, operation: str = "multiply") -> list[Key]:
    """Return the kernels of Octopus on a distribution, by ascending number of items."""
    return view.cases(SUBJECT, "kernel", (KERNEL,), order=[f"{distribution}-{operation}"])


def measured(frame: Frame) -> list[View]:
    """Return the machines that timed a kernel."""
    return [view for view in views(frame, STUDY) if any(timed(view, name) for name in UNEVEN)]


def scaling(frame: Frame) -> Figure:
    """Draw what a search by every thread and a lookup table cost against Octopus, and the search against block metadata
    of its width, over the number of items; one row of panels per machine, one panel per distribution; bands are
    published for C over B."""
    shown = measured(frame)
    if not shown:
        return style.empty(NO_TIMES)
    note = " ".join(filter(None, (_note(view) for view in shown)))
    result, parts, legend = style.stacked(style.per_machine(1.95, len(shown)), 0.4, note)
    # A line needs two points.
    panels = [name for name in DISTRIBUTIONS if any(len(timed(view, name)) > 1 for view in shown)]
    drawn = []
    for part, view in zip(parts, shown, strict=True):
        axes = part.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        style.heading(part, f"{view.name}: multiply, float32")
        for axis, name in zip(axes, panels, strict=True):
            _ratios(axis, view, name)
        axes[0].set(yscale="log", ylabel="Ratio of times")
        low, high = axes[0].get_ylim()
        axes[0].set_ylim(min(low, 0.8), max(high, 4.0))
        style.near_log(axes[0].yaxis)
        drawn += list(axes)
    style.legend_of(legend, drawn, 3, fontsize=6.8)
    return result


def _note(view: View) -> str:
    """Name the lines that a machine's rows lack."""
    keys = [key for name in UNEVEN for key in timed(view, name)]
    pairs = {label: _pair(view, line[0]) for label, line in _LINES.items()}
    missing = [
        label
        for label, (method, other) in pairs.items()
        if not any(view.get(key.but(method=method).speedup(other)) for key in keys)
    ]
    return f"Not in the rows of {view.name}: {'; '.join(missing)}." if missing else ""


def _pair(view: View, pair: tuple[str, str] | str) -> tuple[str, str]:
    return pair_of(pair, view.is_gpu) if isinstance(pair, str) else pair


def _ratios(axis: Axes, view: View, distribution: str) -> None:
    for machine, color in _BANDS.items():
        gain = published("block_metadata_gain", machine, "memory-bound", "speedup_over_thread_search")
        band, label = view.frame[gain], f"C over B, {human(PUBLISHED_MACHINES, machine)}, published"
        axis.axhspan(band.low, band.high, color=color, alpha=0.35, linewidth=0, label=label)
    axis.axhline(1, color=BLACK, linewidth=0.7)
    axis.set_title(human(DISTRIBUTIONS, distribution), fontsize=8, fontweight="normal")
    axis.set(xscale="log", xlabel="Items")
    keys = timed(view, distribution)
    counts = [key.n for key in keys]
    named = [n for n in counts if 2 * n not in counts and n / 1.5 not in counts]  # labels need room
    axis.set_xticks(named, [f"{n // 1000} K" if n >= 1000 else str(n) for n in named])
    axis.set_xticks([], minor=True)
    axis.set_visible(bool(keys))
    if not keys:
        return
    for label, (pair, named, dashes) in _LINES.items():
        method, other = _pair(view, pair)
        numbers = [(key.n, view.get(key.but(method=method).speedup(other))) for key in keys]
        look = {"color": METHOD_COLORS[named], "marker": METHOD_MARKERS[named], "linestyle": dashes}
        points = [(n, number) for n, number in numbers if number]
        lines.line(axis, points, label=label, linewidth=1.1, capsize=1.5, **look)
    axis.set_xlim(min(counts) / 1.4, max(counts) * 1.4)
