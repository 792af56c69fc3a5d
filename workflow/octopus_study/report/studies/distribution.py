"""Size distributions: what padding wastes, and how fast each distribution is."""

from collections.abc import Iterator

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from octopus_study.names import BOUND, SHORT_METHODS, SUBJECT, WORKLOADS, human, stand_in
from octopus_study.report import captions
from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import METHOD_COLORS, METHOD_MARKERS, WORKLOAD_COLORS
from octopus_study.report.frame import Frame, Key, Number, joined, make_number, published
from octopus_study.report.measured import padded_float32
from octopus_study.report.runs import Run
from octopus_study.report.series import Series
from octopus_study.report.study import Chart, StudyReport
from octopus_study.report.tables.writers import MISSING, Table
from octopus_study.report.view import KERNEL, View, every_view, views
from octopus_study.units import with_unit

QUANTILES = ("width_quantile", "height_quantile")
POOL = "visdrone-pool"
MEDIAN = 50  # the percentile
# Sides of the boxes of which the source says that they are most of the real ones, in px.
SMALL = (16, 60)
# Quantity -> the unit in which it is printed, and the factor to it.
_PADDING = {"actual_bytes": ("MiB", 2.0**-20), "padded_bytes": ("MiB", 2.0**-20), "padding_waste": ("percent", 100.0)}


def percentiles_of_sizes(run: Run) -> Iterator[Number]:
    """Yield the median width and height of each workload's boxes; of the pool their number and 95th percentiles too."""
    rows = run.rows[run.rows["quantity"].isin(QUANTILES) & run.rows["block"].isin((MEDIAN, 95))]
    for row in rows.itertuples():
        if row.block == MEDIAN or row.workload == POOL:
            side = row.quantity.removesuffix("_quantile")
            key = run.key(row.workload, method="boxes", quantity=side, derived=f"p{row.block}")
            selector = f"workload={row.workload}, quantity={row.quantity}, block={row.block}"
            yield make_number(key, run.from_rows(row.dataset, selector), "px", float(row.value))
    for row in rows[(rows["workload"] == POOL)].head(1).itertuples():
        source = run.from_rows(row.dataset, f"workload={POOL}, quantity={row.quantity}, block={row.block}")
        yield make_number(run.key(POOL, method="boxes", quantity="count"), source, "count", row.n)


def shares_of_sizes(run: Run) -> Iterator[Number]:
    """Yield what the source says of the real boxes: how many times its pixels a median box has when it is padded to the
    largest, and at most which share has both sides within 16 to 60 px. That share is the lesser of those of widths and
    of heights: rows hold the percentiles of each side alone."""
    rows = run.rows[run.rows["quantity"].isin(QUANTILES) & (run.rows["workload"] == "visdrone")]
    for dataset, chosen in rows.groupby("dataset"):
        percentiles = chosen.pivot(index="block", columns="quantity", values="value").reindex(columns=QUANTILES)
        if list(percentiles.dropna().index) != list(range(101)):  # one of them is missing
            continue
        sides = percentiles.to_numpy()
        source = run.from_rows(str(dataset), f"workload=visdrone, quantity={' and '.join(QUANTILES)}")
        within = ((sides >= SMALL[0]) & (sides <= SMALL[1])).mean(axis=0).min()
        key, note = run.key("visdrone", method="boxes"), "percentiles of the sides"
        ratio = float(sides[-1].prod() / sides[MEDIAN].prod())
        yield make_number(key.but(quantity="padded_over_median"), source, "ratio", ratio, note=note)
        yield make_number(key.but(quantity="share_16_to_60"), source, "fraction", float(within), note=note)


def sizes(run: Run) -> Iterator[Series]:
    """Yield every percentile of width and height of each workload's boxes."""
    rows = run.rows[run.rows["quantity"].isin(QUANTILES)]
    table = rows.pivot(index=["workload", "block"], columns="quantity", values="value").reset_index()
    yield Series(run.scope, run.study, "sizes", {str(name): list(table[name]) for name in table})


def range_over_sizes(frame: Frame) -> Iterator[Number]:
    """Yield by how much the slowest distribution of sizes exceeds the fastest one, method by method."""
    for view in every_view(frame, "distribution"):
        times: dict[Key, list[Number]] = {}
        for number in view.select(quantity="crop_resize_normalize"):
            if number.known:
                times.setdefault(number.key.but(workload="all"), []).append(number)
        for key, same in times.items():
            if len(same) > 1:
                value = max(n.value for n in same) / min(n.value for n in same) - 1
                source = joined(*same)._replace(dataset="synthetic")  # some of the sizes are drawn
                note = "slowest / fastest distribution - 1, of medians"
                yield make_number(key.derive("range"), source, "fraction", value, note=note)


def cases(view: View) -> list[Key]:
    """Return the padding waste of each distribution of a run, in a fixed order."""
    numbers = view.select(method="padding", quantity="padding_waste", layer="deterministic")
    keys = {number.workload: number.key for number in numbers}
    return [keys[name] for name in WORKLOADS if name in keys]


def workload_name(number: Number) -> str:
    """Return the name of a number's distribution, marked where its boxes are generated."""
    name = human(WORKLOADS, number.workload)
    return f"{name} (synthetic)" if number.synthetic else name


def padding_waste(frame: Frame) -> Table:
    """Return published beside computed padding waste, with the verdict whether they print the same."""
    machines = views(frame, "distribution")[:1]
    rows = [_padding_row(view, key) for view in machines for key in cases(view)]
    caption = captions.TABLES["padding_waste"].format(runs=frame.text("shown.distribution"))
    return Table(caption, ["Sizes", "Computed", "Published", "Verdict"], rows, text_columns=(0, 3))


def _padding_row(view: View, key: Key) -> list[str]:
    waste, computed, printed = view.frame[key], {}, {}
    for quantity, (unit, factor) in _PADDING.items():
        number = view.get(key.but(quantity=quantity))
        computed[quantity] = with_unit(str(round(number.value * factor)), unit) if number else MISSING
        if (text := view.frame.find(_published(key, quantity))) is not None:
            printed[quantity] = text.text
    verdict = _verdict(computed, printed, waste)
    return [workload_name(waste), _in_one_cell(computed), _in_one_cell(printed), verdict]


def _in_one_cell(texts: dict[str, str]) -> str:
    """Return actual and padded bytes, with one unit, and the waste; or what there is of them."""
    if len(texts) < len(_PADDING):
        return ", ".join(texts.values()) or MISSING
    actual, padded, waste = texts.values()
    return f"{actual.partition(' ')[0]} / {padded}, {waste}"


def _published(key: Key, quantity: str) -> str:
    """Return where the published value is; a run with another count finds none."""
    if key.workload == "visdrone" and key.n == 1000:
        return published("device_independent_facts", "visdrone-sample", quantity)
    return published("padding_waste", key.workload, f"n{key.n}", quantity)


def _verdict(computed: dict[str, str], printed: dict[str, str], waste: Number) -> str:
    if not printed:
        return "not published"
    if stand_in(waste.dataset):
        return "not comparable"
    if MISSING in computed.values():
        return "not measured"
    return "identical" if computed | printed == computed else "differs"


def size_distributions(frame: Frame) -> Figure:
    """Draw the sizes, and a panel of times per machine."""
    machines = views(frame, "distribution")
    timed = [view for view in machines if any(view.get(key) for key in _kernels(view))]
    result, axes = style.new_figure(2.4, 1, 1 + len(timed))
    _sizes(axes[0][0], machines[0])
    for place, (axis, view) in enumerate(zip(axes[0][1:], timed, strict=True)):
        _speed(axis, view)
        style.title(axis, view.name, 60 // (1 + len(timed)))
        if place:
            axis.set_yticklabels([])
    style.bottom_legend(list(axes[0]), 4)
    return result


def _kernels(view: View) -> list[Key]:
    """Return the kernels' times of Octopus, which a run may lack."""
    columns = {"quantity": "crop_resize_normalize", "layer": KERNEL}
    return [view.key(key.workload, key.n, SUBJECT, **columns) for key in cases(view)]


def _sizes(axis: Axes, view: View) -> None:
    """Draw the cumulative distribution of widths (solid) and heights (dotted); it is the same on every machine."""
    series = view.series("sizes")
    for key in cases(view):
        rows = [row for row in series.rows() if row[0] == key.workload] if series else []
        # The temporal boxes are the long-tail ones, so their line is thin and lies on top.
        look = {"color": WORKLOAD_COLORS[key.workload], "linewidth": 0.8 if key.workload == "temporal" else 1.6}
        percents = [percent for _, percent, *_ in rows]
        axis.plot([row[-1] for row in rows], percents, "-", label=workload_name(view.frame[key]), **look)
        axis.plot([row[-2] for row in rows], percents, ":", **look)
    axis.set(xscale="log", xlabel="Width (solid), height (dotted) (px)", ylabel="Boxes (%)", title="Sizes")
    axis.set_xticks([16, 32, 64, 128, 256, 512], ["16", "32", "64", "128", "256", "512"])
    axis.set_xticks([], minor=True)


def _speed(axis: Axes, view: View) -> None:
    """Draw the kernels' times, and beside those of Octopus their multiples of the bound."""
    keys = _kernels(view)
    for method in (SUBJECT, "published", BOUND):
        found = [(place, view.get(key.but(method=method))) for place, key in enumerate(keys)]
        points = [(place, number) for place, number in found if number]
        look = {"color": METHOD_COLORS[method], "label": human(SHORT_METHODS, method), "linestyle": "none"}
        look |= {"marker": "|", "markersize": 10} if method == BOUND else {"marker": METHOD_MARKERS[method]}
        numbers = [number for _, number in points]
        places = [place for place, _ in points]
        axis.errorbar([number.value for number in numbers], places, xerr=style.errors(numbers), **look)
    for place, key in enumerate(keys):
        # Intervals of both reach farther than the point where a machine is noisy.
        shown = (view.get(key.but(method=method)) for method in (SUBJECT, BOUND))
        ends = [bars.end_of(number) for number in shown if number]
        if ends and (text := view.text(key.derive("times", BOUND))):
            bars.beside(axis, place, max(ends), text, gap=5, fontsize=6)
    bars.names(axis, [workload_name(view.frame[key]) for key in cases(view)], fontsize=7)
    axis.set(xscale="log", xlabel="Kernels, all boxes (ms)")
    style.plain_log(axis.xaxis, narrow=True)


REPORT = StudyReport(
    numbers=(percentiles_of_sizes, shares_of_sizes, padded_float32),
    of_all=(range_over_sizes,),
    series=(sizes,),
    indexed=QUANTILES,
    tables={"padding_waste": padding_waste},
    figures={"size_distributions": Chart(size_distributions, captions.FIGURES["size_distributions"])},
)
