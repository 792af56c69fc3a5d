"""Two models on one GPU, what the verdicts rest on: whether one model alone fills the GPU, which networks a graph could
hold, what of a gain is overlap and what is page-locked memory, and what processes take with MPS and without."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from octopus_study.measure.statistics import Interval, median_interval, ratio_interval
from octopus_study.names import CONCURRENCY_STAGES
from octopus_study.report.frame import Number, Source, make_number, make_text
from octopus_study.report.measured import heeding
from octopus_study.report.runs import Run
from octopus_study.report.samples import RESAMPLED, RESAMPLES, by_block, groups, heeded, paired, pivot
from octopus_study.report.selector import either, where
from octopus_study.report.studies.concurrency_figures import ALONE, PAIR
from octopus_study.report.studies.concurrency_rule import BASE

FETCH, NO_FETCH = "prefetch", "no-prefetch"
PROCESSES, PROCESSES_MPS = "two-processes", "two-processes-mps"
GRAPHS, CAPTURED = "cuda-graphs", "captured_"
# Time in kernels of a traced run, and the share of it in those with a block for every multiprocessor.
FILLED_BY = ("kernel_time", "kernel_filled")
# What is saved: by copying while kernels run, by memory that the GPU reads by itself.
SAVINGS = {"overlap_gain": (BASE, FETCH), "pinned_gain": (NO_FETCH, BASE)}
# Ratios beside those to one after the other: what, of which quantity, over what.
RATIOS = (
    (("arms", "two-threads", f"over_{PROCESSES}"), "makespan", PROCESSES),
    (("latency.visual-odometry", "pipeline", "over_alone"), "latency_visual_odometry", ALONE[0]),
)
# Shares that a trace has by method, under names that claims and the paper know.
TRACED = {
    ("two-streams", "kernel_overlap"): ("arms", "two-streams", "kernel_overlap"),
    ("two-threads", "kernel_overlap"): ("arms", "two-threads", "kernel_overlap"),
    (FETCH, "copies_hidden"): (FETCH, "", "copies_hidden"),
    (BASE, "kernel_busy"): ("arms", BASE, "kernel_busy"),
    (GRAPHS, "kernel_busy"): ("arms", GRAPHS, "kernel_busy"),
    ("crops-beside", "beside"): ("crops", "crops-beside", "within"),
}


def number(
    run: Run,
    columns: tuple[str, str, str],
    source: Source,
    unit: str,
    interval: Iterable[float],
    note: str = "",
) -> Number:
    """Return a number of this study from the columns workload, method and quantity."""
    workload, method, quantity = columns
    key = run.key(workload, method=method, quantity=quantity)
    return make_number(key, source, unit, *interval, note=note)


def traced(run: Run) -> Iterator[Number]:
    """Yield the medians over the traced runs that claims and the paper know by another name."""
    for (method, quantity), columns in TRACED.items():
        for group, rows in groups(run, method=method, quantity=quantity, layer="device"):
            values = by_block(rows)
            if values.size:
                source = group.rows_of(run, method)
                note = f"median over {values.size} traced runs" if values.size > 1 else "one trace"
                note = heeded(note, values)
                yield number(run, columns, source, "fraction", median_interval(values), note)


def precondition(run: Run) -> Iterator[Number]:
    """Yield how much of each model's time alone a kernel runs that has a block for every multiprocessor, and the lesser
    share: kernels that leave multiprocessors idle are not the ones that the claims on streams are about."""
    shares = {method: _filled(run, method) for method in ALONE}
    known = {method: share for method, share in shares.items() if share}
    note = "time in kernels with a block for every multiprocessor / median makespan alone, median over traced runs"
    source = _traces_and_makespans(run, *ALONE)
    for method, share in known.items():
        columns = ("precondition", method.removesuffix("-alone"), "filled")
        yield number(run, columns, _traces_and_makespans(run, method), "fraction", share, note)
    if len(known) == len(ALONE):
        least = min(known, key=lambda method: known[method].value)
        where = f"the lesser of both models, {least.removesuffix('-alone')}"
        yield number(
            run, ("precondition", "", "filled"), source, "fraction", known[least], f"{where}: {note}"
        )


def _traces_and_makespans(run: Run, *methods: str) -> Source:
    traces = where(workload=PAIR, method=methods, quantity=FILLED_BY, layer="device")
    return run.from_rows(
        "n/a", either([traces, where(workload=PAIR, method=methods, quantity="makespan", layer="host")])
    )


def _filled(run: Run, method: str) -> Interval | None:
    rows = run.rows[(run.rows["method"] == method) & run.rows["value"].notna()]
    traces = rows[rows["quantity"].isin(FILLED_BY)].pivot(index="block", columns="quantity", values="value")
    traces = traces.dropna()
    alone = by_block(rows[rows["quantity"] == "makespan"])
    if traces.shape[1] < len(FILLED_BY) or traces.empty or alone.empty:
        return None
    return median_interval(traces["kernel_time"] * traces["kernel_filled"] / median_interval(alone).value)


def savings(run: Run) -> Iterator[Number]:
    """Yield the milliseconds that copying ahead saves, and which of them are overlap and which are page-locked memory;
    and ratios that claims name."""
    for group, rows in groups(run, workload=PAIR, layer="host"):
        table = pivot(rows)
        for quantity, (slow, fast) in SAVINGS.items():
            both = paired(table, slow, fast)
            if group.quantity == "makespan" and len(both) > 1:
                saved, source = both[slow] - both[fast], group.rows_of(run, f"{fast} and {slow}")
                note = heeding(f"{slow} - {fast}, median over blocks", group, saved)
                yield number(run, (FETCH, "", quantity), source, "ms", median_interval(saved), note)
        for columns, quantity, other in RATIOS:
            both = paired(table, columns[1], other)
            if group.quantity == quantity and len(both) > 1:
                ratio = ratio_interval(both[columns[1]], both[other])
                source = group.rows_of(run, f"{columns[1]} and {other}")
                note = f"median of per-block ratios, {columns[1]} / {other}"
                note = heeding(note, group, both[columns[1]] / both[other])
                yield number(run, columns, source, "ratio", ratio, note)


def parts(run: Run) -> Iterator[Number]:
    """Yield the time of each model by itself, under a name without its place among the rows."""
    for group, rows in groups(run, workload=PAIR, quantity="stage_time", layer="host"):
        for stage, chosen in rows.dropna(subset="value").groupby("method", sort=False):
            where, values = (
                (run.key("parts", method=str(stage)), group.rows_of(run, str(stage)), "ms"),
                by_block(chosen),
            )
            note = heeding("the model by itself", group, values)
            yield make_number(*where, *median_interval(values), note=note)


def graphs(run: Run) -> Iterator[Number]:
    """Yield the names of the networks that a CUDA graph could hold, and of those that it couldn't."""
    rows = run.rows[run.rows["quantity"].str.startswith(CAPTURED) & (run.rows["method"] == GRAPHS)]
    stages = rows["quantity"].str.removeprefix(CAPTURED).map(CONCURRENCY_STAGES)
    for name, held in (("captured", True), ("not_captured", False)):
        chosen = stages[rows["value"].notna() == held]
        if len(rows) and rows["value"].notna().any():
            source = run.from_rows(str(rows["dataset"].iat[0]), f"method={GRAPHS}, quantity={CAPTURED}*")
            yield make_text(run.key("graphs", quantity=name), source, ", ".join(chosen) or "none")


def mps_memory(run: Run) -> Iterator[Number]:
    """Yield what two processes take of the GPU's memory with MPS, as a multiple of what they take without: their
    contexts alone, the server's own included, and all of it with the models loaded."""
    memory = run.rows[(run.rows["layer"] == "memory") & run.rows["value"].notna()].sort_values("block")
    contexts = {name: rows["value"].to_numpy() for name, rows in memory.groupby("method")}
    source = run.from_rows("n/a", "layer=memory, quantity=process_context, method=process and process-mps")
    clients, alone = contexts.get("process-mps", np.empty(0)), contexts.get("process", np.empty(0))
    if clients.size > 1 and alone.size > 1:
        note = f"server and two contexts with MPS / two contexts without; {RESAMPLED} processes"
        yield number(run, ("mps", "", "context_ratio"), source, "ratio", _context_ratio(clients, alone), note)
    if {PROCESSES, PROCESSES_MPS} <= contexts.keys():
        ratio = float(contexts[PROCESSES_MPS][0] / contexts[PROCESSES][0])
        note = "device memory, models loaded, with MPS / without; one reading each, so no interval"
        source = run.from_rows("n/a", f"layer=memory, method={PROCESSES} and {PROCESSES_MPS}")
        yield number(run, ("mps", "", "memory_ratio"), source, "ratio", (ratio,), note)


def _context_ratio(clients: np.ndarray, alone: np.ndarray) -> Interval:
    """Return (server + two contexts with MPS) / (two contexts without); what the first client takes has the server in
    it, and the interval resamples the others, NaN where there is one."""
    first, others = clients[0], clients[1:]
    value = float((first + others.mean()) / (2 * alone.mean()))
    if others.size < 2:
        return Interval(value, math.nan, math.nan, clients.size)
    rng = np.random.default_rng(0)
    more, without = (rng.choice(values, (RESAMPLES, values.size)).mean(axis=1) for values in (others, alone))
    low, high = np.quantile((first + more) / (2 * without), (0.025, 0.975))
    return Interval(value, min(value, float(low)), max(value, float(high)), clients.size)
