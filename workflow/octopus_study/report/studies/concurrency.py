"""Two models on one GPU: how much of the shorter model hides behind the longer one, what a frame pair waits, what
processes take for themselves, which way to take by rule, and crops beside a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from octopus_study.measure.statistics import median_interval, ratio_interval
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import Number, Source, make_number
from octopus_study.report.measured import floor_of, speedup
from octopus_study.report.missing import first_reason, footer, make_absent, measured_runs
from octopus_study.report.runs import Run
from octopus_study.report.samples import AGAIN, Group, groups, paired, pivot, resampled
from octopus_study.report.studies import concurrency_figures as figures
from octopus_study.report.studies import concurrency_tables as tables
from octopus_study.report.studies.concurrency_figures import ALONE, NO_RUN, PAIR, STUDY
from octopus_study.report.studies.concurrency_rule import BASE, recommendations
from octopus_study.report.studies.concurrency_tables import BESIDE, LATENCY
from octopus_study.report.study import StudyReport

if TYPE_CHECKING:
    import pandas as pd

FETCH, NO_FETCH = "prefetch", "no-prefetch"
PROCESSES = ("two-processes-mps", "two-processes")
# With fewer iterations the 99th percentile is their maximum.
ENOUGH_FOR_P99 = 100
_p99 = partial(np.quantile, q=0.99)
_MEGABYTE = 1e6

Columns = tuple[str, str, str]  # workload, method, quantity
# What claims need, whether it could be measured or not, with its unit.
CLAIMED: dict[Columns, str] = {
    ("arms", "two-streams", "overlap"): "fraction",
    ("arms", "two-streams", "over_sequential"): "ratio",
    ("arms", "two-streams", "overhead"): "fraction",
    ("arms", "two-processes-mps", "overlap"): "fraction",
    (FETCH, "", "gain"): "ms",
    (FETCH, "", "copies_hidden"): "fraction",
    ("context", "process", ""): "MB",
    ("recommended", "pipeline", "makespan"): "ratio",
    ("recommended", "pipeline", "latency"): "ratio",
}
# What no row measures by itself.
PARTS = {
    "superpoint": "is timed together with LightGlue, as visual odometry",
    "lightglue": "is timed together with SuperPoint, as visual odometry",
    "dinov2": "is timed together with EfficientLoFTR, as satellite matching",
    "litesam": "LiteSAM is in no package, EfficientLoFTR stands in",
}
# Shares that the study has by method, under names that claims and the paper know.
TRACED = {
    ("two-streams", "kernel_overlap"): ("arms", "two-streams", "kernel_overlap"),
    (FETCH, "copies_hidden"): (FETCH, "", "copies_hidden"),
    (BASE, "kernel_busy"): ("arms", BASE, "kernel_busy"),
    ("cuda-graphs", "kernel_busy"): ("arms", "cuda-graphs", "kernel_busy"),
    ("crops-beside", "beside"): ("crops", "crops-beside", "within"),
}


def _number(
    run: Run, columns: Columns, source: Source, unit: str, interval: Iterable[float], note: str = ""
) -> Number:
    workload, method, quantity = columns
    return make_number(
        run.key(workload, method=method, quantity=quantity), source, unit, *interval, note=note
    )


def absent(run: Run) -> Iterator[Number]:
    """Yield what claims ask for with the reason why a run lacks it."""
    for (workload, method, quantity), unit in CLAIMED.items():
        rows = run.rows[run.rows["method"] == (method or workload)]
        why = first_reason(rows if len(rows) else run.rows, "no row of this run has it")
        source = run.from_rows("n/a", f"method={method or workload}")
        key = run.key(workload, method=method, quantity=quantity)
        yield make_absent(key, source, unit, why)
    everything = run.from_rows("n/a", "all rows")
    for name, why in PARTS.items():
        yield make_absent(run.key("parts", method=name), everything, "ms", why)
    onnx = run.key(method="onnxruntime", derived="parallel", other="alone")
    yield make_absent(onnx, everything, "ratio", "no arm of this study runs ONNX Runtime")


def _makespans(run: Run) -> Iterator[tuple[Group, pd.DataFrame]]:
    for group, rows in groups(run, workload=PAIR, quantity="makespan"):
        table = pivot(rows)
        if len(table) > 1:
            yield group, table


def verdicts(run: Run) -> Iterator[Number]:
    """Yield the noise floor of one after the other, and the speed-up over it of every way to run both models."""
    for group, table in _makespans(run):
        floor = floor_of(table, BASE)
        if floor == floor:
            key, note = group.key(run, BASE).derive("noise_floor"), f"{BASE} against {BASE}{AGAIN}"
            yield make_number(key, group.rows_of(run), "fraction", floor, note=note)
        together = [name for name in table if name not in (BASE, *ALONE) and not name.endswith(AGAIN)]
        for pair in (*((name, BASE) for name in together), PROCESSES):
            if set(pair) <= set(table.columns):
                yield from speedup(run, group, table, pair, floor)


def shares(run: Run) -> Iterator[Number]:
    """Yield makespans against that of one after the other, and which part of the shorter model each way hides."""
    for group, table in _makespans(run):
        for method in (name for name in table if name not in ALONE and not name.endswith(AGAIN)):
            source = group.rows_of(run, method)
            both = paired(table, method, BASE) if method != BASE else table[:0]
            if len(both) > 1:
                ratio = ratio_interval(both[method], both[BASE])
                note = f"median of per-block ratios, {method} / {BASE}"
                yield _number(run, ("arms", method, "over_sequential"), source, "ratio", ratio, note)
                over, note = ratio.moved(-1), "over_sequential - 1"
                yield _number(run, ("arms", method, "overhead"), source, "fraction", over, note)
            whole = paired(table, *ALONE, method)
            if len(whole) > 1:
                first, second, span = whole.to_numpy().T
                hidden = median_interval((first + second - span) / np.minimum(first, second))
                note = "(T1 + T2 - makespan) / min(T1, T2), median over blocks"
                yield _number(run, ("arms", method, "overlap"), source, "fraction", hidden, note)


def bounds(run: Run) -> Iterator[Number]:
    """Yield what the makespan would be with all and with none of the shorter model hidden, and the milliseconds that
    copying ahead from page-locked memory saves."""
    for group, table in _makespans(run):
        alone, fetch = paired(table, *ALONE), paired(table, NO_FETCH, FETCH)
        source = group.rows_of(run, " and ".join(ALONE))
        for name, times, note in (
            ("longer", alone.max(axis=1), "max(T1, T2)"),
            ("sum", alone.sum(axis=1), "T1 + T2"),
        ):
            if len(alone):
                interval, note = median_interval(times.to_numpy()), f"{note}, median over blocks"
                yield _number(run, ("bounds", "", name), source, "ms", interval, note)
        if len(fetch) > 1:
            saved = median_interval((fetch[NO_FETCH] - fetch[FETCH]).to_numpy())
            source = group.rows_of(run, f"{FETCH} and {NO_FETCH}")
            note = f"{NO_FETCH} - {FETCH}, median over blocks"
            yield _number(run, (FETCH, "", "gain"), source, "ms", saved, note)


def latencies(run: Run) -> Iterator[Number]:
    """Yield percentiles of what each model's result takes; of crops beside a model the models are ``model`` and
    ``crops``."""
    chosen = run.rows[run.rows["quantity"].str.startswith(LATENCY) & run.rows["value"].notna()]
    by = ["dataset", "workload", "quantity", "method"]
    for (dataset, workload, quantity, method), rows in chosen.groupby(by, sort=False):
        if method.endswith(AGAIN):
            continue
        model = quantity.removeprefix(LATENCY).replace("_", "-")
        source = run.from_rows(dataset, f"workload={workload}, quantity={quantity}, method={method}")
        values = rows["value"].to_numpy()
        percentiles = {"p50": median_interval(values), "max": (float(values.max()),)}
        if values.size >= ENOUGH_FOR_P99:
            percentiles["p99"] = resampled(values, _p99)
        for name, interval in percentiles.items():
            columns = (f"latency.{model}", method, name)
            yield _number(run, columns, source, "ms", interval, "over the iterations")


def contexts(run: Run) -> Iterator[Number]:
    """Yield what a process takes of the GPU for its context, without and with MPS."""
    rows = run.rows[(run.rows["quantity"] == "process_context") & run.rows["value"].notna()]
    for (dataset, method), chosen in rows.groupby(["dataset", "method"], sort=False):
        interval = median_interval(chosen["value"].to_numpy()).scaled(1 / _MEGABYTE)
        source = run.from_rows(dataset, f"quantity=process_context, method={method}")
        yield _number(run, ("context", method, ""), source, "MB", interval)


def traced(run: Run) -> Iterator[Number]:
    """Yield the medians that claims and the paper know by another name."""
    for (method, quantity), columns in TRACED.items():
        for group, rows in groups(run, method=method, quantity=quantity, layer="device"):
            if rows["value"].notna().any():
                source = group.rows_of(run, method)
                yield _number(run, columns, source, "fraction", [float(rows["value"].median())])


def delays(run: Run) -> Iterator[Number]:
    """Yield by how much crops delay a model, and a model its crops, with the verdicts."""
    for what in ("model", "crops"):
        base = f"{what}-alone"
        for group, rows in groups(run, workload=BESIDE, quantity=f"{LATENCY}{what}"):
            table = pivot(rows)
            floor = floor_of(table, base)
            for method in (name for name in table if name != base and not name.endswith(AGAIN)):
                both = paired(table, method, base)
                if len(both) > 1:
                    delay = median_interval((both[method] - both[base]).to_numpy())
                    columns, note = ("crops", method, f"{what}_delay"), f"{method} - {base}"
                    source = group.rows_of(run, f"{method} and {base}")
                    yield _number(run, columns, source, "ms", delay, note)
                    yield from speedup(run, group, table, (method, base), floor)


REPORT = StudyReport(
    numbers=(
        verdicts,
        shares,
        bounds,
        latencies,
        contexts,
        recommendations,
        delays,
        traced,
    ),
    absent=absent,
    of_runs=(measured_runs,),
    compares=lambda group, other: False,
    tables={
        "concurrency": tables.WAYS,
        "concurrency_proof": tables.PROOF,
        "concurrency_rule": tables.RULE,
        "concurrency_crops": tables.CROPS,
    },
    figures={
        "concurrency_makespan": Chart(figures.draw_makespans, absent=NO_RUN, footer=footer(STUDY)),
        "concurrency_latency": Chart(figures.draw_latencies, absent=NO_RUN, footer=footer(STUDY)),
    },
    claims="claims_companions",
)
