"""Size distributions: what padding wastes, and how fast each distribution is."""

from __future__ import annotations

from collections.abc import Iterator

from octopus_study.names import stand_in
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import Frame, Key, Number, joined, make_number, published
from octopus_study.report.machines import device_name, shown
from octopus_study.report.measured import padded_float32
from octopus_study.report.runs import Run
from octopus_study.report.series import Series
from octopus_study.report.studies.distribution_figure import cases, size_distributions, workload_name
from octopus_study.report.study import StudyReport
from octopus_study.report.tables.writers import MISSING, Table
from octopus_study.report.view import View, every_view, views
from octopus_study.units import with_unit

QUANTILES = ("width_quantile", "height_quantile")
POOL = "visdrone-pool"
MEDIAN = 50  # the percentile
# Sides of the boxes of which the source says that they are most of the real ones, in px.
SMALL = (16, 60)
# Quantity -> the unit in which it is printed, and the factor to it.
_PADDING = {
    "actual_bytes": ("MiB", 2.0**-20),
    "padded_bytes": ("MiB", 2.0**-20),
    "padding_waste": ("percent", 100.0),
}


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
    largest, and at most which share has both sides within 16 to 60 px.

    That share is the lesser of those of widths and of heights: rows hold the percentiles of each side alone.
    """
    rows = run.rows[run.rows["quantity"].isin(QUANTILES) & (run.rows["workload"] == "visdrone")]
    for dataset, chosen in rows.groupby("dataset"):
        percentiles = chosen.pivot(index="block", columns="quantity", values="value").reindex(
            columns=QUANTILES
        )
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


def generated(runs: list[Run]) -> Iterator[Number]:
    """Yield on which pixels the generated boxes lie: those of each run's own frame."""
    stand_ins = [run for run in runs if any(map(stand_in, run.datasets))]
    text = "synthetic boxes on synthetic pixels"
    if len(stand_ins) < len(runs):
        others = " and ".join(device_name(run) for run in stand_ins)
        text = "synthetic boxes on VisDrone pixels" + (f", on {others} on synthetic ones" if others else "")
    yield shown(runs, "generated", text)


def padding_waste(frame: Frame) -> Table:
    """Return published beside computed padding waste, with the verdict whether they print the same."""
    machines = views(frame, "distribution")[:1]
    rows = [_padding_row(view, key) for view in machines for key in cases(view)]
    caption = (
        "Bytes of all boxes (1000, as published) as uint8 with three channels, stored as they are / padded to the "
        "largest, and the share that padding wastes. Identical: every published digit agrees. "
        f"{frame.text('shown.distribution')}."
    )
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


REPORT = StudyReport(
    numbers=(percentiles_of_sizes, shares_of_sizes, padded_float32),
    of_all=(range_over_sizes,),
    of_runs=(generated,),
    series=(sizes,),
    indexed=QUANTILES,
    tables={"padding_waste": padding_waste},
    figures={
        "size_distributions": Chart(
            size_distributions,
            "Sizes of the boxes (all but VisDrone: synthetic boxes on VisDrone pixels), what padding them to the "
            "largest would waste, and the time of the kernels for each distribution, with kernel time / bound time.",
        )
    },
)
