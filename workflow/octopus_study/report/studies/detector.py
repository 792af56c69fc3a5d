"""A detector on prepared frames: all frames together, what preparing them is of it, and which detections differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from octopus_study.measure.dependence import process_count
from octopus_study.names import AGAIN, DETECTOR_METHODS, DETECTOR_MODELS, DETECTOR_STAGES, SUBJECT, human
from octopus_study.report.frame import Frame, Key, Number, Source, make_absent, make_number, make_text, published
from octopus_study.report.missing import first_reason, no_run
from octopus_study.report.runs import Run
from octopus_study.report.samples import paired, pivot, ratio_of_sums, resampled
from octopus_study.report.selector import either, where
from octopus_study.report.study import StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.cells import Cell
from octopus_study.report.tables.spec import Row, Spec
from octopus_study.report.tables.writers import MISSING
from octopus_study.report.view import View

if TYPE_CHECKING:
    import pandas as pd

STUDY, WHOLE, RANDOM = "detector", "end_to_end", "-random-weights"
OTHERS = tuple(method for method in DETECTOR_METHODS if method != SUBJECT)
# Detections of either without a partner; some rows count those at one of the detector's thresholds by themselves.
UNPAIRED = ("detections_unmatched", "detections_on_edge")


def _timed(run: Run) -> Iterator[tuple[pd.DataFrame, Source]]:
    """Yield the rows of the input that is timed, of which a run has one, and what its numbers rest on."""
    timed = (*DETECTOR_STAGES, WHOLE)
    rows = run.rows[run.rows["quantity"].isin(timed)]
    for (dataset, workload, n), chosen in rows.groupby(["dataset", "workload", "n"], sort=False):
        yield chosen, run.from_rows(str(dataset), where(workload=workload, n=n, quantity=timed))
        return


def totals(run: Run) -> Iterator[Number]:
    """Yield the model and the number of frames as texts; the time of all frames, the share of it that preparing them
    takes, and gains over the other methods."""
    for rows, source in _timed(run):
        for name, column in (("model", "workload"), ("frames", "n")):
            yield make_text(run.fact_key(name), source, str(rows[column].iloc[0]), column)
        whole, first = (pivot(rows[rows["quantity"] == name]) for name in (WHOLE, "preprocess"))
        for method in (str(name) for name in whole if not str(name).endswith(AGAIN)):
            values = whole[method].dropna()
            count = round(len(values) / process_count(values))
            total = resampled(values, np.mean).scaled(count)
            note = f"{count} frames one after the other"
            yield make_number(run.key("total", method=method), source, "ms", *total, note=note)
            if method in first:
                both = whole[[method]].assign(preprocess=first[method]).dropna()
                key, note = run.key("preprocess_share", method=method), "preprocess / end_to_end, all frames"
                share = resampled(both, ratio_of_sums)
                yield make_number(key, source, "fraction", *share, note=note)
        for other in (*OTHERS, f"{SUBJECT}{AGAIN}"):
            if {SUBJECT, other} <= set(whole.columns):
                both = paired(whole, SUBJECT, other)
                key = run.key("gain", quantity="total", derived="over", other=other)
                note = "all frames / all frames"
                yield make_number(key, source, "ratio", *resampled(both, ratio_of_sums), note=note)


def differing(run: Run) -> Iterator[Number]:
    """Yield how many detections have no partner among those of Octopus, on the timed input and on a second one, whose
    pixels have to be interpolated."""
    note = f"detections of either without a partner, {' + '.join(UNPAIRED)}"
    for timed, source in _timed(run):
        same = run.rows["workload"] == timed["workload"].iloc[0]
        for ending, rows in (("", run.rows[same]), ("_interpolated", run.rows[~same])):
            for other in OTHERS:
                counts = rows[(rows["method"] == other) & rows["quantity"].isin(UNPAIRED)]["value"].dropna()
                compared = where(quantity=UNPAIRED, method=other)
                rests = source._replace(selector=either([compared, f"{source.selector}, method={other}"]))
                place = (run.key(f"detections_differing{ending}", method=other), rests, "count")
                if len(counts):
                    yield make_number(*place, counts.sum(), note=note)
                else:
                    gaps = timed[(timed["method"] == other) & timed["value"].isna()]
                    yield make_absent(*place, first_reason(gaps, "detections were not compared"))


def cases(view: View) -> list[Key]:
    """Return the whole time of each method, on the model and the frames of a run."""
    if not (frames := view.fact("frames")):
        return []
    where = (view.fact("model"), int(frames))
    return [view.key(*where, method, quantity=WHOLE, layer="host") for method in DETECTOR_METHODS]


def _title(view: View) -> str:
    model = view.fact("model")
    name = human(DETECTOR_MODELS, model.removesuffix(RANDOM))
    name += ", random weights" if model.endswith(RANDOM) else ""
    return f"{view.title}: {name}, {view.fact('frames')} frames"


def _published_rows(frame: Frame) -> Iterator[Row]:
    yield f"T4, as published: YOLO, {frame.text(published(STUDY, 'yolo', 'frames'))} frames"
    for name, label in (("gpu-preprocessing", "On the GPU"), ("cpu-preprocessing", "On the CPU")):
        gain = frame.text(published(STUDY, "gpu-preprocessing", "speedup")) if "cpu" in name else MISSING
        yield [label, *[MISSING] * 5, frame.text(published(STUDY, name, "time")), gain, *[MISSING] * 3]


def _if_run(cell: Cell) -> Cell:
    """Say a cell of a method that could be made."""
    return lambda view, key: MISSING if view.reason(key) else cell(view, key)


def _of_method(workload: str) -> Cell:
    return _if_run(cells.text(workload=workload, n=None, quantity="", layer=""))


def _gain(view: View, key: Key) -> str:
    gain = view.get(view.key("gain", quantity="total", derived="over", other=key.method))
    return cells.with_interval(gain) if gain else MISSING


TABLE = Spec(
    study=STUDY,
    first="Prepared by",
    label=lambda view, key: DETECTOR_METHODS[key.method],
    cases=cases,
    columns={
        **{name: _if_run(cells.time(quantity=stage)) for stage, name in DETECTOR_STAGES.items()},
        "Whole": cells.time(),
        "Preparing, of whole": _of_method("preprocess_share"),
        "All frames": _of_method("total"),
        "Gain of Octopus": _gain,
        "Detections": _if_run(cells.text(quantity="detections", layer="deterministic")),
        "Differ": _of_method("detections_differing"),
        "Differ, interpolated": _of_method("detections_differing_interpolated"),
    },
    title=_title,
    before=_published_rows,
    caption="A detector by the way its frames are prepared, from the frame on the host to the input on the model's "
    "device: medians over the frames, all frames together, total time / total time of Octopus, detections, and how "
    "many of either have no partner among those of Octopus, on the timed input and on one that is interpolated.",
    absent=no_run(STUDY),
    widths=("1.5fr", *("1fr",) * 10),
)
REPORT = StudyReport(numbers=(totals, differing), compares=lambda group, other: False, tables={"detector": TABLE})
