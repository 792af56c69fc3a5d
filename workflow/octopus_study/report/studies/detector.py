"""A detector on prepared frames: all frames together, what preparing them is of it, and whether detections are the
same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import DETECTOR_COLORS, GREY
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import Frame, Key, Number, Source, make_number, make_text, published
from octopus_study.report.labels import human
from octopus_study.report.labels_edge import DETECTOR_METHODS, DETECTOR_MODELS, DETECTOR_STAGES
from octopus_study.report.measured import SUBJECT
from octopus_study.report.missing import first_reason, make_absent
from octopus_study.report.published import derived
from octopus_study.report.runs import Run
from octopus_study.report.samples import AGAIN, pivot, ratio_of_sums, resampled
from octopus_study.report.study import StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.cells import Cell
from octopus_study.report.tables.spec import Row, Spec
from octopus_study.report.tables.writers import MISSING
from octopus_study.report.text import quantity_text, reason
from octopus_study.report.view import View, views

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STUDY = "detector"
NO_RUN = "No run of the study detector is at hand: older results lack it."
WHOLE, DIFFERING, INTERPOLATED = "end_to_end", "frames_differing", "frames_differing_interpolated"
OTHERS = tuple(method for method in DETECTOR_METHODS if method != SUBJECT)
RANDOM = "-random-weights"
_PUBLISHED = {"gpu-preprocessing": "On the GPU", "cpu-preprocessing": "On the CPU"}


def published_times(frame: Frame) -> Iterator[Number]:
    """Yield the published time per frame."""
    frames = frame.value(published(STUDY, "yolo", "frames"))
    for name in _PUBLISHED:
        total = frame.get(published(STUDY, name, "time"))
        if total:
            note, columns = "time of all frames / frames", {"method": name, "quantity": "frame_time"}
            yield derived(total, STUDY, "ms", total.value / frames, note, **columns)


def _timed(run: Run) -> Iterator[tuple[pd.DataFrame, Source]]:
    """Yield the rows of the input that is timed, of which a run has one, and what its numbers rest on."""
    rows = run.rows[run.rows["quantity"].isin((*DETECTOR_STAGES, WHOLE))]
    for (dataset, workload, n), chosen in rows.groupby(["dataset", "workload", "n"], sort=False):
        yield chosen, run.from_rows(str(dataset), f"workload={workload}, n={n}")
        return


def facts(run: Run) -> Iterator[Number]:
    """Yield the model and the number of frames as texts: a run that measured nothing has them too."""
    for rows, source in _timed(run):
        for name, column in (("model", "workload"), ("frames", "n")):
            yield make_text(run.fact_key(name), source, str(rows[column].iloc[0]), column)


def totals(run: Run) -> Iterator[Number]:
    """Yield the time of all frames, the share of it that preparing them takes, and gains over the other methods."""
    for rows, source in _timed(run):
        whole, first = (pivot(rows[rows["quantity"] == name]) for name in (WHOLE, "preprocess"))
        for method in (str(name) for name in whole if not str(name).endswith(AGAIN)):
            values = whole[method].dropna().to_numpy()
            total = resampled(values, np.mean).scaled(len(values))
            note = f"{len(values)} frames one after the other; the interval resamples them"
            yield make_number(run.key("total", method=method), source, "ms", *total, note=note)
            if method in first:
                pair = np.stack([whole[method], first[method]], axis=1)
                share = resampled(pair[np.isfinite(pair).all(axis=1)], ratio_of_sums)
                key, note = run.key("preprocess_share", method=method), "preprocess / end_to_end, all frames"
                yield make_number(key, source, "fraction", *share, note=note)
        for other in (*OTHERS, f"{SUBJECT}{AGAIN}"):
            if {SUBJECT, other} <= set(whole.columns):
                ratio = resampled(whole[[SUBJECT, other]].dropna().to_numpy(), ratio_of_sums)
                key = run.key("gain", quantity="total", derived="over", other=other)
                yield make_number(key, source, "ratio", *ratio, note="all frames / all frames")


def differing(run: Run) -> Iterator[Number]:
    """Yield in how many frames detections differ from those of Octopus, on the timed input and on a second one, whose
    pixels have to be interpolated."""
    for timed, source in _timed(run):
        rows = run.rows[run.rows["quantity"] == DIFFERING]
        same = rows["workload"] == timed["workload"].iloc[0]
        for name, chosen in ((DIFFERING, rows[same]), (INTERPOLATED, rows[~same])):
            for other in OTHERS:
                yield _differing(run.key(name, method=other), source, chosen, timed)


def _differing(key: Key, source: Source, rows: pd.DataFrame, timed: pd.DataFrame) -> Number:
    """Return the count; the text says why where nobody knows."""
    rows = rows[(rows["method"] == key.method) & rows["value"].notna()]
    if rows.empty:
        gaps = timed[(timed["method"] == key.method) & timed["value"].isna()]
        return make_absent(key, source, "count", first_reason(gaps, "detections were not compared"))
    row = rows.iloc[0]
    text = f"{row['value']:.0f} of {row['n']}"
    return make_number(key, source, "count", row["value"], text=text, note="frames with other detections")


def cases(view: View) -> list[Key]:
    """Return the whole time of each method, on the model and the frames of a run."""
    frames = view.fact("frames")
    if not frames:
        return []
    where = (view.fact("model"), int(frames))
    return [view.key(*where, method, quantity=WHOLE, layer="host") for method in DETECTOR_METHODS]


def measured(view: View) -> list[Key]:
    """Return the methods that a machine timed; none where Octopus wasn't."""
    timed = [key for key in cases(view) if view.get(key)]
    return timed if timed and timed[0].method == SUBJECT else []


def model_name(view: View) -> str:
    """Return the model, and that its weights are random where they are."""
    model = view.fact("model")
    name = human(DETECTOR_MODELS, model.removesuffix(RANDOM))
    return f"{name}, random weights" if model.endswith(RANDOM) else name


def _published_rows(frame: Frame) -> Iterator[Row]:
    yield f"Jetson Orin Nano, as published: YOLO, {frame.text(published(STUDY, 'yolo', 'frames'))} frames"
    for name, label in _PUBLISHED.items():
        each = frame.text(published("derived", STUDY, name, "frame_time"))
        total = frame.text(published(STUDY, name, "time"))
        gain = frame.text(published(STUDY, "gpu-preprocessing", "speedup")) if "cpu" in name else MISSING
        yield [label, *[MISSING] * 3, each, MISSING, total, gain, *[MISSING] * 3]


def _if_run(cell: Cell, otherwise: Cell = lambda view, key: MISSING) -> Cell:
    """Say a cell of a method that could be made, and another one of a method that couldn't."""

    def text(view: View, key: Key) -> str:
        return (otherwise if view.text(key).startswith("unavailable") else cell)(view, key)

    return text


def _of_method(workload: str) -> Cell:
    return _if_run(cells.text(workload=workload, n=None, quantity="", layer=""))


def _gain(view: View, key: Key) -> str:
    gain = view.key("gain", quantity="total", derived="over", other=key.method)
    return cells.number_text(view.frame, gain)


TABLE = Spec(
    study=STUDY,
    first="Prepared by",
    label=lambda view, key: DETECTOR_METHODS[key.method],
    cases=cases,
    columns={
        DETECTOR_STAGES["preprocess"]: _if_run(cells.time(quantity="preprocess"), cells.time()),
        DETECTOR_STAGES["inference"]: _if_run(cells.time(quantity="inference")),
        DETECTOR_STAGES["postprocess"]: _if_run(cells.time(quantity="postprocess")),
        "Whole": _if_run(cells.time()),
        "Preparing, of whole": _of_method("preprocess_share"),
        "All frames": _of_method("total"),
        "Gain of Octopus": _if_run(_gain),
        "Detections": _if_run(cells.text(quantity="detections", layer="deterministic")),
        "Differ": _of_method(DIFFERING),
        "Differ, interpolated": _of_method(INTERPOLATED),
    },
    title=lambda view: f"{view.title}: {model_name(view)}, {view.fact('frames')} frames",
    before=_published_rows,
    caption="A detector by the way its frames are prepared, from the frame on the host to the input on the model's "
    "device: medians over the frames, all frames together, total time / total time of Octopus, detections, and "
    "in how many frames they differ from those of Octopus, on the timed input and on one that is interpolated.",
    absent=NO_RUN,
    widths=("1.5fr", *("1fr",) * 10),
)


def draw(frame: Frame) -> Figure:
    """Draw where the time of a frame goes: a panel with the published times, and one per machine."""
    from matplotlib.patches import Patch

    shown = [view for view in views(frame, STUDY) if measured(view)]
    result, parts, legend = style.stacked([1.75], 0.25, _note(frame))
    axes = parts[0].subplots(1, 1 + len(shown), squeeze=False)[0]
    _published_panel(axes[0], frame)
    for place, (axis, view) in enumerate(zip(axes[1:], shown, strict=True)):
        _machine(axis, view)
        if place:
            axis.set_yticklabels([])
    stages = [Patch(color=DETECTOR_COLORS[name], label=label) for name, label in DETECTOR_STAGES.items()]
    whole = Patch(facecolor="white", edgecolor=GREY, label="The whole, timed on its own")
    legend.legend(handles=[*stages, whole] if shown else [whole], loc="center", ncols=4)
    return result


def _footer(frame: Frame) -> str:
    names = frame.text(Key("shown", STUDY))
    return f"Measured on: {names}." if any(map(measured, views(frame, STUDY))) else "Nothing was measured."


def _note(frame: Frame) -> str:
    """Name the machines without a detector, and why."""
    if not frame.machines(STUDY):
        return f"{NO_RUN} Only the published values are shown."
    without = [view for view in views(frame, STUDY) if not measured(view)]
    reasons = {view.name: next(map(view.text, cases(view)), "") for view in without}
    return " ".join(f"No time on {name}{f': {reason(why)}' if why else ''}." for name, why in reasons.items())


def _published_panel(axis: Axes, frame: Frame) -> None:
    values = [frame[published("derived", STUDY, name, "frame_time")].value for name in _PUBLISHED]
    for place, value in enumerate(values):
        axis.barh(place, value, height=0.6, facecolor="white", edgecolor=GREY)
        bars.beside(axis, place, value, quantity_text(value, "ms"), gap=3)
    _finish(axis, max(values), list(_PUBLISHED.values()))
    axis.set_title("Jetson Orin Nano, as published", fontsize=7.5, fontweight="normal")


def _machine(axis: Axes, view: View) -> None:
    """Draw the medians of the stages one after the other, and the whole as it was timed."""
    keys, longest = measured(view), 0.0
    for place, key in enumerate(keys):
        stages = {stage: view.get(key.but(quantity=stage)) for stage in DETECTOR_STAGES}
        times = {stage: number.value for stage, number in stages.items() if number}
        whole = view.frame[key].value
        end = max(bars.stack(axis, place, times, DETECTOR_COLORS, height=0.6), whole)
        axis.barh(place, whole, height=0.6, facecolor="none", edgecolor=GREY)
        bars.beside(axis, place, end, quantity_text(whole, "ms"), gap=3)
        longest = max(longest, end)
    _finish(axis, longest, [DETECTOR_METHODS[key.method] for key in keys])
    axis.set_title(f"{view.name}\n{model_name(view)}", fontsize=7, fontweight="normal")


def _finish(axis: Axes, longest: float, labels: list[str]) -> None:
    axis.set(xlim=(0, 1.35 * longest), xlabel="Time of a frame (ms)")
    bars.names(axis, labels, fontsize=6.8)


REPORT = StudyReport(
    numbers=(facts, totals, differing),
    of_published=(published_times,),
    compares=lambda group, other: False,
    tables={"detector": TABLE},
    figures={"detector_stages": Chart(draw, published=True, footer=_footer)},
    claims="claims_edge",
)
