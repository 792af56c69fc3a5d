"""Several GPUs of one host: rates, their share of linear, and how equal the GPUs are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from octopus_study.measure.statistics import Interval, median_interval, ratio_interval
from octopus_study.names import SCALING, SCALING_WORKS, WAYS
from octopus_study.report.charts import lines, style
from octopus_study.report.charts.palette import BLUE, VERMILION
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import Frame, Key, Number, make_number
from octopus_study.report.machines import run_list, shown, visible
from octopus_study.report.measured import floor_of, heeding
from octopus_study.report.missing import first_reason, footer, make_absent, no_run, with_reasons
from octopus_study.report.runs import Run
from octopus_study.report.samples import Group, groups, paired, pivot
from octopus_study.report.studies import scaling_model
from octopus_study.report.studies.scaling_model import COPIES, STUDY, gpus_of
from octopus_study.report.study import StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.cells import Cell
from octopus_study.report.tables.spec import Spec
from octopus_study.report.tables.writers import MISSING
from octopus_study.report.text import reason
from octopus_study.report.view import View, views

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ALONE, LINEAR = "alone", "linear"
NO_TIMES = "No run of the study scaling that is shown timed anything."
ONE = "No machine that is shown has a second GPU: there is no share of linear to draw."
GB_S = (1 << 20) / 1e6  # of 1 MiB in a millisecond
LOOKS = {"processes": BLUE, "threads": VERMILION}
MARKERS = {"resident": "o", "uploaded": "s"}


def rates(run: Run) -> Iterator[Number]:
    """Yield what goes through in a second, by each number of GPUs, and its share of linear; that of all GPUs also under
    the way's own name, with the reason where they were not timed or there is but one."""
    for group, rows in groups(run, layer="host", unit="ms"):
        if group.quantity == ALONE:
            continue
        table = pivot(rows)
        for way in WAYS:
            yield from _of_way(run, group, rows, table, way)


def _of_way(run: Run, group: Group, rows: pd.DataFrame, table: pd.DataFrame, way: str) -> Iterator[Number]:
    one, shared = f"{way}-1", group.quantity.startswith("strong")
    yield from _floor(run, group, table, one)
    shares: list[Number] = []
    for gpus in sorted(gpus_of(name) for name in table.columns if name.rpartition("-")[0] == way):
        name = f"{way}-{gpus}"
        yield _rate(run, group, name, table[name].dropna(), 1 if shared else gpus)
        both = paired(table, one, name)
        if gpus > 1 and len(both) > 1:
            found = ratio_interval(both[one], both[name]).scaled(1 / gpus if shared else 1)
            note = heeding(_note(shared, gpus), group, both[one] / both[name])
            source = group.rows_of(run, f"{one} and {name}")
            shares.append(make_number(_share(group.key(run, name)), source, "fraction", *found, note=note))
    yield from shares
    most, gpus = _share(group.key(run, way)), max(visible(run), 2)
    if shares and gpus_of(shares[-1].method) >= gpus:
        yield shares[-1].named(most)._replace(note=f"of {gpus_of(shares[-1].method)} GPUs; {shares[-1].note}")
    else:
        of_way = rows[rows["method"].str.startswith(f"{way}-")]
        of_all = of_way[of_way["method"] == f"{way}-{gpus}"]
        why = first_reason(of_all, first_reason(of_way, "nothing was timed"))
        yield make_absent(most, group.rows_of(run), "fraction", why)


def _floor(run: Run, group: Group, table: pd.DataFrame, name: str) -> Iterator[Number]:
    """Yield the noise floor of the method that was entered twice."""
    floor = floor_of(table, name)
    if floor == floor:
        key, source = (
            group.key(run, name).derive("noise_floor"),
            group.rows_of(run, f"{name} and {name}-again"),
        )
        yield make_number(key, source, "fraction", floor, note=f"{name} against itself, paired per block")


def _note(shared: bool, gpus: int) -> str:
    """Say how a share of linear follows from times."""
    return f"time of one GPU / {f'{gpus} x ' if shared else ''}time of {gpus}, median of per-block ratios"


def _rate(run: Run, group: Group, name: str, times: pd.Series, gpus: int) -> Number:
    """Return items a second, or for copies 1e9 bytes a second."""
    unit, factor = ("GB/s", GB_S) if group.workload == COPIES else ("1/s", 1000.0)
    found, items = median_interval(times), group.n * gpus
    value, high, low = (items * factor / time for time in found[:3])
    rate = Interval(value, low, high, found.count)
    key, note = group.key(run, name).derive("rate"), heeding(f"{items} items / median", group, times)
    return make_number(key, group.rows_of(run, name), unit, *rate, note=note)


def spreads(run: Run) -> Iterator[Number]:
    """Yield how much longer the slowest GPU alone takes than the fastest one, of those that are said to be equal."""
    for group, rows in groups(run, quantity=ALONE, unit="ms"):
        table = pivot(rows)
        yield from _floor(run, group, table, "gpu-0")
        names = [str(name) for name in table.columns if not name.endswith("-again")]
        medians = sorted((median_interval(table[name].dropna()).value, name) for name in names)
        key = run.key(group.workload, int(group.n), "", quantity=ALONE, layer=group.layer, derived="spread")
        if len(medians) < max(visible(run), 2):
            yield make_absent(key, group.rows_of(run), "ratio", first_reason(rows, "nothing was timed"))
            continue
        (_, fast), *_, (_, slow) = medians
        both = paired(table, slow, fast)
        note = f"{slow} / {fast}, by their times the slowest and fastest of {len(medians)}, median of per-block ratios"
        found = ratio_interval(both[slow], both[fast])
        note = heeding(note, group, both[slow] / both[fast])
        yield make_number(key, group.rows_of(run, f"{slow} and {fast}"), "ratio", *found, note=note)


def several(runs: list[Run]) -> Iterator[Number]:
    """Yield ``shown.scaling.several``: the runs that timed more than one GPU, if any did."""
    chosen = [run for run in runs if any(map(_is_several, run.rows["method"][run.rows["value"].notna()]))]
    if chosen:
        yield shown(chosen, "several", run_list(chosen))


def _is_several(method: str) -> bool:
    return method.partition("-")[0] in WAYS and gpus_of(method) > 1


def _share(key: Key) -> Key:
    return key.derive("share", LINEAR)


def cases(view: View) -> list[Key | str]:
    """Return every work, quantity and number of GPUs that was timed, and words that say why others were not."""
    rows: list[Key | str] = []
    lacking: dict[str, list[int]] = {}
    for work in SCALING_WORKS:
        for quantity in SCALING:
            numbers = view.select(workload=work, quantity=quantity, layer="host")
            here = [number for number in numbers if number.method.partition("-")[0] in WAYS]
            timed = sorted({gpus_of(number.method) for number in here if number.known})
            rows += [here[0].key.but(method=f"processes-{gpus}") for gpus in timed]
            for number in here:
                if not number.known and gpus_of(number.method) not in timed:
                    lacking.setdefault(number.text, []).append(gpus_of(number.method))
    return [*rows, *_lacking(lacking)] if rows else []


def _lacking(lacking: dict[str, list[int]]) -> Iterator[str]:
    for why, gpus in lacking.items():
        yield f"{', '.join(map(str, sorted(set(gpus))))} GPUs: {reason(why)}"


def _label(view: View, key: Key) -> str:
    return f"{SCALING_WORKS[key.workload]}, {SCALING[key.quantity]}"


def _of(way: str, cell: Cell) -> Cell:
    return lambda view, key: cell(view, key.but(method=f"{way}-{gpus_of(key.method)}"))


def _linear(view: View, key: Key) -> str:
    number = view.get(_share(key))
    return cells.with_interval(number) if number else MISSING


def _spread(view: View) -> Iterator[str]:
    for work, name in SCALING_WORKS.items():
        for number in view.select(workload=work, quantity=ALONE, derived="spread"):
            shown = cells.with_interval(number) if number.known else number.text
            yield f"{name}, each GPU alone, slowest / fastest: {shown}"


TABLE = Spec(
    study=STUDY,
    first="Work",
    label=_label,
    cases=cases,
    columns={
        "GPUs": lambda view, key: str(gpus_of(key.method)),
        **{
            head: cell
            for way, name in WAYS.items()
            for head, cell in (
                (name, _of(way, cells.time())),
                (f"{name}: rate", _of(way, cells.text(derived="rate"))),
                (f"{name}: of linear", _of(way, _linear)),
            )
        },
    },
    after=_spread,
    caption="Several GPUs of one host, by a process per GPU and by a thread per GPU: time of a block, what goes "
    "through in a second, and its share of linear, which is the rate / GPUs times the rate of one, with its interval. "
    "Weak: a block's work for each GPU; strong: shared by all. Uploaded: from page-locked memory, within the time.",
    absent=lambda frame: with_reasons(frame, STUDY, NO_TIMES) if frame.shown(STUDY) else no_run(STUDY),
    widths=("2.2fr", "0.5fr", "1.8fr", "1.4fr", "1.6fr", "1.8fr", "1.4fr", "1.6fr"),
)


def draw(frame: Frame) -> Figure:
    """Draw the share of linear over the number of GPUs: a row per machine, a panel per work."""
    shown = [view for view in views(frame, STUDY) if any(_points(view, work) for work in SCALING_WORKS)]
    if not shown:
        timed = any(cases(view) for view in views(frame, STUDY))
        return style.empty(ONE if timed else with_reasons(frame, STUDY, NO_TIMES))
    figure, axes = style.new_figure(2.4 * len(shown) + 0.5, len(shown), len(SCALING_WORKS), sharey=True)
    for row, view in zip(axes, shown, strict=True):
        for axis, (work, name) in zip(row, SCALING_WORKS.items(), strict=True):
            _panel(axis, _points(view, work))
            style.title(axis, f"{view.name}: {name}" if axis is row[0] or len(shown) > 1 else name)
        row[0].set_ylabel("Share of linear")
        row[0].set_ylim(bottom=0)  # of all panels, which are drawn by now
    style.bottom_legend(list(axes.flat), 4, columnspacing=0.8, handlelength=1.2)
    return figure


def _points(view: View, work: str) -> dict[tuple[str, str], list[tuple[float, Number]]]:
    """Return the shares of a work by way and quantity, in ascending order of GPUs."""
    found: dict[tuple[str, str], list[tuple[float, Number]]] = {}
    for quantity in SCALING:
        for number in view.select(workload=work, quantity=quantity, derived="share", other=LINEAR):
            way, _, gpus = number.method.partition("-")
            if number.known and gpus:
                found.setdefault((way, quantity), []).append((int(gpus), number))
    return {kind: sorted(points, key=lambda point: point[0]) for kind, points in found.items()}


def _panel(axis: style.Axes, points: dict[tuple[str, str], list[tuple[float, Number]]]) -> None:
    axis.axhline(1, color="black", linewidth=0.8)
    gpus = sorted({gpus for line in points.values() for gpus, _ in line})
    series = [(way, quantity) for way in WAYS for quantity in SCALING]
    for number, (way, quantity) in enumerate(series):
        kind, _, data = quantity.partition("_")
        look = {"color": LOOKS[way], "marker": MARKERS[data], "linestyle": "-" if kind == "weak" else "--"}
        look["markerfacecolor"] = LOOKS[way] if kind == "weak" else "white"
        aside = (number + 0.5) / len(series) - 0.5  # beside one another, since many are alike
        line = [(gpus.index(count) + 0.8 * aside, share) for count, share in points.get((way, quantity), ())]
        lines.line(axis, line, label=f"{WAYS[way]}, {SCALING[quantity]}", markersize=3.5, **look)
    axis.set_xticks(range(len(gpus)), [f"{count:g}" for count in gpus])
    axis.set(xlabel="GPUs", xlim=(-0.5, max(len(gpus), 1) - 0.5))


REPORT = StudyReport(
    numbers=(rates, spreads),
    of_runs=(several,),
    of_all=(scaling_model.predictions,),
    tables={"scaling_gpus": TABLE, "scaling_model": scaling_model.TABLE},
    figures={
        "scaling_gpus": Chart(
            draw,
            caption="Several GPUs of one host: share of linear over the number of GPUs, weak and strong, with data on "
            "the GPUs and uploaded, by processes and by threads.",
            footer=footer(STUDY, "several"),
        )
    },
)
