"""What only the study of the detector knows: all frames together, what preparing them is of it, and whether detections
are the same."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from octopus_study.measure.statistics import ratio_interval
from octopus_study.report.derive.comparisons import SUBJECT
from octopus_study.report.derive.edge import Where, absent, first_reason, ratio_of_sums, resampled
from octopus_study.report.derive.samples import AGAIN, origin, pivot
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run

if TYPE_CHECKING:
    import pandas as pd

OTHERS = ("opencv", "opencv-uint8")
STAGES = ("preprocess", "inference", "postprocess", "end_to_end")
DIFFERING = "frames_differing"
RANDOM = "-random-weights"


def detector_numbers(run: Run) -> Iterator[Number]:
    """Yield the study's derived numbers under names without the model and the number of frames, of which a run has one
    each; detections are compared for a second input too, whose pixels have to be interpolated."""
    rows = run.rows[run.rows["quantity"].isin((*STAGES, DIFFERING))]
    staged = rows[rows["quantity"].isin(STAGES)]
    if staged.empty:
        return
    workload, n, dataset = (staged.iloc[0][name] for name in ("workload", "n", "dataset"))
    interpolated = rows[rows["workload"] != workload]
    rows = rows[rows["workload"] == workload]
    where = (origin(run, str(dataset)), f"workload={workload}, n={n}")
    prefix = f"{run.scope}.{run.study}"
    yield make_number(f"{prefix}.model", *where, "text", math.nan, text=str(workload), note="workload")
    # A text: a run that measured nothing has its number of frames too.
    yield make_number(f"{prefix}.frames", *where, "text", math.nan, text=str(n), note="n")
    tables = {name: pivot(rows[rows["quantity"] == name]) for name in STAGES}
    yield from _totals(prefix, where, tables)
    for name, table in tables.items():
        yield from _gains(prefix, where, name, table)
    for name, chosen in (("", rows), ("_interpolated", interpolated)):
        for other in OTHERS:
            yield _differing((f"{prefix}.{DIFFERING}{name}.{other}", *where), chosen, rows, other)


def _totals(prefix: str, where: tuple, tables: dict[str, pd.DataFrame]) -> Iterator[Number]:
    """Yield the time of all frames, and the share of it that preparing them takes."""
    whole, first = tables["end_to_end"], tables["preprocess"]
    for method in whole.columns:
        if str(method).endswith(AGAIN):
            continue
        values = whole[method].dropna().to_numpy()
        total = [len(values) * end for end in resampled(values, np.mean)]
        note = f"{len(values)} frames one after the other; the interval resamples them"
        yield make_number(f"{prefix}.total.{method}", *where, "ms", *total, note=note)
        if method in first:
            pair = np.stack([whole[method], first[method]], axis=1)
            share = resampled(pair[np.isfinite(pair).all(axis=1)], ratio_of_sums)
            note = "preprocess / end_to_end, all frames"
            yield make_number(f"{prefix}.preprocess_share.{method}", *where, "fraction", *share, note=note)
    for other in OTHERS:
        if {SUBJECT, other} <= set(whole.columns):
            pair = whole[[SUBJECT, other]].dropna().to_numpy()
            ratio = resampled(pair, ratio_of_sums)
            key, note = f"{prefix}.gain.total.over_{other}", "all frames / all frames"
            yield make_number(key, *where, "ratio", *ratio, note=note)


def _gains(prefix: str, where: tuple, name: str, table: pd.DataFrame) -> Iterator[Number]:
    for other in OTHERS:
        if {SUBJECT, other} <= set(table.columns):
            both = table[[SUBJECT, other]].dropna()
            ratio = ratio_interval(both[other], both[SUBJECT])[:3]
            key = f"{prefix}.gain.{name}.over_{other}"
            yield make_number(key, *where, "ratio", *ratio, note="median of per-frame ratios")


def _differing(where: Where, chosen: pd.DataFrame, timed: pd.DataFrame, other: str) -> Number:
    """Return in how many frames the detections differ from those of Octopus; the text says why where nobody knows."""
    found = chosen[(chosen["method"] == other) & (chosen["quantity"] == DIFFERING) & chosen["value"].notna()]
    if found.empty:
        mine = timed[(timed["method"] == other) & timed["value"].isna()]
        return absent(where, first_reason(mine, "detections were not compared"), "count")
    row = found.iloc[0]
    text = f"{row['value']:.0f} of {row['n']}"
    return make_number(*where, "count", float(row["value"]), text=text, note="frames with other detections")
