"""The cost model of the mapping strategies beside a run's own times, and what it says of the published machines."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from octopus_study.names import PUBLISHED_MACHINES, STRATEGIES, human
from octopus_study.report.frame import Frame, Number, Source, make_number, make_text, published
from octopus_study.report.machines import device_name, kind
from octopus_study.report.missing import make_absent, no_run
from octopus_study.report.runs import Run
from octopus_study.report.samples import groups, pivot
from octopus_study.report.selector import either, where
from octopus_study.report.studies.mapping_costmodel import (
    HARDWARE,
    LAUNCH_MS,
    Fit,
    Load,
    Machine,
    error_of,
    fit_step,
    hardware_of,
    ratio,
)
from octopus_study.report.studies.mapping_numbers import CLASSES, PAIRS
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import beside
from octopus_study.report.tables.writers import MISSING, Table
from octopus_study.report.text import quantity_text, range_text, significant
from octopus_study.report.view import View, every_view, views

STUDY = "mapping"
FITTED = "thread-search-scalar"
OPERATIONS = CLASSES["memory-bound"]
# (method, other) whose predicted ratios are compared with measured ones: both with one element per thread, or with
# several.
RATIOS = (
    PAIRS["scalar"],
    PAIRS["vector"],
    ("octopus", "thread-search"),
    ("octopus", "lookup"),
    ("octopus", "block-metadata"),
)
# Published comparison, by number of images, and pixels per image: the ratio hardly depends on the latter.
PUBLISHED_ITEMS = (100_000, 500_000)
ITEM_ELEMENTS = 1000
AGREES_WITHIN = 0.1
_WORKLOAD = "costmodel"
_GAIN = ("memory-bound", "speedup_over_thread_search")
_FACTS = {
    "step": "One step of a search, fitted",
    "step_cycles": "The same in cycles of the clock",
    "fit_error": "Error of the fitted cases",
    "check_error": "Error of the cases kept for the check",
}


class Case(NamedTuple):
    """A comparison with its batch, and the median times of its methods in milliseconds."""

    workload: str
    load: Load
    times: dict[str, float]


def model_numbers(run: Run) -> Iterator[Number]:
    """Yield ``costmodel.<name>``: the fitted step, its errors, and the errors of the ratios; a reason where the model
    can't be made."""
    cases = [case for case in _cases(run) if FITTED in case.times]
    machine = _machine(run)
    if isinstance(machine, str) or len(cases) < 2:
        why = machine if isinstance(machine, str) else "fewer than two cases have a search by every thread"
        source = run.from_rows("n/a", "provenance and limits")
        yield make_absent(run.key(_WORKLOAD, quantity="step"), source, "ns", why)
        return
    # Every second case is kept for the check; sorted, so that both halves have few and many items.
    fit_on, check_on = cases[::2], cases[1::2]
    fit = fit_step(machine, *_columns(fit_on, FITTED), FITTED)
    fitted = machine._replace(step_ns=fit.step_ns)
    yield from _step(run, fit, len(fit_on))
    error = error_of(fitted, *_columns(check_on, FITTED), FITTED)
    source = _rests(run, FITTED)
    for name, value, note in (
        ("fit_error", fit.error, f"median of {len(fit_on)} cases"),
        ("check_error", error, f"median of the {len(check_on)} cases that the fit did not see"),
    ):
        yield make_number(run.key(_WORKLOAD, quantity=name), source, "fraction", value, note=note)
    yield from _ratio_errors(run, fitted, cases)


def _step(run: Run, fit: Fit, count: int) -> Iterator[Number]:
    source, at_most, note = _rests(run, FITTED), "", f"fitted on {count} cases"
    if not fit.identified:
        at_most, note = "at most ", "searches hide behind memory traffic in every case"
    text = f"{at_most}{quantity_text(fit.step_ns, 'ns')}"
    yield make_number(run.key(_WORKLOAD, quantity="step"), source, "ns", fit.step_ns, text=text, note=note)
    cycles = fit.step_ns * _clock(run) / 1000
    if math.isfinite(cycles):
        key, text = run.key(_WORKLOAD, quantity="step_cycles"), f"{at_most}{significant(cycles)} cycles"
        yield make_number(key, source, "cycles", cycles, text=text, note=note)


def _ratio_errors(run: Run, machine: Machine, cases: list[Case]) -> Iterator[Number]:
    """Yield, pair by pair, the median of |predicted / measured ratio - 1| and the ratios where they differ most."""
    for method, other in RATIOS:
        pairs = [
            (ratio(method, other, machine, case.load), case.times[other] / case.times[method])
            for case in cases
            if {method, other} <= set(case.times)
        ]
        if pairs:
            errors = [abs(predicted / measured - 1) for predicted, measured in pairs]
            predicted, measured = pairs[errors.index(max(errors))]
            note = f"{significant(predicted)}\u00d7 predicted, {significant(measured)}\u00d7 measured"
            note = f"median; farthest apart: {note}"
            source = _rests(run, FITTED, method, other)
            key = run.key(_WORKLOAD, method=method, derived="ratio_error", other=other)
            yield make_number(key, source, "fraction", statistics.median(errors), note=note)


def _rests(run: Run, *methods: str) -> Source:
    """Return what the model rests on: kernels of some methods, their elements, and the bandwidth."""
    kernels = where(
        workload=[f"*-{name}" for name in OPERATIONS], quantity="kernel", method=dict.fromkeys(methods)
    )
    return run.from_rows("n/a", either([kernels, "quantity=elements", "quantity=bandwidth, method=copy"]))


def _cases(run: Run) -> list[Case]:
    """Return the float32 comparisons of memory-bound operations that have a number of elements."""
    counts = run.rows[run.rows["quantity"] == "elements"].groupby(["workload", "n"])["value"].first()
    cases = []
    for group, rows in groups(run, quantity="kernel", unit="ms"):
        distribution, _, operation = group.workload.partition("-")
        elements = float(counts.get((distribution, group.n), math.nan))
        times = {str(name): float(value) for name, value in pivot(rows).median().items()}
        if operation in OPERATIONS and math.isfinite(elements) and times:
            cases.append(Case(group.workload, Load(elements, float(group.n)), times))
    return sorted(cases, key=lambda case: (case.load.elements, case.workload))


def _columns(cases: list[Case], method: str) -> tuple[list[Load], list[float]]:
    return [case.load for case in cases], [case.times[method] for case in cases]


def _machine(run: Run) -> Machine | str:
    """Return what the model must know of a run's machine, or why that is not known."""
    rows = run.rows[(run.rows["quantity"] == "bandwidth") & (run.rows["method"] == "copy")]
    rows = rows.dropna(subset="value")
    if rows.empty:
        return "no bandwidth was measured"
    bandwidth = float(rows[rows["n"] == rows["n"].max()]["value"].median())
    if kind(run) == "cpu":
        threads = run.provenance.get("machine", {}).get("cpu", {}).get("threads")
        cpu = Machine(bandwidth, math.inf, float(threads or math.nan), launch_ms=0.0)
        return cpu if threads else "threads are not recorded"
    facts = hardware_of(device_name(run))
    if facts is None:
        return f"the threads in flight of {device_name(run)} are not in the model's table"
    return Machine(bandwidth, facts.cache, facts.multiprocessors * facts.threads_each, launch_ms=LAUNCH_MS)


def _clock(run: Run) -> float:
    """Return a GPU's highest clock in MHz, NaN for a CPU."""
    gpu = run.provenance.get("machine", {}).get("gpu") or {}
    clock = gpu.get("clock_sm_max_mhz") if kind(run) == "gpu" else None
    return float(clock) if clock else math.nan


def predictions(frame: Frame) -> Iterator[Number]:
    """Yield what the model says of block metadata over a search by every thread on the published machines: a step takes
    as many cycles there as where it was fitted. With a verdict beside each, and one sentence on all."""
    for view in every_view(frame, STUDY):
        step, parts = view.get(view.key(_WORKLOAD, quantity="step_cycles")), []
        for name in HARDWARE if step else ():
            predicted = _predicted(frame, name, step)
            gain = frame.find(published("block_metadata_gain", name, *_GAIN))
            if predicted is None or gain is None:
                continue
            verdict = "agrees" if _agrees(predicted, gain) else "does not agree"
            key = predicted.key.but(quantity=f"{name}.verdict")
            yield from (predicted, make_text(key, predicted.source, verdict))
            machine = human(PUBLISHED_MACHINES, name)
            parts.append(f"{machine} {predicted.text}, published {gain.text}: {verdict}")
        if parts:
            yield make_text(view.key(_WORKLOAD, quantity="sentence"), step.source, "; ".join(parts))


def _predicted(frame: Frame, name: str, step: Number) -> Number | None:
    """Return the ratio that the model predicts for a published machine, None where its bandwidth isn't published."""
    bandwidth, cache = (
        frame.value(published("machines", name, fact)) for fact in ("memory_bandwidth", "l2_cache")
    )
    if not math.isfinite(bandwidth):
        return None
    facts = HARDWARE[name]
    threads, step_ns = facts.multiprocessors * facts.threads_each, step.value * 1000 / facts.clock_mhz
    machine = Machine(bandwidth, cache * 1e6, threads, step_ns)
    loads = [Load(items * ITEM_ELEMENTS, items) for items in PUBLISHED_ITEMS]
    values = [ratio(*PAIRS["scalar"], machine, load) for load in loads]
    ends = (min(values), max(values))
    text = f"{'at most ' if step.text.startswith('at most') else ''}{range_text(*ends, 'ratio')}"
    fewest, most = (quantity_text(items, "count") for items in PUBLISHED_ITEMS)
    note = f"{fewest} to {most} items, multiply float32"
    key = step.key.but(quantity=f"{name}.predicted")
    return make_number(key, step.source, "ratio", values[0], *ends, text=text, note=note)


def _agrees(predicted: Number, gain: Number) -> bool:
    """Say whether a prediction meets the published range; about equal is one."""
    known = math.isfinite(gain.low) and math.isfinite(gain.high)
    low, high = (gain.low, gain.high) if known else (1.0, 1.0)
    return predicted.low <= high * (1 + AGREES_WITHIN) and predicted.high >= low * (1 - AGREES_WITHIN)


def model(frame: Frame) -> Table:
    """Errors of the model on each machine, and its predictions for the published ones."""
    lines: list[Any] = [([name], _cell(quantity=fact)) for fact, name in _FACTS.items()]
    lines.append("Predicted ratios against measured ones")
    for method, other in RATIOS:
        name = f"{human(STRATEGIES, method)} over {human(STRATEGIES, other)}"
        lines.append(([name], _cell(method=method, derived="ratio_error", other=other)))
    lines.append(
        "Block metadata over a search by every thread, one element in both, on the published machines"
    )
    for machine in HARDWARE:
        gain = frame.find(published("block_metadata_gain", machine, *_GAIN))
        if gain:
            name = f"{human(PUBLISHED_MACHINES, machine)}, published {gain.text}"
            lines.append(([name], partial(_prediction, machine=machine)))
    caption = (
        "The cost model: launch + the longer of memory traffic and searches. One step of a search is fitted to every "
        f"second case of {human(STRATEGIES, FITTED)}, the other cases check it. Errors: medians of |predicted / "
        "measured - 1|, for memory-bound operations on float32. For the published machines a step takes as many "
        "cycles as here."
    )
    return beside(views(frame, STUDY), [""], lines, caption, no_run(STUDY), (["2.2fr"], "1.4fr"))


def _cell(**columns: str) -> Callable[[View], str]:
    return lambda view: cells.fact(**columns)(view, view.key(_WORKLOAD))


def _prediction(view: View, machine: str) -> str:
    predicted, verdict = (
        view.text(view.key(_WORKLOAD, quantity=f"{machine}.{name}")) for name in ("predicted", "verdict")
    )
    return f"{predicted}, {verdict}" if predicted else MISSING
