"""What only the study of the drone's video knows: how the frames of a clip are spread, what misses its budget, and how
much of the upload hides behind the kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from octopus_study.measure.statistics import median_interval
from octopus_study.report.frame import Frame, Number, make_number, published
from octopus_study.report.measured import SUBJECT, floor_of, speedup
from octopus_study.report.published import derived
from octopus_study.report.runs import Run
from octopus_study.report.samples import AGAIN, RESAMPLES, Group, groups, pivot, resampled
from octopus_study.report.series import Series

if TYPE_CHECKING:
    import pandas as pd

BATCH = "octopus-batch"
STREAMS = ("stream-serial", "stream-overlapped", "upload-only", "kernels-only")
# With fewer frames the 99th percentile is their maximum.
ENOUGH_FOR_P99 = 100
_p99 = partial(np.quantile, q=0.99)
Ends = tuple[float, ...]


def clip_seconds(clip: str) -> int:
    """Return the seconds of a clip by its name; 0 for something else."""
    match = re.fullmatch(r"clip-(\d+)s", clip)
    return int(match[1]) if match else 0


def _facts(run: Run) -> Iterator[tuple[pd.Series, dict[str, tuple[float, str]]]]:
    """Yield what is known of each clip: a row of it, and (value, unit) by quantity."""
    rows = run.rows[(run.rows["method"] == "clip") & run.rows["value"].notna()]
    for _, chosen in rows.groupby("workload", sort=False):
        values = zip(chosen["value"].astype(float), chosen["unit"], strict=True)
        yield chosen.iloc[0], dict(zip(chosen["quantity"], values, strict=True))


def clips(run: Run) -> Iterator[Number]:
    """Yield a clip's facts under names without its number of detections, which only claims know."""
    for row, facts in _facts(run):
        where = f"workload={row['workload']}, method=clip"
        for name, (value, unit) in facts.items():
            source = run.from_rows(row["dataset"], f"{where}, quantity={name}")
            yield make_number(run.key(f"clips.{row['workload']}", quantity=name), source, unit, value)
        if "frames" in facts:
            key = run.key(f"clips.{row['workload']}", quantity="detections_per_frame")
            mean = facts["detections"][0] / facts["frames"][0]
            source = run.from_rows(row["dataset"], where)
            yield make_number(key, source, "count", mean, note="detections / frames")


def _frames(run: Run) -> Iterator[tuple[Group, pd.DataFrame]]:
    """Yield the frame times of each clip and layer, frame by method."""
    for group, rows in groups(run, quantity="frame_time"):
        table = pivot(rows).sort_index()
        yield group, table[[name for name in table if not name.endswith(AGAIN)]]


def frames(run: Run) -> Iterator[Number]:
    """Yield ``frames.<clip>.<layer>.<method>.<name>``: the mean of each clip, and of the longest also the rest."""
    budgets = {
        row["workload"]: facts["frame_budget"][0] for row, facts in _facts(run) if "frame_budget" in facts
    }
    longest = max((clip_seconds(group.workload) for group, _ in _frames(run)), default=0)
    for group, table in _frames(run):
        for method in table:
            values = table[method].dropna().to_numpy()
            known = spread_of(values, budgets.get(group.workload))
            names = known if clip_seconds(group.workload) == longest else ["mean"]
            for name in names:
                unit, ends, note = known[name]
                key = run.key(f"frames.{group.workload}.{group.layer}", method=str(method), quantity=name)
                yield make_number(key, group.rows_of(run, str(method)), unit, *ends, note=note)


def spread_of(values: np.ndarray, budget: float | None) -> dict[str, tuple[str, Ends, str]]:
    """Return how the milliseconds of a clip's frames are spread: name -> (unit, value and interval, note)."""
    mean, note = resampled(values, np.mean), "over the frames; the interval resamples them"
    known = {"mean": ("ms", mean, note), "p50": ("ms", median_interval(values)[:3], note)}
    if values.size >= ENOUGH_FOR_P99:
        known["p99"] = ("ms", resampled(values, _p99), note)
    known["max"] = ("ms", (float(values.max()),), "longest frame")
    known["sum"] = ("ms", tuple(len(values) * end for end in mean), "all frames, one after the other")
    if budget:
        known["budget_share"] = ("fraction", tuple(end / budget for end in mean), "mean / budget")
        known["misses"] = ("count", (float((values > budget).sum()),), f"of {len(values)} frames")
    return known


def frame_series(run: Run) -> Iterator[Series]:
    """Yield ``<clip>.<layer>``: the milliseconds of each frame of the longest clip by each method."""
    tables = list(_frames(run))
    longest = max((clip_seconds(group.workload) for group, _ in tables), default=0)
    for group, table in tables:
        if clip_seconds(group.workload) == longest and len(table):
            columns = {str(name): [float(f"{value:.4g}") for value in table[name]] for name in table}
            yield Series(run.scope, run.study, f"{group.workload}.{group.layer}", columns)


def batch(run: Run) -> Iterator[Number]:
    """Yield the speed-up of all frames in one launch over frame by frame."""
    for group, rows in groups(run, quantity="clip_time", layer="host"):
        table = pivot(rows)
        if {BATCH, SUBJECT} <= set(table.columns):
            yield from speedup(run, group, table, (BATCH, SUBJECT), floor_of(table))


def length(run: Run) -> Iterator[Number]:
    """Yield the mean frame of the longest clip over that of the shortest; clips share no frames, so each is resampled
    on its own."""
    tables = {
        clip_seconds(group.workload): (group, table) for group, table in _frames(run) if group.layer == "host"
    }
    tables.pop(0, None)
    if len(tables) > 1:
        short, long = min(tables), max(tables)
        (_, bottom), (group, top) = tables[short], tables[long]
        if SUBJECT in top and SUBJECT in bottom:
            ratio = _ratio_of_means(*(table[SUBJECT].dropna().to_numpy() for table in (top, bottom)))
            source = run.from_rows(group.dataset, f"clips of {long} and {short} s, method={SUBJECT}")
            note = "mean frame of the longest clip / of the shortest"
            yield make_number(run.key("length", method=SUBJECT), source, "ratio", *ratio, note=note)


def _ratio_of_means(top: np.ndarray, bottom: np.ndarray) -> Ends:
    rng = np.random.default_rng(0)
    draws = [
        values[rng.integers(0, len(values), (RESAMPLES, len(values)))].mean(axis=1)
        for values in (top, bottom)
    ]
    return float(top.mean() / bottom.mean()), *map(float, np.quantile(draws[0] / draws[1], (0.025, 0.975)))


def overlap(run: Run) -> Iterator[Number]:
    """Yield which part of what could be hidden was hidden, and how far the streamed loop is from the longer of its
    parts."""
    for group, rows in groups(run, quantity="clip_time", layer="pipelined"):
        table = pivot(rows)
        if not set(STREAMS) <= set(table.columns) or table.dropna().empty:
            continue
        serial, overlapped, upload, kernels = table.dropna()[list(STREAMS)].to_numpy().T
        shorter, longer = np.minimum(upload, kernels), np.maximum(upload, kernels)
        shares = {
            "fraction": ("fraction", (serial - overlapped) / shorter, "(serial - overlapped) / shorter part"),
            "speedup": ("ratio", serial / overlapped, "serial / overlapped"),
            "over_ideal": ("ratio", overlapped / longer, "overlapped / longer part"),
        }
        for name, (unit, values, note) in shares.items():
            key, ends = run.key("overlap", quantity=name), median_interval(values)[:3]
            yield make_number(key, group.rows_of(run), unit, *ends, note=f"{note}, median over blocks")


def published_gains(frame: Frame) -> Iterator[Number]:
    """Yield ratios of the published times of a clip: other / one launch."""
    one = frame.get(published("drone_video", "one-launch", "time_10s"))
    for other in ("opencv", "n-launches") if one else ():
        ratio = frame.value(published("drone_video", other, "time_10s")) / one.value
        yield derived(one, "drone_video", "ratio", ratio, "time / time", derived="speedup", other=other)
