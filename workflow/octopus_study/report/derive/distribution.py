"""What only the distribution study knows: quantiles of the sizes, padded batches as float32, spread over frames
and over distributions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from octopus_study.measure.statistics import noise_floor
from octopus_study.report.derive.samples import AGAIN, Group, blocks, groups, origin, slug
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run

if TYPE_CHECKING:
    import pandas as pd

ABOVE_NOISE, WITHIN_NOISE = "above the noise", "not distinguishable from noise"
_RESAMPLES = 1000

# Padding is stored for uint8; the source documents also state the batch as float32.
_FLOAT32_BYTES = 4


def distribution_numbers(run: Run) -> Iterator[Number]:
    """Yield the study's derived numbers."""
    yield from _quantiles(run)
    yield from padded_float32(run)
    yield from _frames(run)
    yield from _range_over_sizes(run)


def _quantiles(run: Run) -> Iterator[Number]:
    """Yield every percentile of width and height: ``<scope>.distribution.<workload>.boxes.width.p50``."""
    for quantity, side in (("width_quantile", "width"), ("height_quantile", "height")):
        for row in run.rows[run.rows["quantity"] == quantity].itertuples():
            identifier = f"{run.scope}.{run.study}.{row.workload}.boxes.{side}.p{row.block}"
            selector = f"workload={row.workload}, quantity={quantity}, block={row.block} (percentile)"
            yield make_number(identifier, origin(run, row.dataset), selector, "px", float(row.value))


def padded_float32(run: Run) -> Iterator[Number]:
    """Yield the bytes of the padded batch as float32, which the source documents state."""
    for row in run.rows[run.rows["quantity"] == "padded_bytes"].itertuples():
        identifier = f"{run.scope}.{run.study}.{row.workload}.n{row.n}.padding.padded_float32_bytes"
        selector = f"workload={row.workload}, n={row.n}, method=padding, quantity=padded_bytes"
        value = _FLOAT32_BYTES * float(row.value)
        note = f"{_FLOAT32_BYTES} x the bytes as uint8"
        yield make_number(identifier, origin(run, row.dataset), selector, "bytes", value, note=note)


def _frames(run: Run) -> Iterator[Number]:
    """Yield the mean of a sequence's frame medians, their standard deviation, and whether noise explains it."""
    for group, rows in groups(run, quantity="frame_time", layer="host"):
        table = blocks(rows)
        frames = table[[name for name in table.columns if "/frame-" in name]]
        if frames.shape[1] < 2 or frames.empty:
            continue
        prefix = group.prefix(run, "octopus")
        rest = (origin(run, group.dataset), group.selector("octopus/frame-*"))
        yield make_number(
            f"{prefix}.mean", *rest, "ms", float(frames.median().mean()), note="mean of the medians"
        )
        spread = _relative_spread(frames)
        note = "standard deviation of the frames' medians / their mean; the interval resamples the blocks"
        yield make_number(f"{prefix}.spread", *rest, "fraction", *spread, note=note)
        floor = _noise_floor(run, group)
        verdict = ABOVE_NOISE if spread[1] > floor else WITHIN_NOISE
        note = "above the noise where the whole interval of the spread lies above the noise floor end to end"
        yield make_number(f"{prefix}.spread_verdict", *rest, "text", math.nan, text=verdict, note=note)


def _relative_spread(frames: pd.DataFrame) -> tuple[float, float, float]:
    """Return the standard deviation of the columns' medians / their mean, with its interval.

    Blocks are drawn whole, so that frames stay paired. Noise of the medians is part of the spread, so the interval
    leans upwards; its ends never leave the value out.
    """
    values = frames.to_numpy()
    rows = np.random.default_rng(0).integers(0, len(values), (_RESAMPLES, len(values)))
    draws = np.array([np.median(values[chosen], axis=0) for chosen in rows])
    middle = np.median(values, axis=0)
    value = float(middle.std(ddof=1) / middle.mean())
    low, high = np.quantile(draws.std(axis=1, ddof=1) / draws.mean(axis=1), (0.025, 0.975))
    return value, min(value, float(low)), max(value, float(high))


def _noise_floor(run: Run, group: Group) -> float:
    """Return the noise floor end to end on the same boxes; NaN without one."""
    for _, rows in groups(run, workload=group.workload, n=group.n, quantity="end_to_end", layer="host"):
        table = blocks(rows)
        if {"octopus", f"octopus{AGAIN}"} <= set(table.columns):
            return noise_floor(table["octopus"], table[f"octopus{AGAIN}"])
    return math.nan


def _range_over_sizes(run: Run) -> Iterator[Number]:
    """Yield by how much the slowest distribution of sizes exceeds the fastest one, method by method."""
    rows = run.rows[(run.rows["quantity"] == "crop_resize_normalize") & run.rows["value"].notna()]
    middle = rows.groupby(["n", "layer", "method", "workload"])["value"].median()
    for (n, layer, method), times in middle.groupby(level=["n", "layer", "method"]):
        if len(times) > 1:
            identifier = (
                f"{run.scope}.{run.study}.all.n{n}.{slug(method)}.crop_resize_normalize.{layer}.range"
            )
            selector = f"n={n}, method={method}, quantity=crop_resize_normalize, layer={layer}, all workloads"
            value = float(times.max() / times.min()) - 1
            note = "slowest / fastest distribution - 1, of medians"
            yield make_number(identifier, origin(run, "synthetic"), selector, "fraction", value, note=note)
