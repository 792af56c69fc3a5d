"""What only the study of two models on one GPU knows: how much of the shorter model hides behind the longer one, what a
frame pair waits, what processes take for themselves, and crops beside a model."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from octopus_study.measure.statistics import median_interval, noise_floor, ratio_interval
from octopus_study.report.derive.companions import power_capped
from octopus_study.report.derive.comparisons import speedup
from octopus_study.report.derive.concurrency_rule import recommendations
from octopus_study.report.derive.edge import absent, first_reason, resampled
from octopus_study.report.derive.samples import AGAIN, Group, groups, origin, pivot, slug
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run

if TYPE_CHECKING:
    import pandas as pd

PAIR, BESIDE = "two-models", "crops-beside-model"
BASE = "sequential"
ALONE = ("visual-odometry-alone", "satellite-matching-alone")
LATENCY = "latency_"
FETCH, NO_FETCH = "prefetch", "no-prefetch"
MODEL_ALONE, CROPS_ALONE = "model-alone", "crops-alone"
ONNX = ("onnxruntime-parallel", "onnxruntime-alone")
# With fewer iterations the 99th percentile is their maximum.
ENOUGH_FOR_P99 = 100
_p99 = partial(np.quantile, q=0.99)
_MEGABYTE = 1e6
# What claims need, whether it could be measured or not, and the method whose rows say why not.
_CLAIMED = {
    "arms.two-streams.overlap": ("fraction", "two-streams"),
    "arms.two-streams.over_sequential": ("ratio", "two-streams"),
    "arms.two-streams.overhead": ("fraction", "two-streams"),
    "arms.two-processes-mps.overlap": ("fraction", "two-processes-mps"),
    "prefetch.gain": ("ms", FETCH),
    "context.process": ("MB", "process"),
    "prefetch.copies_hidden": ("fraction", FETCH),
    "recommended.pipeline.makespan": ("ratio", "pipeline"),
    "recommended.pipeline.latency": ("ratio", "pipeline"),
}
# Published times of what no row measures by itself.
_PARTS = {
    "superpoint": "is timed together with LightGlue, as visual odometry",
    "lightglue": "is timed together with SuperPoint, as visual odometry",
    "dinov2": "is timed together with EfficientLoFTR, as satellite matching",
    "litesam": "LiteSAM is in no package, EfficientLoFTR stands in",
}


def concurrency_numbers(run: Run) -> Iterator[Number]:
    """Yield the study's derived numbers."""
    derived = list(_makespans(run))
    derived += _latencies(run)
    derived += _contexts(run)
    derived += recommendations(run, BASE)
    derived += _crops(run)
    derived += _traced(run)
    derived += _onnx(run)
    derived += power_capped(run)
    yield from derived
    known = {number.id for number in derived}
    for name, (unit, method) in _CLAIMED.items():
        if (key := f"{run.scope}.{run.study}.{name}") not in known:
            yield absent((key, origin(run, "n/a"), f"method={method}"), _why(run, method), unit)
    for name, why in _PARTS.items():
        yield absent((f"{run.scope}.{run.study}.parts.{name}", origin(run, "n/a"), "all rows"), why, "ms")


def _why(run: Run, method: str) -> str:
    """Return what the rows of a method say, or the first of a run without any."""
    own = run.rows[run.rows["method"] == method]
    fallback = "no row of this run has it"
    return first_reason(own if len(own) else run.rows, fallback)


def floor_of(table: pd.DataFrame, base: str = BASE) -> float:
    """Return the noise floor of a method that was entered twice; NaN where it wasn't."""
    again = f"{base}{AGAIN}"
    if not {base, again} <= set(table.columns):
        return float("nan")
    both = table[[base, again]].dropna()
    return noise_floor(both[base], both[again]) if len(both) else float("nan")


def _makespans(run: Run) -> Iterator[Number]:
    for group, rows in groups(run, workload=PAIR, quantity="makespan"):
        table = pivot(rows)
        if len(table) < 2:
            continue
        floor = floor_of(table)
        if floor == floor:
            key, note = f"{group.prefix(run, BASE)}.noise_floor", f"{BASE} against {BASE}{AGAIN}"
            yield make_number(key, origin(run, group.dataset), group.selector(), "fraction", floor, note=note)
        pairs = [
            (arm, BASE) for arm in table.columns if arm not in (BASE, *ALONE) and not arm.endswith(AGAIN)
        ]
        pairs += [(FETCH, NO_FETCH), ("two-processes-mps", "two-processes"), ("cuda-graphs", BASE)]
        for pair in dict.fromkeys(pairs):
            if set(pair) <= set(table.columns):
                yield from speedup(run, group, table, pair, floor)
        for arm in table.columns:
            if not arm.endswith(AGAIN):
                yield from _arm(run, group, table, arm)
        yield from _bounds(run, group, table)
        yield from _gain(run, group, table)


def _arm(run: Run, group: Group, table: pd.DataFrame, arm: str) -> Iterator[Number]:
    """Yield ``<scope>.concurrency.arms.<arm>.<name>``: the makespan against that of one after the other, and which part
    of the shorter model it hides."""
    prefix, where = (
        f"{run.scope}.{run.study}.arms.{slug(arm)}",
        (origin(run, group.dataset), group.selector(arm)),
    )
    both = table[[arm, BASE]].dropna() if {arm, BASE} <= set(table.columns) and arm != BASE else table[:0]
    if len(both) > 1 and arm not in ALONE:
        ratio = ratio_interval(both[arm], both[BASE])[:3]
        note = f"median of per-block ratios, {arm} / {BASE}"
        yield make_number(f"{prefix}.over_sequential", *where, "ratio", *ratio, note=note)
        over = [end - 1 for end in ratio]
        yield make_number(f"{prefix}.overhead", *where, "fraction", *over, note="over_sequential - 1")
    if arm in ALONE or not {*ALONE, arm} <= set(table.columns):
        return
    whole = table[[*ALONE, arm]].dropna()
    if len(whole) > 1:
        first, second, both_ways = (whole[name].to_numpy() for name in (*ALONE, arm))
        hidden = median_interval((first + second - both_ways) / np.minimum(first, second))[:3]
        note = "(T1 + T2 - makespan) / min(T1, T2), median over blocks"
        yield make_number(f"{prefix}.overlap", *where, "fraction", *hidden, note=note)


def _bounds(run: Run, group: Group, table: pd.DataFrame) -> Iterator[Number]:
    """Yield what the makespan would be with all and with none of the shorter model hidden."""
    if not set(ALONE) <= set(table.columns):
        return
    alone = table[list(ALONE)].dropna()
    where = (origin(run, group.dataset), group.selector(" and ".join(ALONE)))
    for name, values, note in (
        ("longer", alone.max(axis=1), "max(T1, T2)"),
        ("sum", alone.sum(axis=1), "T1 + T2"),
    ):
        if len(values):
            interval = median_interval(values.to_numpy())[:3]
            key = f"{run.scope}.{run.study}.bounds.{name}"
            yield make_number(key, *where, "ms", *interval, note=f"{note}, median over blocks")


def _gain(run: Run, group: Group, table: pd.DataFrame) -> Iterator[Number]:
    """Yield the milliseconds that copying ahead from page-locked memory saves."""
    both = table[[NO_FETCH, FETCH]].dropna() if {FETCH, NO_FETCH} <= set(table.columns) else table[:0]
    if len(both) > 1:
        saved = median_interval((both[NO_FETCH] - both[FETCH]).to_numpy())[:3]
        where = (origin(run, group.dataset), group.selector(f"{FETCH} and {NO_FETCH}"))
        note = f"{NO_FETCH} - {FETCH}, median over blocks"
        yield make_number(f"{run.scope}.{run.study}.prefetch.gain", *where, "ms", *saved, note=note)


def _latencies(run: Run) -> Iterator[Number]:
    """Yield ``<scope>.concurrency.latency.<model>.<arm>.<p50, p99 or max>``; of crops beside a model the models are
    ``model`` and ``crops``."""
    chosen = run.rows[run.rows["quantity"].str.startswith(LATENCY) & run.rows["value"].notna()]
    for (workload, quantity, method), rows in chosen.groupby(["workload", "quantity", "method"], sort=False):
        if str(method).endswith(AGAIN):
            continue
        first = rows.iloc[0]
        model = str(quantity).removeprefix(LATENCY).replace("_", "-")
        prefix = f"{run.scope}.{run.study}.latency.{model}.{slug(str(method))}"
        where = (origin(run, first["dataset"]), f"workload={workload}, quantity={quantity}, method={method}")
        values = rows["value"].to_numpy()
        note = "over the iterations"
        yield make_number(f"{prefix}.p50", *where, "ms", *median_interval(values)[:3], note=note)
        yield make_number(f"{prefix}.max", *where, "ms", float(values.max()), note=note)
        if values.size >= ENOUGH_FOR_P99:
            yield make_number(f"{prefix}.p99", *where, "ms", *resampled(values, _p99), note=note)


def _contexts(run: Run) -> Iterator[Number]:
    """Yield what a process takes of the GPU for its context, without and with MPS."""
    rows = run.rows[(run.rows["quantity"] == "process_context") & run.rows["value"].notna()]
    for method, chosen in rows.groupby("method", sort=False):
        interval = [end / _MEGABYTE for end in median_interval(chosen["value"].to_numpy())[:3]]
        where = (origin(run, chosen["dataset"].iloc[0]), f"quantity=process_context, method={method}")
        yield make_number(f"{run.scope}.{run.study}.context.{slug(str(method))}", *where, "MB", *interval)


def _traced(run: Run) -> Iterator[Number]:
    """Yield shares that the study has by method under names that claims and the paper know."""
    names = {
        ("two-streams", "kernel_overlap"): "arms.two-streams.kernel_overlap",
        (FETCH, "copies_hidden"): "prefetch.copies_hidden",
        (BASE, "kernel_busy"): "arms.sequential.kernel_busy",
        ("cuda-graphs", "kernel_busy"): "arms.cuda-graphs.kernel_busy",
        ("crops-beside", "beside"): "crops.crops-beside.within",
    }
    for (method, quantity), name in names.items():
        for group, rows in groups(run, method=method, quantity=quantity, layer="device"):
            values = rows["value"].dropna()
            if len(values):
                where = (origin(run, group.dataset), group.selector(method))
                key = f"{run.scope}.{run.study}.{name}"
                yield make_number(key, *where, "fraction", float(values.median()))


def _crops(run: Run) -> Iterator[Number]:
    """Yield ``<scope>.concurrency.crops.<method>.<name>``: by how much crops delay a model, and a model its crops."""
    for quantity, base in (("latency_model", MODEL_ALONE), ("latency_crops", CROPS_ALONE)):
        for group, rows in groups(run, workload=BESIDE, quantity=quantity):
            table = pivot(rows)
            if base not in table or len(table) < 2:
                continue
            floor = floor_of(table, base)
            what = quantity.removeprefix(LATENCY)
            for method in (name for name in table if name != base and not name.endswith(AGAIN)):
                both = table[[method, base]].dropna()
                if len(both) < 2:
                    continue
                prefix = f"{run.scope}.{run.study}.crops.{slug(method)}.{what}"
                where = (origin(run, group.dataset), group.selector(f"{method} and {base}"))
                delay = median_interval((both[method] - both[base]).to_numpy())[:3]
                yield make_number(f"{prefix}_delay", *where, "ms", *delay, note=f"{method} - {base}")
                ratio = ratio_interval(both[method], both[base])[:3]
                yield make_number(f"{prefix}_ratio", *where, "ratio", *ratio, note=f"{method} / {base}")
                yield from speedup(run, group, table, (method, base), floor)
            if {"crops-first", "crops-beside"} <= set(table.columns):
                yield from speedup(run, group, table, ("crops-beside", "crops-first"), floor)


def _onnx(run: Run) -> Iterator[Number]:
    """Yield how many times as long two models take in parallel in ONNX Runtime as one of them; no arm of the study runs
    it, so this says why until one does."""
    key = f"{run.scope}.{run.study}.onnxruntime.parallel_over_alone"
    for group, rows in groups(run, quantity="makespan"):
        table = pivot(rows)
        if set(ONNX) <= set(table.columns):
            both = table[list(ONNX)].dropna()
            ratio = ratio_interval(both[ONNX[0]], both[ONNX[1]])[:3]
            where = (origin(run, group.dataset), group.selector(" and ".join(ONNX)))
            yield make_number(key, *where, "ratio", *ratio)
            return
    yield absent((key, origin(run, "n/a"), "all rows"), "no arm of this study runs ONNX Runtime", "ratio")
