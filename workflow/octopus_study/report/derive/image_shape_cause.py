"""Why memory jumps with the width: the peak under each intervention, and the verdict that follows by rule.

``four quadrants``: images are split exactly at the widths that are no multiple of 8, running the split one whole raises
the peak, splitting the whole one lowers it, and cuDNN's benchmark mode on or off changes the peak by less than that.
``cuDNN heuristics``: benchmark mode changes the peak by more than splitting does, and neither running whole raises nor
splitting lowers it. ``undecided``: anything else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from octopus_study.measure.statistics import EQUAL_WITHIN
from octopus_study.methods import AS_PUBLISHED as PUBLISHED
from octopus_study.methods import DRUNET_MULTIPLE as MULTIPLE
from octopus_study.methods import IMAGE_METHODS
from octopus_study.report.derive.samples import groups, origin
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run

PEAK, SPLITS = "allocated_peak", "split_calls"
FIRST = "first_allocated_peak"
MEMORY = (PEAK, "reserved_peak", "device_delta", FIRST)
CUDNN = ("cudnn-benchmark", "cudnn-no-benchmark")
WITHOUT = "no-cudnn"
QUADRANTS, HEURISTICS, UNDECIDED = "four quadrants", "cuDNN heuristics", "undecided"
INTERVENTIONS = "-interventions"
_LEAST = math.log1p(EQUAL_WITHIN)  # what a split changes at least, so that nothing is divided by nothing

Where = tuple[tuple[str, str, str, str], str]


def causes(run: Run) -> Iterator[Number]:
    """Yield ``<scope>.image_shape.interventions.<model>.w<width>.<way>.<quantity>``, peaks over those as published, and
    ``<scope>.image_shape.cause.<model>.<name>``."""
    peaks: dict[str, dict[tuple[str, int], float]] = {}
    first: dict[str, list[float]] = {}
    for group, rows in groups(run, layer="memory"):
        model, _, _ = group.workload.partition(INTERVENTIONS)
        if model == group.workload or group.quantity not in MEMORY:
            continue
        known = rows.dropna(subset="value").groupby("method")["value"].median()
        base = known.get(PUBLISHED)
        if not base:
            continue
        where = (origin(run, group.dataset), group.selector())
        for way in (row.name for row in IMAGE_METHODS):
            if way in known and way != PUBLISHED:
                key = f"{run.scope}.{run.study}.interventions.{model}.w{group.n}.{way}.{group.quantity}"
                note = f"{way} / {PUBLISHED}"
                yield make_number(key, *where, "ratio", float(known[way] / base), note=note)
                if group.quantity == PEAK:
                    peaks.setdefault(model, {})[way, group.n] = float(known[way] / base)
                if group.quantity == FIRST and way in CUDNN:
                    first.setdefault(model, []).append(float(known[way] / base))
    for model, ratios in peaks.items():
        rows = run.rows[run.rows["workload"] == f"{model}{INTERVENTIONS}"]
        where = (origin(run, rows["dataset"].iloc[0]), f"workload={model}{INTERVENTIONS}, quantity={PEAK}")
        yield from _cause(run, model, ratios, where)
        if model in first:
            key, note = (
                f"{run.scope}.{run.study}.cause.{model}.first_forward",
                f"{FIRST} / {FIRST} {PUBLISHED}",
            )
            note = f"greatest {note}: {', '.join(CUDNN)}"
            yield make_number(key, *where, "ratio", max(first[model]), note=note)


def _cause(run: Run, model: str, ratios: dict[tuple[str, int], float], where: Where) -> Iterator[Number]:
    """Yield what each side of the question rests on, and the verdict."""
    prefix = f"{run.scope}.{run.study}.cause.{model}"
    padded = _first(ratios, "padded-whole", multiple=False)
    forced = _first(ratios, "forced-split", multiple=True)
    cudnn = [abs(math.log(ratio)) for (way, _), ratio in ratios.items() if way in CUDNN]
    for name, found in (("padded", padded), ("forced", forced)):
        if found:
            yield make_number(f"{prefix}.{name}", *where, "ratio", found, note=f"peak / peak {PUBLISHED}")
    split = [abs(math.log(found)) for found in (padded, forced) if found]
    over = math.inf
    if cudnn and split:
        over = max(cudnn) / max(*split, _LEAST)
        note = "greatest |log ratio| of the peak with benchmark on or off / with the split on or off"
        yield make_number(f"{prefix}.cudnn_over_split", *where, "ratio", over, note=note)
    if padded and forced and cudnn:
        text = verdict(_splits_as_expected(run, model), padded, forced, over)
        yield make_number(f"{prefix}.verdict", *where, "text", math.nan, text=text, note="by rule")
    without = [ratio for (way, _), ratio in ratios.items() if way == WITHOUT]
    if without:
        note = f"{WITHOUT}: greatest peak / peak {PUBLISHED}"
        yield make_number(f"{prefix}.without_cudnn", *where, "ratio", max(without), note=note)


def verdict(as_expected: bool, padded: float, forced: float, over: float) -> str:
    """Return what memory follows, by rule.

    Parameters
    ----------
    as_expected : bool
        Whether images were split exactly where a side is no multiple of 8.
    padded, forced : float
        Peak of the split image run whole, and of the whole image split, over the peak as published.
    over : float
        Change of the peak by cuDNN's benchmark mode over that by the split, as logarithms of ratios.
    """
    raises, lowers = padded > 1 + EQUAL_WITHIN, forced < 1 / (1 + EQUAL_WITHIN)
    if as_expected and raises and lowers and over < 1:
        return QUADRANTS
    return HEURISTICS if over > 1 and not raises and not lowers else UNDECIDED


def _first(ratios: dict[tuple[str, int], float], way: str, multiple: bool) -> float | None:
    """Return a way's ratio at the width that is, or is not, a multiple of 8."""
    found = (ratio for (name, n), ratio in ratios.items() if name == way and (n % MULTIPLE == 0) == multiple)
    return next(found, None)


def _splits_as_expected(run: Run, model: str) -> bool:
    """Say whether a model was split exactly at the widths that are no multiple of 8, in every step."""
    rows = run.rows[
        run.rows["workload"].str.startswith(f"{model}-step")
        & (run.rows["quantity"] == SPLITS)
        & run.rows["value"].notna()
    ]
    return bool(len(rows)) and bool(((rows["value"] > 0) == (rows["n"] % MULTIPLE != 0)).all())
