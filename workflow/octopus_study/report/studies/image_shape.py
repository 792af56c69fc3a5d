"""Shapes of images: how memory grows with the width, where images are split, the jump between the published widths,
and which patches cover an image soonest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from octopus_study.measure.line import slope
from octopus_study.measure.statistics import Interval, ratio_interval
from octopus_study.names import AGAIN
from octopus_study.names import AS_PUBLISHED as PUBLISHED
from octopus_study.names import DRUNET_MULTIPLE as MULTIPLE
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import Key, Number, Source, make_number, make_text
from octopus_study.report.measured import floor_of
from octopus_study.report.missing import first_reason, footer, make_absent, measured_runs
from octopus_study.report.runs import Run
from octopus_study.report.samples import groups, paired, pivot
from octopus_study.report.selector import ALL_ROWS
from octopus_study.report.studies import image_shape_figures as figures
from octopus_study.report.studies import image_shape_tables as tables
from octopus_study.report.studies import image_shape_view as shape
from octopus_study.report.studies.image_shape_cause import WITHOUT, causes, interventions
from octopus_study.report.study import StudyReport

if TYPE_CHECKING:
    import pandas as pd

BEST = shape.Patch(128, 16)  # published as the best
_STEP = re.compile(r"(\w+)-step(\d+)")
_LEAST_WIDTHS = 3  # a line through two points says nothing
# What claims need, whether it could be measured or not: workload, method, quantity -> unit.
CLAIMED = {
    **{(f"linearity.{model}.step64", "all", "r2"): "fraction" for model in ("drunet", "unet", "dncnn")},
    **{("peak", shape.MODEL, f"w{width}"): "GB" for width in shape.JUMP},
    ("jump", shape.MODEL, ""): "ratio",
    ("cause", shape.MODEL, "cudnn_over_split"): "ratio",
    ("cause", shape.MODEL, "padded"): "ratio",
    **{(f"patches.{shape.MODEL}", f"side{side}", "gain"): "ratio" for side in (128, 256, 512)},
    **{(f"patches.{shape.MODEL}", f"side{side}", "last_doubling"): "ratio" for side in (256, 512)},
    (f"patches.{shape.MODEL}", "", "least_gain"): "ratio",
    (f"patches.{shape.MODEL}", "", "published_best"): "ratio",
    **{(f"patches.{model}", "", "memory_batch"): "ratio" for model in ("drunet", "unet", "dncnn")},
    ("first_forward", shape.MODEL, "searched"): "GB",
}
# What older rows of a GPU lack.
NOT_YET = {"memory_batch": "not measured yet: these rows are older than the memory of a batch"}


def absent(run: Run) -> Iterator[Number]:
    """Yield what claims ask for with the reason why a run lacks it."""
    for (workload, method, quantity), unit in CLAIMED.items():
        why = first_reason(run.rows, NOT_YET.get(quantity, "no row of this run has it"))
        key = run.key(workload, method=method, quantity=quantity)
        yield make_absent(key, run.from_rows("n/a", ALL_ROWS), unit, why)


class Step(NamedTuple):
    """What one model shows at the widths of one step: bytes and splits by width."""

    model: str
    name: str
    source: Source
    peaks: dict[int, float]
    splits: dict[int, float]


def _steps(run: Run) -> Iterator[Step]:
    for workload, rows in run.rows.groupby("workload", sort=False):
        if match := _STEP.fullmatch(str(workload)):
            source = run.from_rows(rows["dataset"].iloc[0], f"workload={workload}, method={PUBLISHED}")
            values = (by_width(rows, quantity) for quantity in (shape.PEAK, shape.SPLITS))
            yield Step(match[1], f"step{match[2]}", source, *values)


def by_width(rows: pd.DataFrame, quantity: str, method: str = PUBLISHED) -> dict[int, float]:
    """Return the median of a quantity by width."""
    chosen = rows[(rows["quantity"] == quantity) & (rows["method"] == method) & rows["value"].notna()]
    return {int(n): float(value) for n, value in chosen.groupby("n")["value"].median().items()}


def splits(run: Run) -> Iterator[Number]:
    """Yield in words at how many widths of each kind the image was split."""
    for step in _steps(run):
        odd = [count > 0 for width, count in step.splits.items() if width % MULTIPLE]
        even = [count > 0 for width, count in step.splits.items() if not width % MULTIPLE]
        parts = []
        if odd:
            parts.append(f"{sum(odd)} of {len(odd)} widths that are no multiple of {MULTIPLE}")
        if even:
            parts.append(f"{sum(even)} of {len(even)} {'that are' if odd else 'widths'}")
        if parts:
            key = run.key("splits", method=step.model, quantity=step.name)
            yield make_text(key, step.source, " and ".join(parts), f"{shape.SPLITS} > 0 by width")


def lines(run: Run) -> Iterator[Number]:
    """Yield how well a line through the peaks explains them: of all widths, and of each kind where there are both."""
    for step in _steps(run):
        for subset in shape.SUBSETS:
            peaks = {
                width: value
                for width, value in step.peaks.items()
                if subset == "all" or (step.splits.get(width, 0) > 0) == (subset == "split")
            }
            if len(peaks) >= _LEAST_WIDTHS and (subset == "all" or len(peaks) < len(step.peaks)):
                key = run.key(f"linearity.{step.model}.{step.name}", method=subset)
                yield from _line(key, step.source, peaks)


def _line(key: Key, source: Source, peaks: dict[int, float]) -> Iterator[Number]:
    line = slope(list(peaks), list(peaks.values()))
    note = f"line of Theil and Sen through {len(peaks)} widths"
    yield make_number(key.but(quantity="r2"), source, "fraction", line.r2, note=note)
    share = round(line.residual / float(np.median(list(peaks.values()))), 6)  # beyond, it is floating point's
    words = f"{note}: root mean square residual / median peak"
    yield make_number(key.but(quantity="residual"), source, "fraction", share, note=words)
    yield make_number(key.but(quantity="per_column"), source, "bytes", line.value, note="slope of the line")


def jumps(run: Run) -> Iterator[Number]:
    """Yield DRUNet's peaks at the published widths and by how much it grows between them, as published and where
    nothing of cuDNN can be the cause."""
    for step in _steps(run):
        if step.model == shape.MODEL:
            for width in set(shape.JUMP) & set(step.peaks):
                key, value = (
                    run.key("peak", method=shape.MODEL, quantity=f"w{width}"),
                    step.peaks[width] / shape.GIGABYTE,
                )
                yield make_number(key, step.source, "GB", value, note=f"{shape.PEAK} at this width")
            yield from _jump(run.key("jump", method=shape.MODEL), step.source, step.peaks)
    workload = f"{shape.MODEL}{shape.INTERVENTIONS}"
    rows = run.rows[run.rows["workload"] == workload]
    if len(rows):
        source = run.from_rows(rows["dataset"].iloc[0], f"workload={workload}, method={WITHOUT}")
        yield from _jump(
            run.key("jump_without_cudnn", method=shape.MODEL), source, by_width(rows, shape.PEAK, WITHOUT)
        )


def _jump(key: Key, source: Source, peaks: dict[int, float]) -> Iterator[Number]:
    if set(shape.JUMP) <= set(peaks):
        jump, note = (
            peaks[shape.JUMP[1]] / peaks[shape.JUMP[0]],
            f"{shape.PEAK} at {shape.JUMP[1]} / at {shape.JUMP[0]}",
        )
        yield make_number(key, source, "ratio", jump, note=note)


def patches(run: Run) -> Iterator[Number]:
    """Yield gains of batches, side by side, the noise floor, and the best of all patches."""
    for group, rows in groups(run, quantity="cover"):
        table, source = pivot(rows), group.rows_of(run)
        key = run.key(f"patches.{group.workload.rpartition('-')[0]}")
        for again in (str(name) for name in table if str(name).endswith(AGAIN)):
            floor = floor_of(table, again.removesuffix(AGAIN))
            if floor == floor:
                note = f"against {again}"
                yield make_number(key.but(quantity="noise_floor"), source, "fraction", floor, note=note)
        timed = [patch for name in table if (patch := shape.Patch.of(str(name)))]
        ranked = sorted(timed, key=lambda patch: table[patch.method].median())
        if ranked:
            note = "least median time to cover the image"
            yield make_text(key.but(quantity="best"), source, ranked[0].text, note)
        for method, quantity, ratio, note in (*_gains(table, timed), *_best(table, ranked)):
            where = key.but(method=method, quantity=quantity)
            yield make_number(where, source, "ratio", *ratio, note=note)


def batch_memory(run: Run) -> Iterator[Number]:
    """Yield by how much the memory of a batch grows: from the smallest to the largest, by side, and the least growth
    from one batch to the next."""
    for group, rows in groups(run, quantity="batch_peak", layer="memory"):
        peaks = {
            patch: float(value)
            for name, value in rows.dropna(subset="value").groupby("method")["value"].median().items()
            if (patch := shape.Patch.of(str(name)))
        }
        key, source = run.key(f"patches.{group.workload.rpartition('-')[0]}"), group.rows_of(run)
        steps = []
        for side in sorted({patch.side for patch in peaks}):
            batches = sorted(patch.batch for patch in peaks if patch.side == side)
            values = [peaks[shape.Patch(side, batch)] for batch in batches]
            steps += [after / before for before, after in pairwise(values)]
            if len(values) > 1:
                where, note = (
                    key.but(method=f"side{side}", quantity="memory_batch"),
                    "largest batch / smallest",
                )
                yield make_number(where, source, "ratio", values[-1] / values[0], note=note)
        if steps:
            note = "least of a batch / the next smaller one, over all sides"
            yield make_number(key.but(quantity="memory_batch"), source, "ratio", min(steps), note=note)


Gain = tuple[str, str, Interval, str]


def _gains(table: pd.DataFrame, timed: list[shape.Patch]) -> Iterator[Gain]:
    """Yield what larger batches gain: method, quantity, ratio of times and note."""
    steps: list[tuple[Interval, shape.Patch]] = []
    for side in sorted({patch.side for patch in timed}):
        batches = sorted(patch.batch for patch in timed if patch.side == side)
        if len(batches) < 2:
            continue
        pairs = {"gain": (batches[0], batches[-1])}
        pairs |= {"first_doubling": tuple(batches[:2]), "last_doubling": tuple(batches[-2:])}
        for name, (small, large) in pairs.items():
            if ratio := _ratio(table, shape.Patch(side, small), shape.Patch(side, large)):
                yield f"side{side}", name, ratio, f"time of batch {small} / of batch {large}"
        for small, large in pairwise(batches):
            if ratio := _ratio(table, shape.Patch(side, small), shape.Patch(side, large)):
                steps.append((ratio, shape.Patch(side, large)))
    if steps:
        least, patch = min(steps, key=lambda step: step[0].value)
        yield "", "least_gain", least, f"least time with the next smaller batch / time: {patch.text}"


def _best(table: pd.DataFrame, ranked: list[shape.Patch]) -> Iterator[Gain]:
    """Yield what the published best takes against the fastest other."""
    other = next((patch for patch in ranked if patch != BEST), None)
    if BEST in ranked and other and (ratio := _ratio(table, BEST, other)):
        yield "", "published_best", ratio, f"time of {BEST.text} / of {other.text}, the fastest other"


def _ratio(table: pd.DataFrame, top: shape.Patch, bottom: shape.Patch) -> Interval | None:
    both = paired(table, top.method, bottom.method)
    return ratio_interval(both[top.method], both[bottom.method]) if len(both) else None


def power_capped(run: Run) -> Iterator[Number]:
    """Yield how many blocks were at the power limit, which the study keeps: large convolutions reach it by
    themselves."""
    rows = run.rows[(run.rows["quantity"] == "power_capped") & run.rows["value"].notna()]
    for (dataset, what), chosen in rows.groupby(["dataset", "method"], sort=False):
        key = run.key("power_capped", quantity=what)
        source = run.from_rows(dataset, f"quantity=power_capped, method={what}")
        note = f"mean share of blocks over {len(chosen)} comparisons, their warm-up as one"
        yield make_number(key, source, "fraction", float(chosen["value"].mean()), note=note)


REPORT = StudyReport(
    numbers=(splits, lines, jumps, interventions, causes, patches, batch_memory, power_capped),
    absent=absent,
    of_runs=(measured_runs,),
    tables={
        "shape_cause": tables.CAUSE,
        "shape_widths": tables.WIDTHS,
        "shape_lines": tables.LINES,
        "shape_patches": tables.patches,
    },
    figures={
        "image_shape_memory": Chart(
            figures.draw_memory,
            "Peak of allocated memory of a forward over the width of the image, and DRUNet's under each intervention. "
            "Blue: split in quadrants. Stars: published.",
            footer=footer(shape.STUDY),
        ),
        "image_shape_throughput": Chart(
            figures.draw_throughput,
            "Time to cover an image with patches, by the patches per batch.",
            footer=footer(shape.STUDY),
        ),
    },
)
