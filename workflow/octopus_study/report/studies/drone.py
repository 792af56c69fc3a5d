"""A drone's video: the frames of its clips against the time that a frame may take, and the streamed second."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from octopus_study.report.charts import bars, style
from octopus_study.report.charts.palette import BLACK, GREY, METHOD_COLORS
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import Frame, Key, published
from octopus_study.report.labels_edge import FRAME_METHODS
from octopus_study.report.measured import SUBJECT
from octopus_study.report.missing import no_run
from octopus_study.report.studies import drone_numbers
from octopus_study.report.studies.drone_numbers import BATCH, STREAMS, clip_seconds
from octopus_study.report.study import StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Row, Spec
from octopus_study.report.tables.writers import MISSING, Table
from octopus_study.report.view import View, views

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STUDY = "drone"
NO_RUN = no_run(STUDY)
NO_TIMES = "No run of the study drone that is shown timed a frame."
LAYERS = {"host": "Back to back", "paced": "At the rate of the video"}
# The published names of the same methods.
PUBLISHED = {SUBJECT: "one-launch", "n-launches-published": "n-launches", "opencv": "opencv"}
_SECONDS = (1, 5, 10)  # of the published clips
_TAIL = {
    "p50": "Median",
    "p99": "99 %",
    "max": "Longest",
    "budget_share": "Of budget",
    "misses": "Late",
    "sum": "Clip",
}
_ROW = 0.3  # inches


def clips(view: View) -> list[str]:
    """Return the clips that a machine timed, the longest last."""
    names = {number.workload for number in view.select(quantity="mean")}
    return sorted({name.split(".")[1] for name in names if name.endswith(".host")}, key=clip_seconds)


def measured(frame: Frame) -> list[View]:
    """Return the machines that timed some clip."""
    return [view for view in views(frame, STUDY) if clips(view)]


def frames(view: View, clip: str, layer: str = "host") -> list[Key]:
    """Return the mean frame of each method that has times of a clip."""
    keys = [view.key(f"frames.{clip}.{layer}", method=name, quantity="mean") for name in FRAME_METHODS]
    return [key for key in keys if view.get(key)]


def timed(view: View, clip: str, method: str = SUBJECT, layer: str = "host") -> Key:
    """Return the median frame of a method, whose rows know the number of detections."""
    numbers = view.select(workload=clip, quantity="frame_time")
    count = numbers[0].n if numbers else None
    return view.key(clip, count, method, quantity="frame_time", layer=layer)


def differs(view: View, clip: str, method: str) -> bool:
    """Say whether a method's crops differ from the reference."""
    number = view.frame.find(timed(view, clip, method))
    return number is not None and number.note.startswith("different")


def method_name(view: View, clip: str, method: str) -> str:
    """Return a method's name, with a mark where its crops differ from the reference."""
    return FRAME_METHODS[method] + (f" {cells.DIFFERENT}" if differs(view, clip, method) else "")


def missing(view: View, clip: str) -> dict[str, str]:
    """Return the methods without times of a clip, with what their rows say."""
    texts = {name: view.text(timed(view, clip, name)) for name in FRAME_METHODS}
    return {name: text for name, text in texts.items() if text.startswith("unavailable")}


def times(frame: Frame) -> Table:
    """Mean frame of every clip, and of the longest one the distribution, lateness and the speed-up of Octopus."""
    machines = measured(frame)
    names = {clip for view in machines for clip in clips(view)} | {f"clip-{seconds}s" for seconds in _SECONDS}
    shown = sorted(names, key=clip_seconds)
    rows = list(_published(frame, shown))
    for view in machines:
        for layer in LAYERS:
            rows += _section(view, layer, shown)
    budget = frame.text(published("drone_video", "scene", "frame_budget"))
    caption = (
        "Crops of each frame, from the frame on the host to the crops: mean frame of each clip, and of the longest one "
        f"median, 99th percentile, longest frame, share of the {budget} that a frame may take, late frames, all frames "
        "together, and the speed-up of Octopus (median of the frames' ratios) with the verdict where it isn't faster. "
        "OpenCV leaves its crops on the host. At the rate of the video each method has a pass of its own, and the "
        f"device idles between frames. {cells.DIFFERENT_NOTE}.{machines[0].reasons.note if machines else f' {NO_RUN}'}"
    )
    header = [
        "Method",
        *(f"Mean, {clip_seconds(clip)} s" for clip in shown),
        *_TAIL.values(),
        "Octopus over it",
    ]
    return Table(caption, header, rows, widths=("2.3fr", *("1fr" for _ in header[1:])))


def _published(frame: Frame, shown: list[str]) -> Iterator[Row]:
    yield "Jetson Orin Nano, as published"
    for method, name in PUBLISHED.items():
        means, tail = dict.fromkeys(shown, MISSING), dict.fromkeys(_TAIL, MISSING)
        for seconds in _SECONDS:
            quantity = "frame_time" if seconds == max(_SECONDS) else f"frame_time_{seconds}s"
            means[f"clip-{seconds}s"] = frame.text(published("drone_video", name, quantity), MISSING)
        tail["budget_share"] = frame.text(published("drone_video", name, "budget_share"), MISSING)
        tail["sum"] = frame.text(published("drone_video", name, "time_10s"), MISSING)
        gain = frame.text(published("derived", "drone_video", f"speedup_over_{name}"), MISSING)
        label = "One launch" if method == SUBJECT else FRAME_METHODS[method]
        yield [label, *means.values(), *tail.values(), gain]


def _section(view: View, layer: str, shown: list[str]) -> Iterator[Row]:
    known = [clip for clip in shown if frames(view, clip, layer)]
    if not known:
        return
    longest = known[-1]
    yield f"{view.title}: {LAYERS[layer].lower()}"
    lacking = missing(view, longest) if layer == "host" else {}
    keys = {key.method: key for key in frames(view, longest, layer)}
    for method in FRAME_METHODS:
        if method in lacking:
            blank = [MISSING] * (len(shown) + len(_TAIL))
            yield [FRAME_METHODS[method], view.reasons.cell(lacking[method]), *blank]
        elif method in keys:
            key = keys[method]
            means = [view.text(key.but(workload=f"frames.{clip}.{layer}"), MISSING) for clip in shown]
            tail = [view.text(key.but(quantity=name), MISSING) for name in _TAIL]
            yield [method_name(view, longest, method), *means, *tail, _over(view, longest, layer, method)]


def _over(view: View, clip: str, layer: str, method: str) -> str:
    """Return the speed-up of Octopus; where nothing was entered twice there is no noise floor, and so no verdict."""
    key = timed(view, clip, layer=layer)
    if key.derive("noise_floor") in view.frame:
        return cells.versus_text(view.frame, key, method, view.reasons)
    return cells.number_text(view.frame, key.speedup(method))


def _second(view: View) -> list[Key]:
    """Return one second of video as a loop, of machines that timed some clip."""
    numbers = view.select(workload="second", quantity="clip_time") if clips(view) else []
    return [number.key.but(method=SUBJECT, layer="host") for number in numbers[:1]]


def _overlap(name: str) -> cells.Cell:
    return lambda view, key: cells.number_text(view.frame, view.key("overlap", quantity=name))


_LOOPS = ("One after the other", "Side by side", "Uploads alone", "Kernels alone")
STREAMED = Spec(
    study=STUDY,
    first="Machine",
    label=lambda view, key: view.name,
    cases=_second,
    columns={
        "Frame by frame": cells.time(),
        "One batch": cells.time(method=BATCH),
        "Gain": cells.versus(SUBJECT, method=BATCH),
        **{
            head: cells.time(method=name, layer="pipelined")
            for head, name in zip(_LOOPS, STREAMS, strict=True)
        },
        "Hidden": _overlap("fraction"),
        "Of the longer": _overlap("over_ideal"),
    },
    title=lambda view: "",
    caption="One second of video. Octopus frame by frame, and all frames in one launch, with the speed-up of the "
    "latter. Then frames that come from the host: uploads and kernels one after the other, side by side, and each "
    "alone. Hidden: (one after the other - side by side) / the shorter part; last: side by side / the longer part. "
    f"Medians, {cells.WIDE_NOTE}.",
    absent=f"Streamed frames. {NO_RUN}",
    widths=("1.5fr", *["1fr"] * 9),
)


def draw(frame: Frame) -> Figure:
    """Draw how long the frames take, one row of panels per machine: its longest clip back to back, and at its own rate
    where it was played so."""
    shown = {view: clips(view)[-1] for view in measured(frame)}
    if not shown:
        return style.empty(NO_TIMES)
    note = " ".join(filter(None, (_note(view, clip) for view, clip in shown.items())))
    heights = [0.95 + _ROW * len(frames(view, clip)) for view, clip in shown.items()]
    result, parts, legend = style.stacked(heights, 0.25, note)
    for part, (view, clip) in zip(parts, shown.items(), strict=True):
        layers = [layer for layer in LAYERS if frames(view, clip, layer)]
        methods = [key.method for key in frames(view, clip)]
        axes = part.subplots(1, len(layers), squeeze=False, sharex=True)[0]
        for place, (axis, layer) in enumerate(zip(axes, layers, strict=True)):
            _panel(axis, view, clip, layer, methods)
            names = [method_name(view, clip, name) for name in methods] if place == 0 else []
            axis.set_yticks(range(len(methods)))
            axis.set_yticklabels(names, fontsize=6.8)
            axis.set_title(LAYERS[layer], fontsize=7.5, fontweight="normal")
        _limits(axes, view, clip)
        style.plain_log(axes[0].xaxis, narrow=True)
        style.heading(part, f"{view.name}: {clip_seconds(clip)} s of video")
        part.supxlabel("Frame on the host to its crops (ms)", fontsize=7.5)
    legend.legend(handles=_handles(), loc="center", ncols=4, fontsize=7)
    return result


def _handles() -> list:
    from matplotlib.lines import Line2D

    looks = {
        "Half of the frames": {"color": GREY, "linewidth": 6, "alpha": 0.45},
        "98 % of the frames": {"color": GREY, "linewidth": 1},
        "Frames beyond": {"color": GREY, "marker": ".", "markersize": 3, "linestyle": ""},
        "Time that a frame may take": {"color": BLACK, "linewidth": 1, "linestyle": "--"},
    }
    return [Line2D([], [], label=label, **look) for label, look in looks.items()]


def _panel(axis: Axes, view: View, clip: str, layer: str, methods: list[str]) -> None:
    series = view.series(f"{clip}.{layer}")
    for place, method in enumerate(methods):
        values = np.array(series.columns.get(method, [])) if series else np.array([])
        values = values[np.isfinite(values)]
        if values.size:
            _row(axis, place, values, METHOD_COLORS.get(method, GREY))
            text = _facts(view, view.key(f"frames.{clip}.{layer}", method=method))
            options = {"va": "bottom", "ha": "left", "fontsize": 5.8, "textcoords": "offset points"}
            options["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
            axis.annotate(text, (values.min(), place), (0, 5), **options)
    axis.set(xscale="log")
    axis.set_ylim(len(methods) - 0.5, -0.7)
    bars.plain(axis)


def _limits(axes: Sequence[Axes], view: View, clip: str) -> None:
    """Mark the time that a frame may take in all panels, which share their limits, once they are drawn."""
    budget = view.get(view.key(f"clips.{clip}", quantity="frame_budget"))
    if budget:
        for axis in axes:
            axis.axvline(budget.value, color=BLACK, linewidth=1, linestyle="--")
        axes[0].set_xlim(right=max(axes[0].get_xlim()[1], 1.3 * budget.value))


def _row(axis: Axes, place: int, values: np.ndarray, color: str) -> None:
    """Draw half of the frames thick, 98 % of them thin, and the others as dots."""
    low, first, middle, third, high = np.percentile(values, (1, 25, 50, 75, 99))
    axis.plot([low, high], [place] * 2, color=color, linewidth=1)
    axis.plot([first, third], [place] * 2, color=color, linewidth=6, alpha=0.45, solid_capstyle="butt")
    axis.plot(middle, place, "|", color=color, markersize=9, markeredgewidth=1.6)
    beyond = values[(values < low) | (values > high)]
    axis.plot(beyond, np.full(len(beyond), place), ".", color=color, markersize=2.5)


def _facts(view: View, key: Key) -> str:
    """Say the tail in numbers: 99th percentile, or longest frame of a short clip, and frames that were late."""
    p99, longest, late = (view.text(key.but(quantity=name)) for name in ("p99", "max", "misses"))
    tail = f"p99 {p99}" if p99 else f"longest {longest}"
    return f"{tail}, {late} late" if late else tail


def _note(view: View, clip: str) -> str:
    names = [FRAME_METHODS[name] for name in missing(view, clip)]
    parts = [f"No time on {view.name}: {'; '.join(names)}."] if names else []
    if any(differs(view, clip, name) for name in FRAME_METHODS):
        parts.append(f"{cells.DIFFERENT_NOTE}, on {view.name}.")
    return " ".join(parts)


REPORT = StudyReport(
    numbers=(
        drone_numbers.clips,
        drone_numbers.frames,
        drone_numbers.batch,
        drone_numbers.length,
        drone_numbers.overlap,
    ),
    of_published=(drone_numbers.published_gains,),
    series=(drone_numbers.frame_series,),
    tables={"drone": times, "drone_stream": STREAMED},
    figures={"drone_frames": Chart(draw, absent=NO_RUN)},
    claims="claims_edge",
)
