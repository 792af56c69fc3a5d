"""What only the study of image shapes knows: how memory grows with the width, where images are split, the jump between
the published widths, and which patches cover an image soonest."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from octopus_study.measure.statistics import Interval, noise_floor, ratio_interval, slope
from octopus_study.methods import AS_PUBLISHED as PUBLISHED
from octopus_study.methods import DRUNET_MULTIPLE as MULTIPLE
from octopus_study.report.derive.companions import power_capped
from octopus_study.report.derive.edge import absent, first_reason
from octopus_study.report.derive.image_shape_cause import INTERVENTIONS, PEAK, SPLITS, WITHOUT, Where, causes
from octopus_study.report.derive.samples import AGAIN, groups, origin, pivot
from octopus_study.report.labels import PATCH_TEXT
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run

if TYPE_CHECKING:
    import pandas as pd

SUBSETS = ("all", "whole", "split")
# The published jump: a width that is split, and the next one, which runs whole.
JUMP = (1228, 1296)
BEST = (128, 16)  # side and batch that are published as the best
_GIGABYTE = 1e9
_STEP = re.compile(r"(\w+)-step(\d+)")
_PATCH = re.compile(r"(\d+)x(\d+)")
_LEAST_WIDTHS = 3  # a line through two points says nothing
_CLAIMED = {
    **{f"linearity.{model}.step64.all.r2": "fraction" for model in ("drunet", "unet", "dncnn")},
    **{f"peak.drunet.w{width}": "GB" for width in JUMP},
    "cause.drunet.cudnn_over_split": "ratio",
    "cause.drunet.padded": "ratio",
    **{f"patches.drunet.side{side}.gain": "ratio" for side in (128, 256, 512)},
    **{f"patches.drunet.side{side}.last_doubling": "ratio" for side in (256, 512)},
    "patches.drunet.least_gain": "ratio",
    "jump.drunet": "ratio",
    "patches.drunet.published_best": "ratio",
}


class Patch(NamedTuple):
    """How an image is covered."""

    side: int
    batch: int

    @classmethod
    def of(cls, method: str) -> Patch | None:
        """Return what a method's name in rows says; None where it names no patches."""
        match = _PATCH.fullmatch(method)
        return cls(int(match[1]), int(match[2])) if match else None

    @property
    def method(self) -> str:
        """Its name in rows."""
        return f"{self.side}x{self.batch}"

    @property
    def text(self) -> str:
        """Its name for readers: batch and sides."""
        return PATCH_TEXT.format(batch=self.batch, side=self.side)


def image_shape_numbers(run: Run) -> Iterator[Number]:
    """Yield the study's derived numbers."""
    derived: list[Number] = []
    for workload, rows in run.rows.groupby("workload", sort=False):
        if match := _STEP.fullmatch(str(workload)):
            derived += _step(run, match[1], int(match[2]), rows)
    derived += causes(run)
    for group, rows in groups(run, quantity="cover"):
        model = group.workload.rpartition("-")[0]
        derived += _patches(run, model, pivot(rows), (origin(run, group.dataset), group.selector()))
    derived += without_cudnn(run)
    derived += power_capped(run)
    yield from derived
    known = {number.id for number in derived}
    why = first_reason(run.rows, "no row of this run has it")
    for name, unit in _CLAIMED.items():
        if (key := f"{run.scope}.{run.study}.{name}") not in known:
            yield absent((key, origin(run, "n/a"), "all rows"), why, unit)


def without_cudnn(run: Run) -> Iterator[Number]:
    """Yield ``jump_without_cudnn.<model>``: by how much the peak grows where nothing of cuDNN can be the cause."""
    for workload, rows in run.rows.groupby("workload", sort=False):
        model, found, _ = str(workload).partition(INTERVENTIONS)
        if found:
            where = (origin(run, rows["dataset"].iloc[0]), f"workload={workload}, method={WITHOUT}")
            key = f"{run.scope}.{run.study}.jump_without_cudnn.{model}"
            yield from _jump(key, where, by_width(rows, PEAK, WITHOUT))


def by_width(rows: pd.DataFrame, quantity: str, method: str = PUBLISHED) -> dict[int, float]:
    """Return the median of a quantity by width."""
    chosen = rows[(rows["quantity"] == quantity) & (rows["method"] == method) & rows["value"].notna()]
    return {int(n): float(value) for n, value in chosen.groupby("n")["value"].median().items()}


def _step(run: Run, model: str, step: int, rows: pd.DataFrame) -> Iterator[Number]:
    """Yield what one model shows at the widths of one step."""
    peaks, splits = by_width(rows, PEAK), by_width(rows, SPLITS)
    where = (origin(run, rows["dataset"].iloc[0]), f"workload={model}-step{step}, method={PUBLISHED}")
    prefix = f"{run.scope}.{run.study}"
    if splits:
        yield from _split_words(f"{prefix}.splits.{model}.step{step}", where, splits)
    for subset in SUBSETS:
        chosen = [w for w in peaks if subset == "all" or (splits.get(w, 0) > 0) == (subset == "split")]
        if len(chosen) >= _LEAST_WIDTHS and (subset == "all" or len(chosen) < len(peaks)):
            values = [peaks[width] for width in chosen]
            yield from _line(f"{prefix}.linearity.{model}.step{step}.{subset}", where, chosen, values)
    for width in JUMP:
        if width in peaks:
            key, value = f"{prefix}.peak.{model}.w{width}", peaks[width] / _GIGABYTE
            yield make_number(key, *where, "GB", value, note=f"{PEAK} at this width")
    yield from _jump(f"{prefix}.jump.{model}", where, peaks)


def _jump(key: str, where: Where, peaks: dict[int, float]) -> Iterator[Number]:
    """Yield by how much the peak grows from the one published width to the other."""
    if set(JUMP) <= set(peaks):
        jump, note = peaks[JUMP[1]] / peaks[JUMP[0]], f"{PEAK} at {JUMP[1]} / at {JUMP[0]}"
        yield make_number(key, *where, "ratio", jump, note=note)


def _split_words(key: str, where: Where, splits: dict[int, float]) -> Iterator[Number]:
    """Yield in words at how many widths of each kind the image was split."""
    odd = [count > 0 for width, count in splits.items() if width % MULTIPLE]
    even = [count > 0 for width, count in splits.items() if not width % MULTIPLE]
    parts = []
    if odd:
        parts.append(f"{sum(odd)} of {len(odd)} widths that are no multiple of {MULTIPLE}")
    if even:
        parts.append(f"{sum(even)} of {len(even)} that are" if odd else f"{sum(even)} of {len(even)} widths")
    note = f"{SPLITS} > 0 by width"
    yield make_number(key, *where, "text", math.nan, text=" and ".join(parts), note=note)


def _line(key: str, where: Where, widths: list[int], peaks: list[float]) -> Iterator[Number]:
    """Yield how well a line through the peaks explains them."""
    line = slope(widths, peaks)
    note = f"line of Theil and Sen through {len(widths)} widths"
    yield make_number(f"{key}.r2", *where, "fraction", line.r2, note=note)
    share = round(line.residual / float(np.median(peaks)), 6)  # beyond, it is that of floating point
    note = f"{note}: root mean square residual / median peak"
    yield make_number(f"{key}.residual", *where, "fraction", share, note=note)
    yield make_number(f"{key}.per_column", *where, "bytes", line.value, note="slope of the line")


def _patches(run: Run, model: str, table: pd.DataFrame, where: Where) -> Iterator[Number]:
    """Yield ``<scope>.image_shape.patches.<model>.<name>``: gains of batches, side by side, and the best of all."""
    found = [patch for name in table if (patch := Patch.of(str(name)))]
    ranked = sorted(found, key=lambda patch: table[patch.method].median())
    prefix = f"{run.scope}.{run.study}.patches.{model}"
    yield from _floor(prefix, where, table)
    steps: list[tuple[Interval, Patch]] = []
    for side in sorted({patch.side for patch in found}):
        batches = sorted(patch.batch for patch in found if patch.side == side)
        pairs = list(pairwise(batches))
        if not pairs:
            continue
        growth = {pair: _ratio(table, Patch(side, pair[0]), Patch(side, pair[1])) for pair in pairs}
        steps += [(ratio, Patch(side, pair[1])) for pair, ratio in growth.items() if ratio]
        largest = Patch(side, batches[-1])
        note = f"time of batch {batches[0]} / of batch {batches[-1]}"
        yield from _entered(
            f"{prefix}.side{side}.gain", where, _ratio(table, Patch(side, batches[0]), largest), note
        )
        note = f"time of batch {batches[0]} / of batch {batches[1]}"
        yield from _entered(f"{prefix}.side{side}.first_doubling", where, growth[pairs[0]], note)
        note = f"time of batch {batches[-2]} / of batch {batches[-1]}"
        yield from _entered(f"{prefix}.side{side}.last_doubling", where, growth[pairs[-1]], note)
    if steps:
        least, patch = min(steps, key=lambda step: step[0].value)
        note = f"least time with the next smaller batch / time: {patch.text}"
        yield from _entered(f"{prefix}.least_gain", where, least, note)
    if ranked:
        note = "least median time to cover the image"
        yield make_number(f"{prefix}.best", *where, "text", math.nan, text=ranked[0].text, note=note)
    others = [patch for patch in ranked if patch != BEST]
    if BEST in found and others:
        note = f"time of {Patch(*BEST).text} / of {others[0].text}, the fastest other"
        ratio = _ratio(table, Patch(*BEST), others[0])
        yield from _entered(f"{prefix}.published_best", where, ratio, note)


def _floor(prefix: str, where: Where, table: pd.DataFrame) -> Iterator[Number]:
    """Yield the noise floor by the way that was entered twice."""
    for again in (str(name) for name in table if str(name).endswith(AGAIN)):
        both = table[[again.removesuffix(AGAIN), again]].dropna()
        floor = noise_floor(both.iloc[:, 0], both.iloc[:, 1]) if len(both) else math.nan
        if math.isfinite(floor):
            yield make_number(f"{prefix}.noise_floor", *where, "fraction", floor, note=f"against {again}")


def _ratio(table: pd.DataFrame, top: Patch, bottom: Patch) -> Interval | None:
    both = table[[top.method, bottom.method]].dropna()
    return ratio_interval(both[top.method], both[bottom.method]) if len(both) else None


def _entered(key: str, where: Where, ratio: Interval | None, note: str) -> Iterator[Number]:
    if ratio is not None:
        yield make_number(key, *where, "ratio", *ratio[:3], note=note)
