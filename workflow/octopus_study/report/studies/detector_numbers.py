"""The numbers of the detector on prepared frames: all frames together and one by one, what preparing is of them, and
which detections differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from octopus_study.measure.dependence import process_count
from octopus_study.measure.statistics import ratio_interval
from octopus_study.names import AGAIN, DETECTOR_METHODS, DETECTOR_STAGES, SUBJECT
from octopus_study.report.frame import Key, Number, Source, make_number, make_text
from octopus_study.report.missing import first_reason, make_absent
from octopus_study.report.runs import Run
from octopus_study.report.samples import drawn, heeded, paired, pivot, ratio_of_sums, resampled
from octopus_study.report.selector import either, where

if TYPE_CHECKING:
    import pandas as pd

WHOLE = "end_to_end"
OTHERS = tuple(method for method in DETECTOR_METHODS if method != SUBJECT)
# Detections of either without a partner: plainly, or with one of the detector's thresholds between the two.
UNPAIRED = ("detections_unmatched", "detections_on_edge")


def _timed(run: Run) -> Iterator[tuple[pd.DataFrame, Source]]:
    """Yield the rows of the input that is timed, of which a run has one, and what its numbers rest on."""
    timed = (*DETECTOR_STAGES, WHOLE)
    rows = run.rows[run.rows["quantity"].isin(timed)]
    for (dataset, workload, n), chosen in rows.groupby(["dataset", "workload", "n"], sort=False):
        yield chosen, run.from_rows(str(dataset), where(workload=workload, n=n, quantity=timed))
        return


def facts(run: Run) -> Iterator[Number]:
    """Yield the model and the number of frames as texts: a run that measured nothing has them too."""
    for rows, source in _timed(run):
        for name, column in (("model", "workload"), ("frames", "n")):
            yield make_text(run.fact_key(name), source, str(rows[column].iloc[0]), column)


def totals(run: Run) -> Iterator[Number]:
    """Yield the time of all frames, the share of it that preparing them takes, and gains over the other methods."""
    for rows, source in _timed(run):
        whole, first = (pivot(rows[rows["quantity"] == name]) for name in (WHOLE, "preprocess"))
        for method in (str(name) for name in whole if not str(name).endswith(AGAIN)):
            values = whole[method].dropna()
            count = round(len(values) / process_count(values))
            total = resampled(values, np.mean).scaled(count)
            note = f"{count} frames one after the other; {drawn(values)}"
            yield make_number(run.key("total", method=method), source, "ms", *total, note=note)
            if method in first:
                both = whole[[method]].assign(preprocess=first[method]).dropna()
                share = resampled(both, ratio_of_sums)
                key = run.key("preprocess_share", method=method)
                note = f"preprocess / end_to_end, all frames; {drawn(both)}"
                yield make_number(key, source, "fraction", *share, note=note)
        for other in (*OTHERS, f"{SUBJECT}{AGAIN}"):
            if {SUBJECT, other} <= set(whole.columns):
                both = paired(whole, SUBJECT, other)
                note = f"all frames / all frames; {drawn(both)}"
                key = run.key("gain", quantity="total", derived="over", other=other)
                yield make_number(key, source, "ratio", *resampled(both, ratio_of_sums), note=note)


def frame_gains(run: Run) -> Iterator[Number]:
    """Yield the time of a frame over that of Octopus, frame by frame, under a name without model and frames; that of
    Octopus again is what the same thing twice differs by."""
    for rows, source in _timed(run):
        whole = pivot(rows[rows["quantity"] == WHOLE])
        for other in (*OTHERS, f"{SUBJECT}{AGAIN}"):
            both = paired(whole, other, SUBJECT)
            if len(both) > 1:
                ratio = ratio_interval(both[other], both[SUBJECT])
                key = run.key("gain", quantity="frame", derived="over", other=other)
                note = heeded("median over the frames of time / time", both[other] / both[SUBJECT])
                yield make_number(key, source, "ratio", *ratio, note=note)


def differing(run: Run) -> Iterator[Number]:
    """Yield in how many frames detections differ from those of Octopus, and how many detections have no partner, on the
    timed input and on a second one, whose pixels have to be interpolated."""
    for timed, source in _timed(run):
        same = run.rows["workload"] == timed["workload"].iloc[0]
        for ending, rows in (("", run.rows[same]), ("_interpolated", run.rows[~same])):
            for other in OTHERS:
                chosen = rows[(rows["method"] == other) & rows["value"].notna()]
                for name, count in (("frames_differing", _frames), ("detections_differing", _detections)):
                    key = run.key(f"{name}{ending}", method=other)
                    compared = where(quantity=("frames_differing", *UNPAIRED), method=other)
                    both = either([compared, f"{source.selector}, method={other}"])
                    rests = source._replace(selector=both)
                    yield count(key, rests, chosen) or _not_compared(key, rests, timed)


def _frames(key: Key, source: Source, rows: pd.DataFrame) -> Number | None:
    rows = rows[rows["quantity"] == "frames_differing"]
    if rows.empty:
        return None
    text = f"{rows['value'].iloc[0]:.0f} of {rows['n'].iloc[0]}"
    note = "frames with other detections, but for those at a threshold"
    return make_number(key, source, "count", rows["value"].iloc[0], text=text, note=note)


def _detections(key: Key, source: Source, rows: pd.DataFrame) -> Number | None:
    counts = rows.loc[rows["quantity"].isin(UNPAIRED), "value"]
    note = f"detections of either without a partner, {' + '.join(UNPAIRED)}"
    return (
        make_number(key, source, "count", counts.sum(), note=note) if len(counts) == len(UNPAIRED) else None
    )


def _not_compared(key: Key, source: Source, timed: pd.DataFrame) -> Number:
    """Return a number without a value; the text says why nobody knows."""
    gaps = timed[(timed["method"] == key.method) & timed["value"].isna()]
    return make_absent(key, source, "count", first_reason(gaps, "detections were not compared"))


def tolerances(run: Run) -> Iterator[Number]:
    """Yield within what two detections are the same, as the run's provenance has it."""
    within = ((run.provenance.get("extra") or {}).get("detector") or {}).get("same_within") or {}
    source = run.from_rows("", "provenance, extra.detector.same_within")
    for name, unit in (("box_px", "px"), ("score", "score")):
        if name in within:
            key = run.key("same_within", quantity=name)
            yield make_number(
                key, source, unit, within[name], text=f"{within[name]:g}{' px' * (unit == 'px')}"
            )
