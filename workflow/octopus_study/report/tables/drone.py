"""Tables of the drone's video: the frames of its clips against their budget, and the streamed second."""

from __future__ import annotations

from collections.abc import Iterator

from octopus_study.report import drone
from octopus_study.report.captions import scope_name, scope_title
from octopus_study.report.derive.drone import STREAMS, clip_seconds
from octopus_study.report.drone import NO_RUN, STUDY
from octopus_study.report.labels_edge import FRAME_METHODS
from octopus_study.report.numbers import Numbers
from octopus_study.report.tables import oldcells as cells
from octopus_study.report.tables.oldwriters import MISSING, Table

_SECONDS = (1, 5, 10)  # of the published clips
_TAIL = ("p50", "p99", "max", "budget_share", "misses", "sum")
_PUBLISHED = "published.drone_video"


def frames(numbers: Numbers) -> Table:
    """Mean frame of every clip, and of the longest one the distribution, lateness and the speed-up of Octopus."""
    scopes = drone.measured(numbers)
    found = {clip for scope in scopes for clip in drone.clips(numbers, scope)}
    clips = sorted(found | {f"clip-{seconds}s" for seconds in _SECONDS}, key=clip_seconds)
    reasons = cells.Reasons()
    rows = [*_published(numbers, clips)]
    for scope in scopes:
        for layer in drone.LAYERS:
            rows += _section(numbers, (scope, layer), clips, reasons)
    budget = numbers.text(f"{_PUBLISHED}.scene.frame_budget")
    caption = (
        "Crops of each frame, from the frame on the host to the crops: mean frame of each clip, and of the longest one "
        f"median, 99th percentile, longest frame, share of the {budget} that a frame may take, late frames, all frames "
        "together, and the speed-up of Octopus (median of the frames' ratios) with the verdict where it isn't faster. "
        "OpenCV leaves its crops on the host. At the rate of the video each method has a pass of its own, and the "
        f"device idles between frames. {cells.DIFFERENT_NOTE}.{reasons.note}{'' if scopes else ' ' + NO_RUN}"
    )
    header = ["Method", *(f"Mean, {clip_seconds(clip)} s" for clip in clips)]
    header += ["Median", "99 %", "Longest", "Of budget", "Late", "Clip", "Octopus over it"]
    return Table("drone", caption, header, rows, widths=("2.3fr", *("1fr" for _ in header[1:])))


def _published(numbers: Numbers, clips: list[str]) -> Iterator[list[str] | str]:
    yield "Jetson Orin Nano, as published"
    for method, name in drone.PUBLISHED.items():
        start, tail = f"{_PUBLISHED}.{name}", dict.fromkeys(_TAIL, MISSING)
        means = dict.fromkeys(clips, MISSING)
        for seconds in _SECONDS:
            key = f"{start}.frame_time" + ("" if seconds == max(_SECONDS) else f"_{seconds}s")
            means[f"clip-{seconds}s"] = numbers.text(key, MISSING)
        tail["budget_share"] = numbers.text(f"{start}.budget_share", MISSING)
        tail["sum"] = numbers.text(f"{start}.time_10s", MISSING)
        gain = numbers.text(f"published.derived.drone_video.speedup_over_{name}", MISSING)
        label = "One launch" if method == "octopus" else FRAME_METHODS[method]
        yield [label, *means.values(), *tail.values(), gain]


def _section(
    numbers: Numbers, where: tuple[str, str], clips: list[str], reasons: cells.Reasons
) -> Iterator[list[str] | str]:
    scope, layer = where
    known = [clip for clip in clips if drone.methods(numbers, scope, clip, layer)]
    if not known:
        return
    longest = known[-1]
    yield f"{scope_title(numbers, scope, STUDY)}: {drone.LAYERS[layer].lower()}"
    missing = drone.missing(numbers, scope, longest) if layer == "host" else {}
    for method in drone.METHODS:
        if method in missing:
            blank = [MISSING] * (len(clips) + len(_TAIL))
            yield [FRAME_METHODS[method], reasons.cell(missing[method]), *blank]
        elif numbers.get(drone.key(scope, longest, method, "mean", layer)):
            means = [numbers.text(drone.key(scope, clip, method, "mean", layer), MISSING) for clip in clips]
            tail = [numbers.text(drone.key(scope, longest, method, name, layer), MISSING) for name in _TAIL]
            ours = f"{drone.start(numbers, scope, longest)}.octopus.frame_time.{layer}"
            mark = f" {cells.DIFFERENT}" if drone.differs(numbers, scope, longest, method) else ""
            yield [f"{FRAME_METHODS[method]}{mark}", *means, *tail, _over(numbers, ours, method, reasons)]


def _over(numbers: Numbers, ours: str, method: str, reasons: cells.Reasons) -> str:
    """Return the speed-up of Octopus; where nothing was entered twice there is no noise floor, and so no verdict."""
    if f"{ours}.noise_floor" in numbers:
        return cells.versus_cell(numbers, ours, method, reasons)
    return cells.text_cell(numbers, f"{ours}.speedup_over_{method}")


_LOOPS = ("octopus", "octopus-batch")


def streams(numbers: Numbers) -> Table:
    """One second of video as a loop: frame by frame, in one batch, and with uploads beside the kernels."""
    reasons = cells.Reasons()
    rows: list[list[str] | str] = []
    for scope in drone.measured(numbers):
        start = drone.start(numbers, scope, "second")
        if not start:
            continue
        keys = [f"{start}.{name}.clip_time.host" for name in _LOOPS]
        keys += [f"{start}.{name}.clip_time.pipelined" for name in STREAMS]
        hidden, ideal = (
            cells.text_cell(numbers, f"{scope}.{STUDY}.overlap.{name}") for name in ("fraction", "over_ideal")
        )
        gain = cells.versus_cell(numbers, keys[1], _LOOPS[0], reasons)
        times = [cells.time_cell(numbers, key, reasons) for key in keys]
        rows.append([scope_name(numbers, scope), *times[:2], gain, *times[2:], hidden, ideal])
    caption = (
        "One second of video. Octopus frame by frame, and all frames in one launch, with the speed-up of the latter. "
        "Then frames that come from the host: uploads and kernels one after the other, side by side, "
        "and each alone. Hidden: (one after the other - side by side) / the shorter part; last: side by side / the "
        "longer part. "
        f"Medians, {cells.WIDE_NOTE}.{reasons.note}"
    )
    header = ["Machine", "Frame by frame", "One batch", "Gain", "One after the other", "Side by side"]
    header += ["Uploads alone", "Kernels alone", "Hidden", "Of the longer"]
    widths = ("1.5fr", *("1fr" for _ in header[1:]))
    return Table(
        "drone_stream", caption if rows else f"Streamed frames. {NO_RUN}", header, rows, widths=widths
    )
