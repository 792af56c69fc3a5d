"""A detector on prepared frames: all frames together, what preparing them is of it, and whether detections are the
same."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from octopus_study.names import DETECTOR_METHODS, DETECTOR_MODELS, DETECTOR_STAGES, SUBJECT, human
from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import DETECTOR_COLORS, GREY
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import Frame, Key, Number, published
from octopus_study.report.missing import no_run
from octopus_study.report.published import derived
from octopus_study.report.studies import detector_numbers
from octopus_study.report.studies.detector_numbers import WHOLE
from octopus_study.report.study import StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.cells import Cell
from octopus_study.report.tables.spec import Row, Spec
from octopus_study.report.tables.writers import MISSING
from octopus_study.report.text import quantity_text, reason
from octopus_study.report.view import View, views

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STUDY = "detector"
PUBLISHED_ON = "T4, as published"
RANDOM = "-random-weights"
_PUBLISHED = {"gpu-preprocessing": "On the GPU", "cpu-preprocessing": "On the CPU"}


def published_times(frame: Frame) -> Iterator[Number]:
    """Yield the published time per frame."""
    frames = frame.get(published(STUDY, "yolo", "frames"))
    for name in _PUBLISHED:
        total = frame.get(published(STUDY, name, "time"))
        if total and frames:
            note, columns = "time of all frames / frames", {"method": name, "quantity": "frame_time"}
            yield derived((total, frames), STUDY, "ms", total.value / frames.value, note, **columns)


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
    yield f"{PUBLISHED_ON}: YOLO, {frame.text(published(STUDY, 'yolo', 'frames'))} frames"
    for name, label in _PUBLISHED.items():
        each = frame.text(published("derived", STUDY, name, "frame_time"))
        total = frame.text(published(STUDY, name, "time"))
        gain = frame.text(published(STUDY, "gpu-preprocessing", "speedup")) if "cpu" in name else MISSING
        yield [label, *[MISSING] * 3, each, MISSING, total, gain, *[MISSING] * 4]


def _if_run(cell: Cell, otherwise: Cell = lambda view, key: MISSING) -> Cell:
    """Say a cell of a method that could be made, and another one of a method that couldn't."""

    def text(view: View, key: Key) -> str:
        return (otherwise if view.text(key).startswith("unavailable") else cell)(view, key)

    return text


def _of_method(workload: str) -> Cell:
    return _if_run(cells.text(workload=workload, n=None, quantity="", layer=""))


def _gain(view: View, key: Key) -> str:
    gain = view.get(view.key("gain", quantity="total", derived="over", other=key.method))
    return f"{gain.precise} [{gain.interval}]" if gain else MISSING


def _by_frame(view: View, key: Key) -> str:
    return cells.ratio_text(view.frame, key.but(method=SUBJECT), key.method)


def _differing(ending: str) -> Cell:
    """Say in how many frames detections differ, and how many detections."""

    def text(view: View, key: Key) -> str:
        frames, detections = (
            view.text(view.key(f"{name}{ending}", method=key.method), MISSING)
            for name in ("frames_differing", "detections_differing")
        )
        return frames if MISSING in (frames, detections) else f"{frames}, {detections}"

    return _if_run(text)


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
        "Frame by frame": _if_run(_by_frame),
        "Detections": _if_run(cells.text(quantity="detections", layer="deterministic")),
        "Differ": _differing(""),
        "Differ, interpolated": _differing("_interpolated"),
    },
    title=lambda view: f"{view.title}: {model_name(view)}, {view.fact('frames')} frames",
    before=_published_rows,
    caption="A detector by the way its frames are prepared, from the frame on the host to the input on the model's "
    "device: medians over the frames, all frames together, total time / total time of Octopus, the median of the "
    "frames' own ratios with the verdict and the noise floor, detections, and in how many frames they differ from "
    "those of Octopus, then how many of either have no partner (those at one of the detector's thresholds counted, "
    "which make no frame different), on the timed input and on one that is interpolated.",
    absent=no_run(STUDY),
    widths=("1.5fr", *("1fr",) * 11),
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
    if not frame.shown(STUDY):
        return f"{no_run(STUDY)} Only the published values are shown."
    without = [view for view in views(frame, STUDY) if not measured(view)]
    reasons = {view.name: next(map(view.text, cases(view)), "") for view in without}
    return " ".join(f"No time on {name}{f': {reason(why)}' if why else ''}." for name, why in reasons.items())


def _published_panel(axis: Axes, frame: Frame) -> None:
    values = [frame[published("derived", STUDY, name, "frame_time")].value for name in _PUBLISHED]
    for place, value in enumerate(values):
        axis.barh(place, value, height=0.6, facecolor="white", edgecolor=GREY)
        bars.beside(axis, place, value, quantity_text(value, "ms"), gap=3)
    _finish(axis, max(values), list(_PUBLISHED.values()))
    axis.set_title(PUBLISHED_ON, fontsize=7.5, fontweight="normal")


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
    title = f"{view.name}\n{textwrap.fill(model_name(view), 24)}"
    axis.set_title(title, fontsize=7, fontweight="normal")


def _finish(axis: Axes, longest: float, labels: list[str]) -> None:
    axis.set(xlim=(0, 1.35 * longest), xlabel="Time of a frame (ms)")
    bars.names(axis, labels, fontsize=6.8)


REPORT = StudyReport(
    numbers=(
        detector_numbers.facts,
        detector_numbers.totals,
        detector_numbers.frame_gains,
        detector_numbers.differing,
        detector_numbers.tolerances,
    ),
    of_published=(published_times,),
    compares=lambda group, other: group.quantity == WHOLE,
    tables={"detector": TABLE},
    figures={
        "detector_stages": Chart(
            draw,
            "Time of a frame, stage by stage, as medians. Numbers: the whole, timed end to end.",
            published=True,
            footer=_footer,
        )
    },
)
