"""A drone's video: its frames against the time that a frame may take, and the streamed second."""

from __future__ import annotations

from collections.abc import Iterator

from octopus_study.names import FRAME_METHODS, SUBJECT
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import Frame, Key, published
from octopus_study.report.missing import no_run
from octopus_study.report.studies import drone_numbers
from octopus_study.report.studies.drone_figure import draw
from octopus_study.report.studies.drone_numbers import BATCH, CLIP_TIME, FRAME_TIME, STREAMS
from octopus_study.report.studies.drone_view import (
    LAYERS,
    METHODS,
    clip_seconds,
    clips,
    differs,
    frames_of,
    medians_of,
)
from octopus_study.report.study import StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.cells import Cell
from octopus_study.report.tables.spec import Row, Spec
from octopus_study.report.tables.writers import MISSING
from octopus_study.report.view import View, views

# Published: the names of the same methods, and the lengths of the clips.
_PUBLISHED = {"octopus": "one-launch", "n-launches-published": "n-launches", "opencv": "opencv"}
_PUBLISHED_NAMES = {"octopus": "One launch", "opencv": "OpenCV (threads not said)"}
_SECONDS = (1, 5, 10)


def _shown_clips(frame: Frame) -> list[str]:
    timed = {clip for view in views(frame, "drone") for clip in clips(view)}
    return sorted(timed | {f"clip-{seconds}s" for seconds in _SECONDS}, key=clip_seconds)


def _mean(clip: str, first: bool) -> Cell:
    def cell(view: View, key: Key) -> str:
        median = view.frame[key]
        if not median.known:
            return view.reasons.cell(median.note) if first else MISSING
        return view.text(frames_of(key, clip).but(quantity="mean"), MISSING)

    return cell


def _tail(quantity: str) -> Cell:
    return lambda view, key: view.text(frames_of(key).but(quantity=quantity), MISSING)


def _over(view: View, key: Key) -> str:
    """Say the speed-up of Octopus; where nothing was entered twice there is no noise floor, and so no verdict."""
    own = key.but(method=SUBJECT)
    if not view.frame[key].known:
        return MISSING
    if own.derive("noise_floor") in view.frame:
        return cells.versus_text(view.frame, own, key.method, view.reasons)
    return cells.number_text(view.frame, own.speedup(key.method))


_TAIL = {
    "Median": "p50",
    "99 %": "p99",
    "Longest": "max",
    "Of budget": "budget_share",
    "Late": "misses",
    "Clip": "sum",
}


def _columns(frame: Frame) -> list[tuple[str, Cell]]:
    means = [
        (f"Mean, {clip_seconds(clip)} s", _mean(clip, place == 0))
        for place, clip in enumerate(_shown_clips(frame))
    ]
    return [*means, *((head, _tail(name)) for head, name in _TAIL.items()), ("Octopus over it", _over)]


def _sections(view: View) -> Iterator[Key | str]:
    for layer, words in LAYERS.items():
        if timed := clips(view, layer):
            yield f"{view.title}: {words.lower()}"
            medians = medians_of(view, timed[-1], layer)
            yield from (
                n.key for name in METHODS if (n := medians.get(name)) and (n.known or layer == "host")
            )


def _published(frame: Frame) -> Iterator[Row]:
    yield "Jetson Orin Nano, as published"
    for method, name in _PUBLISHED.items():
        means = dict.fromkeys(_shown_clips(frame), MISSING)
        for seconds in _SECONDS:
            quantity = "frame_time" if seconds == max(_SECONDS) else f"frame_time_{seconds}s"
            means[f"clip-{seconds}s"] = frame.text(published("drone_video", name, quantity), MISSING)
        share, whole = (
            frame.text(published("drone_video", name, q), MISSING) for q in ("budget_share", "time_10s")
        )
        gain = frame.text(published("derived", "drone_video", f"speedup_over_{name}"), MISSING)
        label = _PUBLISHED_NAMES.get(method, FRAME_METHODS[method])
        yield [label, *means.values(), *(MISSING,) * 3, share, MISSING, whole, gain]


def _caption(frame: Frame) -> str:
    """Return the caption: crops of each frame of a clip, late frames, and frames at the rate of the video."""
    budget = frame.text(published("drone_video", "scene", "frame_budget"))
    return (
        "Crops of each frame, from the frame on the host to the crops: mean frame of each clip, and of the longest one "
        f"median, 99th percentile, longest frame, share of the {budget} that a frame may take, late frames, all frames "
        "together, and the speed-up of Octopus (median of the frames' ratios) with the verdict where it isn't faster. "
        "OpenCV leaves its crops on the host, and uses the threads that its rows name. At the rate of the video each "
        "method has a pass of its own, and the device idles between frames."
    )


def _name(view: View, key: Key) -> str:
    return f"{FRAME_METHODS[key.method]}{differs(view, key)}"


FRAMES = Spec(
    study="drone",
    first="Method",
    label=_name,
    cases=_sections,
    columns=_columns,
    title=lambda view: "",
    before=_published,
    caption=_caption,
    absent=no_run("drone"),
    widths=("2.3fr", *("1fr",) * 10),
)
STREAM = Spec(
    study="drone",
    first="Machine",
    label=lambda view, key: view.name,
    cases=lambda view: [
        n.key for n in view.select(workload="second", method=SUBJECT, quantity=CLIP_TIME) if clips(view)
    ],
    columns={
        "Frame by frame": cells.time(),
        "One batch": cells.time(method=BATCH),
        "Gain": cells.versus(SUBJECT, method=BATCH),
        "One after the other": cells.time(method=STREAMS[0], layer="pipelined"),
        "Side by side": cells.time(method=STREAMS[1], layer="pipelined"),
        "Uploads alone": cells.time(method=STREAMS[2], layer="pipelined"),
        "Kernels alone": cells.time(method=STREAMS[3], layer="pipelined"),
        "Hidden": cells.interval(workload="overlap", n=None, method="", quantity="fraction", layer=""),
        "Of the longer": lambda view, key: cells.number_text(
            view.frame, view.key("overlap", quantity="over_ideal")
        ),
    },
    title=lambda view: "",
    caption="One second of video. Octopus frame by frame, and all frames in one launch, with the speed-up of the "
    "latter. Then frames that come from the host: uploads and kernels one after the other, side by side, and each "
    "alone. Hidden: (one after the other - side by side) / the shorter part; last: side by side / the longer part. "
    "Frame by frame brings each frame to the place of the one before, which the check of inputs counts as a change. "
    f"Medians, {cells.WIDE_NOTE}.",
    absent=f"Streamed frames. {no_run('drone')}",
    widths=("1.5fr", *("1fr",) * 9),
)
REPORT = StudyReport(
    numbers=(
        drone_numbers.facts,
        drone_numbers.frames,
        drone_numbers.real_time,
        drone_numbers.length,
        drone_numbers.opencv,
        drone_numbers.batch,
        drone_numbers.overlap,
    ),
    of_published=(drone_numbers.published_ratios,),
    series=(drone_numbers.frame_series,),
    compares=lambda group, other: group.quantity == FRAME_TIME,
    tables={"drone": FRAMES, "drone_stream": STREAM},
    figures={
        "drone_frames": Chart(
            draw,
            "Time of each frame of the longest clip, from the frame on the host to its crops.",
        )
    },
)
