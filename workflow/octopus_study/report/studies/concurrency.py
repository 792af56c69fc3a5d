"""Two models on one GPU: how much of the shorter model hides behind the longer one, what a frame pair waits, what
processes take for themselves, and crops beside a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from octopus_study.measure.statistics import MIN_BLOCKS, median_interval, ratio_interval
from octopus_study.names import AGAIN, CONCURRENCY_ARMS, CONCURRENCY_STAGES
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import Number, joined, make_number, make_text
from octopus_study.report.measured import floor_of, heeding, speedup
from octopus_study.report.missing import first_reason, footer, make_absent, measured_runs
from octopus_study.report.runs import Run
from octopus_study.report.samples import (
    ENOUGH_FOR_P99,
    Group,
    by_block,
    drawn,
    groups,
    heeded,
    p99,
    paired,
    pivot,
    resampled,
)
from octopus_study.report.selector import ALL_ROWS, either
from octopus_study.report.studies import concurrency_evidence as evidence
from octopus_study.report.studies import concurrency_figures as figures
from octopus_study.report.studies import concurrency_tables as tables
from octopus_study.report.studies.concurrency_evidence import FETCH, PROCESSES, PROCESSES_MPS, SAVINGS
from octopus_study.report.studies.concurrency_evidence import number as _number
from octopus_study.report.studies.concurrency_figures import ALONE, PAIR, STUDY
from octopus_study.report.studies.concurrency_rule import BASE, PATTERN, recommendations
from octopus_study.report.studies.concurrency_tables import BESIDE, LATENCY
from octopus_study.report.study import StudyReport

if TYPE_CHECKING:
    import pandas as pd

STREAMS = ("two-streams", "two-threads")
BEST = "best-streams"
# Ratios between arms whose verdicts are shown, beside those to one after the other.
PAIRS = ((PROCESSES_MPS, PROCESSES), ("two-threads", PROCESSES))
_MEGABYTE = 1e6

Columns = tuple[str, str, str]  # workload, method, quantity
# What claims need, whether it could be measured or not, with its unit; and whose rows say why not.
CLAIMED: dict[Columns, tuple[str, str]] = {
    ("arms", BEST, "overlap"): ("fraction", "two-threads"),
    ("arms", BEST, "over_sequential"): ("ratio", "two-threads"),
    ("arms", "two-streams", "overlap"): ("fraction", "two-streams"),
    ("arms", "two-streams", "over_sequential"): ("ratio", "two-streams"),
    ("arms", "two-streams", "overhead"): ("fraction", "two-streams"),
    ("arms", "two-threads", f"over_{PROCESSES}"): ("ratio", PROCESSES),
    ("arms", PROCESSES, "over_sequential"): ("ratio", PROCESSES),
    ("arms", PROCESSES_MPS, "overlap"): ("fraction", PROCESSES_MPS),
    ("arms", FETCH, "over_sequential"): ("ratio", FETCH),
    ("arms", PATTERN, "over_sequential"): ("ratio", PATTERN),
    ("latency.visual-odometry", PATTERN, "over_alone"): ("ratio", PATTERN),
    ("precondition", "", "filled"): ("fraction", ALONE[0]),
    **dict.fromkeys(((FETCH, "", quantity) for quantity in SAVINGS), ("ms", FETCH)),
    (FETCH, "", "copies_hidden"): ("fraction", FETCH),
    ("context", "process", ""): ("MB", "process"),
    ("context", "process-mps", ""): ("MB", "process-mps"),
    ("mps", "", "context_ratio"): ("ratio", "process-mps"),
    ("mps", "", "memory_ratio"): ("ratio", PROCESSES_MPS),
    **{("parts", stage, ""): ("ms", stage) for stage in CONCURRENCY_STAGES},
}
NEVER = {"litesam": "LiteSAM is in no package, EfficientLoFTR stands in"}


def absent(run: Run) -> Iterator[Number]:
    """Yield what claims ask for with the reason why a run lacks it."""
    measured = run.rows["value"].notna().any()
    fallback = "no row of this run has it"
    for (workload, arm, quantity), (unit, method) in CLAIMED.items():
        why = first_reason(run.rows[run.rows["method"] == method], "" if not measured else fallback)
        why = why or first_reason(run.rows, fallback)
        key = run.key(workload, method=arm, quantity=quantity)
        chosen = f"method={method}" if (run.rows["method"] == method).any() else ALL_ROWS
        yield make_absent(key, run.from_rows("n/a", chosen), unit, why)
    for name, why in NEVER.items():
        yield make_absent(run.key("parts", method=name), run.from_rows("n/a", ALL_ROWS), "ms", why)


def _makespans(run: Run) -> Iterator[tuple[Group, pd.DataFrame]]:
    for group, rows in groups(run, workload=PAIR, quantity="makespan"):
        table = pivot(rows)
        if len(table) > 1:
            yield group, table


def verdicts(run: Run) -> Iterator[Number]:
    """Yield the noise floors of one after the other, and the speed-up over it of every way to run both models."""
    for group, table in _makespans(run):
        floor = floor_of(table, BASE)
        if floor == floor:
            key, note = group.key(run, BASE).derive("noise_floor"), f"{BASE} against {BASE}{AGAIN}"
            yield make_number(
                key, group.rows_of(run, note.replace("against", "and")), "fraction", floor, note=note
            )
        yield from _floor_of_shares(run, group, table)
        together = [name for name in table if name not in (BASE, *ALONE) and not name.endswith(AGAIN)]
        for pair in (*((name, BASE) for name in together), *PAIRS):
            if set(pair) <= set(table.columns):
                yield from speedup(run, group, table, pair, floor, BASE)


def _floor_of_shares(run: Run, group: Group, table: pd.DataFrame) -> Iterator[Number]:
    """Yield by how much one after the other differs from itself in parts of the shorter model, as overlaps are."""
    twice = (BASE, f"{BASE}{AGAIN}")
    if len(whole := paired(table, *ALONE, *twice)) >= MIN_BLOCKS:
        apart = (whole[twice[0]] - whole[twice[1]]) / whole[list(ALONE)].min(axis=1)
        _, low, high, _ = median_interval(apart)
        source = group.rows_of(run, " and ".join((*twice, *ALONE)))
        note = "(makespan - makespan again) / min(T1, T2), the farther end of the interval of its median"
        floor = (max(abs(low), abs(high)),)
        yield _number(run, ("arms", BASE, "overlap_noise_floor"), source, "fraction", floor, note)


def shares(run: Run) -> Iterator[Number]:
    """Yield makespans against that of one after the other, and which part of the shorter model each way hides."""
    for group, table in _makespans(run):
        for method in (name for name in table if name not in ALONE and not name.endswith(AGAIN)):
            source = group.rows_of(run, f"{method} and {BASE}")
            both = paired(table, method, BASE) if method != BASE else table[:0]
            if len(both) > 1:
                ratio = ratio_interval(both[method], both[BASE])
                note = heeding(
                    f"median of per-block ratios, {method} / {BASE}", group, both[method] / both[BASE]
                )
                yield _number(run, ("arms", method, "over_sequential"), source, "ratio", ratio, note)
                over, note = ratio.moved(-1), f"over_sequential - 1: {note}"
                yield _number(run, ("arms", method, "overhead"), source, "fraction", over, note)
            whole = paired(table, *ALONE, method)
            if len(whole) > 1:
                alone = whole[list(ALONE)]
                hidden = (alone.sum(axis=1) - whole[method]) / alone.min(axis=1)
                note = heeding("(T1 + T2 - makespan) / min(T1, T2), median over blocks", group, hidden)
                source, columns = (
                    group.rows_of(run, " and ".join((method, *ALONE))),
                    ("arms", method, "overlap"),
                )
                yield _number(run, columns, source, "fraction", median_interval(hidden), note)


def best_streams(run: Run) -> Iterator[Number]:
    """Yield the arm of two streams with the least makespan, and its shares: a claim that streams give nothing must
    hold for the best of them."""
    known = {number.key: number for number in shares(run)}
    ratios = [known.get(run.key("arms", method=name, quantity="over_sequential")) for name in STREAMS]
    if not (arms := [ratio for ratio in ratios if ratio]):
        return
    best = min(arms, key=lambda ratio: ratio.value)
    source = joined(*arms)  # which arm is the best rests on all of them
    yield make_text(run.key("arms", method=BEST), source, CONCURRENCY_ARMS[best.method], best.note)
    for quantity in ("over_sequential", "overlap"):
        if found := known.get(best.key.but(quantity=quantity)):
            note = f"{best.method}, of {' and '.join(STREAMS)} the one with the least makespan: {found.note}"
            chosen = either([source.selector, found.selector])
            yield found.named(found.key.but(method=BEST))._replace(note=note, selector=chosen)


def bounds(run: Run) -> Iterator[Number]:
    """Yield what the makespan would be with all and with none of the shorter model hidden."""
    for group, table in _makespans(run):
        alone, source = paired(table, *ALONE), group.rows_of(run, " and ".join(ALONE))
        for name, times, note in (
            ("longer", alone.max(axis=1), "max(T1, T2)"),
            ("sum", alone.sum(axis=1), "T1 + T2"),
        ):
            if len(alone):
                interval = median_interval(times)
                note = heeding(f"{note}, median over blocks", group, times)
                yield _number(run, ("bounds", "", name), source, "ms", interval, note)


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
        values, note = by_block(rows), "over the iterations"
        percentiles: dict[str, tuple[Iterable[float], str]] = {
            "p50": (median_interval(values), heeded(note, values)),
            "max": ((float(values.max()),), note),
        }
        if values.size >= ENOUGH_FOR_P99:
            percentiles["p99"] = (resampled(values, p99), f"{note}; {drawn(values)}")
        for name, (interval, said) in percentiles.items():
            yield _number(run, (f"latency.{model}", method, name), source, "ms", interval, said)


def contexts(run: Run) -> Iterator[Number]:
    """Yield what a process takes of the GPU for its context, without and with MPS."""
    rows = run.rows[(run.rows["quantity"] == "process_context") & run.rows["value"].notna()]
    for (dataset, method), chosen in rows.groupby(["dataset", "method"], sort=False):
        interval = median_interval(by_block(chosen)).scaled(1 / _MEGABYTE)
        source = run.from_rows(dataset, f"quantity=process_context, method={method}")
        yield _number(run, ("context", method, ""), source, "MB", interval)


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
                    delay = both[method] - both[base]
                    columns, note = ("crops", method, f"{what}_delay"), f"{method} - {base}"
                    source, note = group.rows_of(run, f"{method} and {base}"), heeding(note, group, delay)
                    yield _number(run, columns, source, "ms", median_interval(delay), note)
                    yield from speedup(run, group, table, (method, base), floor, base)


REPORT = StudyReport(
    numbers=(
        verdicts,
        shares,
        best_streams,
        bounds,
        evidence.savings,
        latencies,
        contexts,
        evidence.mps_memory,
        evidence.precondition,
        evidence.parts,
        evidence.graphs,
        recommendations,
        delays,
        evidence.traced,
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
        "concurrency_makespan": Chart(
            figures.draw_makespans,
            "Time until both results of a frame pair are there, with the share of the shorter model that is hidden, or "
            "lost. Lines: the longer model alone, and the sum of both.",
            footer=footer(STUDY),
        ),
        "concurrency_latency": Chart(
            figures.draw_latencies,
            "Latency of each model by way: median and late iterations. Dashed: the model alone.",
            footer=footer(STUDY),
        ),
    },
)
