"""The numbers of the drone's video: how the frames of a clip are spread, what misses its budget, and how much of the
upload hides behind the kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from octopus_study.measure.dependence import blocks_of, by_process, process_count
from octopus_study.measure.statistics import Interval, median_interval, over_processes
from octopus_study.names import SUBJECT
from octopus_study.report.fastest import best_opencv
from octopus_study.report.frame import Frame, Number, make_number, published
from octopus_study.report.measured import floor_of, speedup
from octopus_study.report.published import derived
from octopus_study.report.runs import Run
from octopus_study.report.samples import (
    ENOUGH_FOR_P99,
    RESAMPLES,
    alone,
    by_block,
    drawn,
    groups,
    heeded,
    noted,
    p99,
    pivot,
    resampled,
)
from octopus_study.report.selector import either, where
from octopus_study.report.series import Series
from octopus_study.report.studies.drone_view import METHODS, clip_seconds, frames_of

if TYPE_CHECKING:
    import pandas as pd

BATCH = "octopus-batch"
STREAMS = ("stream-serial", "stream-overlapped", "upload-only", "kernels-only")
FRAME_TIME, CLIP_TIME = "frame_time", "clip_time"
# What rests on the budget of a frame too.
_BUDGETED = ("budget_share", "misses", "late_share")


def facts(run: Run) -> Iterator[Number]:
    """Yield a clip's facts under names without its number of detections, which only claims know."""
    rows = run.rows[(run.rows["method"] == "clip") & run.rows["value"].notna()]
    for clip, chosen in rows.groupby("workload", sort=False):
        dataset, values = (
            chosen["dataset"].iat[0],
            dict(zip(chosen["quantity"], chosen["value"], strict=True)),
        )
        key = run.key(f"clips.{clip}")
        for name, unit in (("detections", "count"), ("frame_budget", "ms")):
            if name in values:
                source = run.from_rows(dataset, f"workload={clip}, method=clip, quantity={name}")
                yield make_number(key.but(quantity=name), source, unit, values[name])
        if values.get("frames") and "detections" in values:
            source = run.from_rows(dataset, f"workload={clip}, method=clip")
            mean = values["detections"] / values["frames"]
            where = (key.but(quantity="detections_per_frame"), source, "count", mean)
            yield make_number(*where, note="detections / frames")


def _clips(run: Run) -> dict[str, str]:
    """Return the longest clip that was timed on each layer."""
    timed = run.rows[(run.rows["quantity"] == FRAME_TIME) & run.rows["value"].notna()]
    longest: dict[str, str] = {}
    for layer, clip in timed[["layer", "workload"]].drop_duplicates().itertuples(index=False):
        longest[layer] = max(longest.get(layer, ""), clip, key=clip_seconds)
    return longest


def frames(run: Run) -> Iterator[Number]:
    """Yield the mean frame of each clip and method, and of the longest clip how its frames are spread."""
    budgets = run.rows[run.rows["quantity"] == "frame_budget"].set_index("workload")["value"].to_dict()
    longest = _clips(run)
    for group, rows in groups(run, quantity=FRAME_TIME):
        for method, chosen in rows.groupby("method", sort=False):
            values = by_block(chosen)
            if method in METHODS and values.size:
                key, source = frames_of(group.key(run, method)), group.rows_of(run, method)
                mean = resampled(values, np.mean)
                note = noted("over the frames", drawn(values), alone(values))
                yield make_number(key.but(quantity="mean"), source, "ms", *mean, note=note)
                if group.workload == longest[group.layer]:
                    for name, *rest, said in _spread(values, mean, budgets.get(group.workload), note):
                        budget = where(workload=group.workload, quantity="frame_budget")
                        chosen = source
                        if name in _BUDGETED:
                            chosen = source._replace(selector=either([source.selector, budget]))
                        yield make_number(key.but(quantity=name), chosen, *rest, note=said)


def _spread(values: pd.Series, mean: Interval, budget: float | None, note: str) -> Iterator[tuple]:
    """Yield name, unit, value with its interval, and note; `note` is that of the mean."""
    yield "p50", "ms", *median_interval(values), heeded("over the frames", values, timed=True)
    if values.size >= ENOUGH_FOR_P99:
        yield "p99", "ms", *resampled(values, p99), note
    yield "max", "ms", float(values.max()), "longest frame"
    whole = mean.scaled(len(values) / process_count(values))
    yield "sum", "ms", *whole, f"all frames, one after the other; {note}"
    if budget:
        yield "budget_share", "fraction", *mean.scaled(1 / budget), f"mean / budget; {note}"
        late = values > budget
        yield "misses", "count", float(late.sum()), f"of {len(values)} frames"
        yield (
            "late_share",
            "fraction",
            *resampled(late.astype(float), np.mean),
            f"late frames / frames; {note}",
        )


def real_time(run: Run) -> Iterator[Number]:
    """Yield, of the longest clip, each method's share of late frames, at the rate of the video where it was played at
    it, and its share of the budget back to back, which is how the published ones were timed."""
    known = {number.key: number for number in frames(run)}
    longest = _clips(run)
    for method in METHODS:
        for name, quantity, layers in (
            ("late", "late_share", ("paced", "host")),
            ("budget_share", "budget_share", ("host",)),
        ):
            starts = (f"frames.{longest[layer]}.{layer}" for layer in layers if layer in longest)
            numbers = [known.get(run.key(start, method=method, quantity=quantity)) for start in starts]
            if number := next((one for one in numbers if one), None):
                note = f"{number.workload.rpartition('.')[2]}: {number.note}"
                yield number.named(run.key("real_time", method=method, quantity=name))._replace(note=note)


def frame_series(run: Run) -> Iterator[Series]:
    """Yield the frames of the longest clips in their order, as milliseconds that a figure can tell apart."""
    longest = _clips(run)
    for group, rows in groups(run, quantity=FRAME_TIME):
        if longest.get(group.layer) == group.workload:
            for method, chosen in rows.sort_values("block").groupby("method", sort=False):
                values = [float(f"{value:.4g}") for value in chosen["value"].dropna()]
                if method in METHODS and values:
                    yield Series(
                        run.scope, run.study, f"{group.workload}.{group.layer}.{method}", {"ms": values}
                    )


def length(run: Run) -> Iterator[Number]:
    """Yield the mean frame of the longest clip over that of the shortest; clips share no frames, so each is resampled
    on its own."""
    by_length: dict[int, tuple[str, pd.Series]] = {}
    for group, rows in groups(run, quantity=FRAME_TIME, layer="host", method=SUBJECT):
        if clip_seconds(group.workload) and rows["value"].notna().any():
            by_length[clip_seconds(group.workload)] = (group.dataset, by_block(rows))
    if len(by_length) > 1:
        (_, short), (dataset, long) = by_length[min(by_length)], by_length[max(by_length)]
        clips = [f"clip-{seconds}s" for seconds in (max(by_length), min(by_length))]
        chosen = where(workload=clips, quantity=FRAME_TIME, layer="host", method=SUBJECT)
        note = "mean frame of the longest clip / of the shortest, over the frames"
        note = noted(note, drawn(long), alone(long))
        key, source = run.key("length", method=SUBJECT), run.from_rows(dataset, chosen)
        yield make_number(key, source, "ratio", *_ratio_of_means(long, short), note=note)


def _ratio_of_means(long: pd.Series, short: pd.Series) -> Interval:
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
    return Interval(float(long.mean() / short.mean()), float(low), float(high), count)


def opencv(run: Run) -> Iterator[Number]:
    """Yield the fastest form of OpenCV on the frames of a clip, and the speed-up over it."""
    for group, rows in groups(run, quantity=FRAME_TIME):
        yield from best_opencv(run, group, pivot(rows))


def batch(run: Run) -> Iterator[Number]:
    """Yield the speed-up of all frames in one batch over frame by frame."""
    for group, rows in groups(run, quantity=CLIP_TIME, layer="host"):
        table = pivot(rows)
        if {BATCH, SUBJECT} <= set(table):
            yield from speedup(run, group, table, (BATCH, SUBJECT), floor_of(table))


def overlap(run: Run) -> Iterator[Number]:
    """Yield which part of what could be hidden was hidden, and how far the streamed loop is from the longer of its
    parts."""
    for group, rows in groups(run, quantity=CLIP_TIME, layer="pipelined"):
        table = pivot(rows)
        whole = table.notna().all(axis=1)
        if not set(STREAMS) <= set(table) or not whole.any():
            continue
        for name, unit, values, note in _overlaps(table[whole]):
            key = run.key("overlap", quantity=name)
            note = heeded(f"{note}, median over blocks", values)
            yield make_number(key, group.rows_of(run), unit, *median_interval(values), note=note)


def _overlaps(table: pd.DataFrame) -> Iterator[tuple[str, str, pd.Series, str]]:
    serial, overlapped, upload, kernels = (table[name] for name in STREAMS)
    shorter, longer = np.minimum(upload, kernels), np.maximum(upload, kernels)
    yield "fraction", "fraction", (serial - overlapped) / shorter, "(serial - overlapped) / shorter part"
    yield "speedup", "ratio", serial / overlapped, "serial / overlapped"
    yield "over_ideal", "ratio", overlapped / longer, "overlapped / longer part"


def published_ratios(frame: Frame) -> Iterator[Number]:
    """Yield ratios of the published clip times."""
    one = frame.find(published("drone_video", "one-launch", "time_10s"))
    for other in ("opencv", "n-launches") if one else ():
        longer = frame[published("drone_video", other, "time_10s")]
        ratio = longer.value / one.value
        yield derived(
            (one, longer), "drone_video", "ratio", ratio, "time / time", derived="speedup", other=other
        )
