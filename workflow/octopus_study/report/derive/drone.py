"""What only the study of the drone's video knows: how the frames of a clip are spread, what misses its budget, and how
much of the upload hides behind the kernels."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from octopus_study.measure.statistics import median_interval
from octopus_study.report.derive.comparisons import SUBJECT, floor_of, speedup
from octopus_study.report.derive.edge import RESAMPLES, resampled, single_values
from octopus_study.report.derive.samples import AGAIN, Group, groups, origin, pivot, slug
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run

if TYPE_CHECKING:
    import pandas as pd

GRAPH, BATCH = "octopus-graph", "octopus-batch"
OTHERS = ("opencv", "n-launches", "n-launches-published")
STREAMS = ("stream-serial", "stream-overlapped", "upload-only", "kernels-only")
# With fewer frames the 99th percentile is their maximum.
ENOUGH_FOR_P99 = 100
_p99 = partial(np.quantile, q=0.99)


def drone_numbers(run: Run) -> Iterator[Number]:
    """Yield the study's derived numbers."""
    budgets = {}
    for (dataset, clip, _n), values in single_values(run):
        budgets[clip] = values.get(("clip", "frame_budget"))
        yield from _clip(run, dataset, clip, values)
    for group, rows in groups(run, quantity="frame_time"):
        for method, chosen in rows.groupby("method", sort=False):
            if not str(method).endswith(AGAIN):
                yield from _frames(run, group, str(method), chosen, budgets.get(group.workload))
        yield from _graph(run, group, rows)
    for group, rows in groups(run, quantity="clip_time", layer="host"):
        table = pivot(rows)
        if {BATCH, SUBJECT} <= set(table.columns):
            yield from speedup(run, group, table, (BATCH, SUBJECT), floor_of(table))
    yield from _lengths(run)
    yield from _overlap(run)


def clip_seconds(clip: str) -> int:
    """Return the seconds of a clip by its name; 0 for something else."""
    found = re.fullmatch(r"clip-(\d+)s", clip)
    return int(found[1]) if found else 0


def _clip(run: Run, dataset: str, clip: str, values: dict[tuple[str, str], float]) -> Iterator[Number]:
    """Yield a clip's facts under names without its number of detections, which only claims know."""
    units = {"detections": "count", "frames": "count", "frame_budget": "ms"}
    prefix = f"{run.scope}.{run.study}.clips.{clip}"
    for name, unit in units.items():
        if ("clip", name) in values:
            selector = f"workload={clip}, method=clip, quantity={name}"
            yield make_number(f"{prefix}.{name}", origin(run, dataset), selector, unit, values["clip", name])
    if values.get(("clip", "frames")):
        mean = values["clip", "detections"] / values["clip", "frames"]
        where = (origin(run, dataset), f"workload={clip}, method=clip")
        yield make_number(f"{prefix}.detections_per_frame", *where, "count", mean, note="detections / frames")


def _frames(
    run: Run, group: Group, method: str, rows: pd.DataFrame, budget: float | None
) -> Iterator[Number]:
    """Yield ``<scope>.drone.frames.<clip>.<layer>.<method>.<name>``."""
    measured = rows[rows["value"].notna()].sort_values("block")
    values = measured["value"].to_numpy()
    if not values.size:
        return
    prefix = f"{run.scope}.{run.study}.frames.{group.workload}.{group.layer}.{slug(method)}"
    where = (origin(run, group.dataset), group.selector(method))
    mean = resampled(values, np.mean)
    note = "over the frames; the interval resamples them"
    yield make_number(f"{prefix}.mean", *where, "ms", *mean, note=note)
    yield make_number(f"{prefix}.p50", *where, "ms", *median_interval(values)[:3], note=note)
    if values.size >= ENOUGH_FOR_P99:
        yield make_number(f"{prefix}.p99", *where, "ms", *resampled(values, _p99), note=note)
    yield make_number(f"{prefix}.max", *where, "ms", float(values.max()), note="longest frame")
    total = [len(values) * end for end in mean]
    yield make_number(f"{prefix}.sum", *where, "ms", *total, note="all frames, one after the other")
    if budget:
        share = [end / budget for end in mean]
        yield make_number(f"{prefix}.budget_share", *where, "fraction", *share, note="mean / budget")
        missed = float((values > budget).sum())
        yield make_number(f"{prefix}.misses", *where, "count", missed, note=f"of {len(values)} frames")
    series = " ".join(f"{value:.4g}" for value in values)
    yield make_number(f"{prefix}.series", *where, "text", math.nan, text=series, note="ms, frame by frame")


def _graph(run: Run, group: Group, rows: pd.DataFrame) -> Iterator[Number]:
    """Yield the speed-ups of a CUDA graph per frame over what is no Octopus."""
    table = pivot(rows)
    for other in OTHERS:
        if {GRAPH, other} <= set(table.columns):
            yield from speedup(run, group, table, (GRAPH, other), floor_of(table))


def _lengths(run: Run) -> Iterator[Number]:
    """Yield the mean frame of the longest clip over that of the shortest, method by method; clips share no frames, so
    each is resampled on its own."""
    clips: dict[int, tuple[Group, pd.DataFrame]] = {}
    for group, rows in groups(run, quantity="frame_time", layer="host"):
        if clip_seconds(group.workload):
            clips[clip_seconds(group.workload)] = (group, pivot(rows))
    if len(clips) < 2:
        return
    (_, short), (group, long) = clips[min(clips)], clips[max(clips)]
    for method in long.columns:
        if method in short and not method.endswith(AGAIN):
            pair = (long[method].dropna().to_numpy(), short[method].dropna().to_numpy())
            key = f"{run.scope}.{run.study}.length.{slug(method)}"
            where = (origin(run, group.dataset), f"clips of {max(clips)} and {min(clips)} s, method={method}")
            note = "mean frame of the longest clip / of the shortest"
            yield make_number(key, *where, "ratio", *_ratio_of_means(*pair), note=note)


def _ratio_of_means(top: np.ndarray, bottom: np.ndarray) -> tuple[float, float, float]:
    rng = np.random.default_rng(0)
    draws = [
        values[rng.integers(0, len(values), (RESAMPLES, len(values)))].mean(axis=1)
        for values in (top, bottom)
    ]
    low, high = np.quantile(draws[0] / draws[1], (0.025, 0.975))
    return float(top.mean() / bottom.mean()), float(low), float(high)


def _overlap(run: Run) -> Iterator[Number]:
    """Yield which part of what could be hidden was hidden, and how far the streamed loop is from the longer of its
    parts."""
    for group, rows in groups(run, quantity="clip_time", layer="pipelined"):
        table = pivot(rows)
        if not set(STREAMS) <= set(table.columns):
            continue
        serial, overlapped, upload, kernels = (table[name].to_numpy() for name in STREAMS)
        shorter, longer = np.minimum(upload, kernels), np.maximum(upload, kernels)
        found = {
            "fraction": ("fraction", (serial - overlapped) / shorter, "(serial - overlapped) / shorter part"),
            "speedup": ("ratio", serial / overlapped, "serial / overlapped"),
            "over_ideal": ("ratio", overlapped / longer, "overlapped / longer part"),
        }
        where = (origin(run, group.dataset), group.selector())
        for name, (unit, values, note) in found.items():
            whole = table.notna().all(axis=1).to_numpy()
            if whole.any():
                key = f"{run.scope}.{run.study}.overlap.{name}"
                interval = median_interval(values[whole])[:3]
                yield make_number(key, *where, unit, *interval, note=f"{note}, median over blocks")
