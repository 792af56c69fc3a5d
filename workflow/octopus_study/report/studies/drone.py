"""A drone's video: its frames against the time that a frame may take."""

import re
from collections.abc import Iterator

import numpy as np

from octopus_study.measure.dependence import blocks_of, by_process
from octopus_study.measure.statistics import Interval, over_processes
from octopus_study.names import FRAME_METHODS, SUBJECT
from octopus_study.report import captions
from octopus_study.report.frame import Frame, Key, Number, make_number, published
from octopus_study.report.missing import no_run
from octopus_study.report.runs import Run, Samples
from octopus_study.report.samples import ENOUGH_FOR_P99, RESAMPLES, by_block, groups, p99, resampled
from octopus_study.report.selector import either, where
from octopus_study.report.study import StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Row, Spec
from octopus_study.report.tables.writers import MISSING
from octopus_study.report.view import View

STUDY = "drone"
FRAME_TIME = "frame_time"
METHODS = (
    "octopus", "n-launches", "n-launches-published", "opencv", "opencv-table", "opencv-table-threads",
)  # fmt: skip
LAYERS = {"host": "back to back", "paced": "at the rate of the video"}
# A published method -> ours, and its name where it isn't ours.
_PUBLISHED = {
    "one-launch": ("octopus", "One launch"),
    "n-launches": ("n-launches-published", ""),
    "opencv": ("opencv", "OpenCV (threads not said)"),
}


def clip_seconds(clip: str) -> int:
    """Return the seconds of a clip by its name; 0 for something else."""
    match = re.fullmatch(r"clip-(\d+)s", clip)
    return int(match[1]) if match else 0


def facts(run: Run) -> Iterator[Number]:
    """Yield a clip's detections under names without their number, which only claims know."""
    rows = run.rows[(run.rows["method"] == "clip") & run.rows["value"].notna()]
    for clip, chosen in rows.groupby("workload", sort=False):
        values = dict(zip(chosen["quantity"], chosen["value"], strict=True))
        key = run.key(f"clips.{clip}")
        source = run.from_rows(chosen["dataset"].iat[0], f"workload={clip}, method=clip")
        if values.get("frames") and "detections" in values:
            count = values["detections"]
            yield make_number(key.but(quantity="detections"), source, "count", count)
            mean, note = count / values["frames"], "detections / frames"
            yield make_number(key.but(quantity="detections_per_frame"), source, "count", mean, note=note)


def _longest(run: Run) -> dict[str, str]:
    """Return the longest clip that was timed on each layer."""
    timed = run.rows[(run.rows["quantity"] == FRAME_TIME) & run.rows["value"].notna()]
    longest: dict[str, str] = {}
    for layer, clip in timed[["layer", "workload"]].drop_duplicates().itertuples(index=False):
        longest[layer] = max(longest.get(layer, ""), clip, key=clip_seconds)
    return longest


def frames(run: Run) -> Iterator[Number]:
    """Yield how the frames of the longest clip are spread: ``frames.<clip>.<layer>.<method>``. And, for claims, each
    method's share of late frames, at the rate of the video where it was played at it, and of the budget back to back,
    which is how the published ones were timed: ``real_time.<method>``."""
    budgets = run.rows[run.rows["quantity"] == "frame_budget"].set_index("workload")["value"].to_dict()
    longest, real_time = _longest(run), {}
    for group, rows in groups(run, quantity=FRAME_TIME):
        if group.workload == longest.get(group.layer):
            budget = where(workload=group.workload, quantity="frame_budget")
            for method, chosen in rows.groupby("method", sort=False):
                values, source = by_block(chosen), group.rows_of(run, method)
                start = run.key(f"frames.{group.workload}.{group.layer}", method=str(method))
                for name, *rest, note in (
                    _spread(values, budgets.get(group.workload)) if method in METHODS and values.size else ()
                ):
                    budgeted = name in ("budget_share", "misses", "late")
                    rests = source._replace(selector=either([source.selector, budget])) if budgeted else source
                    number = make_number(start.but(quantity=name), rests, *rest, note=note)
                    if name == "late" or (name, group.layer) == ("budget_share", "host"):
                        real_time[name, group.layer, method] = number
                    if name != "late":
                        yield number
    for (name, layer, method), number in real_time.items():
        if layer == "paced" or name != "late" or (name, "paced", method) not in real_time:
            yield number.named(run.key("real_time", method=str(method), quantity=name))


def _spread(values: Samples, budget: float | None) -> Iterator[tuple]:
    """Yield name, unit, value with its interval, and note."""
    mean, note = resampled(values, np.mean), "over the frames"
    yield "mean", "ms", *mean, note
    if values.size >= ENOUGH_FOR_P99:
        yield "p99", "ms", *resampled(values, p99), note
    yield "max", "ms", float(values.max()), "longest frame"
    if budget:
        late = values > budget
        yield "budget_share", "fraction", *mean.scaled(1 / budget), f"mean / budget; {note}"
        yield "misses", "count", float(late.sum()), f"of {len(values)} frames"
        yield "late", "fraction", *resampled(late.astype(float), np.mean), f"late frames / frames; {note}"


def length(run: Run) -> Iterator[Number]:
    """Yield the mean frame of the longest clip over that of the shortest; clips share no frames, so each is resampled
    on its own."""
    found = {
        clip_seconds(group.workload): (group.dataset, by_block(rows))
        for group, rows in groups(run, quantity=FRAME_TIME, layer="host", method=SUBJECT)
        if clip_seconds(group.workload) and rows["value"].notna().any()
    }
    if len(found) > 1:
        (_, short), (dataset, long) = found[min(found)], found[max(found)]
        clips = [f"clip-{seconds}s" for seconds in (max(found), min(found))]
        chosen = where(workload=clips, quantity=FRAME_TIME, layer="host", method=SUBJECT)
        note = "mean frame of the longest clip / of the shortest, over the frames"
        key, source = run.key("length", method=SUBJECT), run.from_rows(dataset, chosen)
        yield make_number(key, source, "ratio", *_ratio_of_means(long, short), note=note)


def _ratio_of_means(long: Samples, short: Samples) -> Interval:
    count = min(len(long), len(short))
    means = [[part.mean() for part in by_process(one.to_numpy(), blocks_of(one))] for one in (long, short)]
    if len(means[0]) == len(means[1]) > 1:
        return over_processes(np.divide(*means), count)
    rng = np.random.default_rng(0)
    top, bottom = (
        values[rng.integers(0, len(values), (RESAMPLES, len(values)))].mean(axis=1)
        for values in (long.to_numpy(), short.to_numpy())
    )
    low, high = np.quantile(top / bottom, (0.025, 0.975))
    return Interval(float(long.mean() / short.mean()), float(low), float(high), count, resampled=True)


def clips(view: View, layer: str = "host") -> list[str]:
    """Return the clips that a machine timed on a layer, the longest last."""
    timed = {number.workload for number in view.select(quantity=FRAME_TIME, layer=layer) if number.known}
    return sorted(timed, key=clip_seconds)


def _sections(view: View) -> Iterator[Key | str]:
    for layer, words in LAYERS.items():
        if timed := clips(view, layer):
            yield f"{view.title}: {words}, {clip_seconds(timed[-1])} s of video"
            numbers = view.select(workload=timed[-1], quantity=FRAME_TIME, layer=layer)
            medians = {number.method: number for number in numbers if number.known or layer == "host"}
            yield from (medians[name].key for name in METHODS if name in medians)


def _of_frames(quantity: str) -> cells.Cell:
    return lambda view, key: view.text(
        view.key(f"frames.{key.workload}.{key.layer}", method=key.method, quantity=quantity), MISSING
    )


def _over(view: View, key: Key) -> str:
    """Say the speed-up of Octopus; where nothing was entered twice there is no noise floor, and so no verdict."""
    own = key.but(method=SUBJECT)
    if not view.frame[key].known:
        return MISSING
    if own.derive("noise_floor") in view.frame:
        return cells.versus_text(view.frame, own, key.method, view.reasons)
    return cells.number_text(view.frame, own.speedup(key.method))


def _published(frame: Frame) -> Iterator[Row]:
    yield "Jetson Orin Nano, as published"
    for name, (method, label) in _PUBLISHED.items():
        mean, share = (frame.text(published("drone_video", name, one)) for one in ("frame_time", "budget_share"))
        yield [label or FRAME_METHODS[method], MISSING, mean, MISSING, MISSING, share, MISSING, MISSING]


FRAMES = Spec(
    study=STUDY,
    first="Method",
    label=lambda view, key: f"{FRAME_METHODS[key.method]}{cells.different_mark(view.frame[key], view.reasons)}",
    cases=_sections,
    columns={
        "Median": cells.time(),
        "Mean": _of_frames("mean"),
        "99 %": _of_frames("p99"),
        "Longest": _of_frames("max"),
        "Of budget": _of_frames("budget_share"),
        "Late": _of_frames("misses"),
        "Octopus over it": _over,
    },
    title=lambda view: "",
    before=_published,
    caption=lambda frame: captions.TABLES["drone"].format(
        budget=frame.text(published("drone_video", "scene", "frame_budget"))
    ),
    absent=no_run(STUDY),
    widths=("2.3fr", *("1fr",) * 7),
)
REPORT = StudyReport(
    numbers=(facts, frames, length),
    compares=lambda group, other: group.quantity == FRAME_TIME,
    tables={"drone": FRAMES},
)
