"""The cost model of the mapping strategies beside a run's own times, and what it says of the published machines."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from typing import NamedTuple

from octopus_study.measure.costmodel import (
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
from octopus_study.report.derive.samples import Group, groups, origin, pivot
from octopus_study.report.labels import PUBLISHED_MACHINES, human
from octopus_study.report.machines import device_name, kind
from octopus_study.report.numbers import Number, Numbers, make_number
from octopus_study.report.runs import Run
from octopus_study.report.text import quantity_text, significant, with_unit

FITTED = "thread-search-scalar"
OPERATIONS = ("multiply", "normalize", "threshold")
# (method, other) whose predicted ratios are compared with measured ones.
PAIRS = (
    ("block-metadata", FITTED),
    ("octopus", FITTED),
    ("octopus", "thread-search"),
    ("octopus", "lookup"),
    ("octopus", "block-metadata"),
)
# Published comparison, by number of images, and pixels per image: the ratio hardly depends on the latter.
PUBLISHED_ITEMS = (100_000, 500_000)
ITEM_ELEMENTS = 1000
AGREES_WITHIN = 0.1


class Case(NamedTuple):
    """A comparison with its batch, and the median times of its methods in milliseconds."""

    group: Group
    load: Load
    times: dict[str, float]


def model_numbers(run: Run) -> Iterator[Number]:
    """Yield ``<scope>.mapping.costmodel.<name>``: the fitted step, its errors, and the errors of the ratios; a reason
    where the model can't be made."""
    found = [case for case in _cases(run) if FITTED in case.times]
    machine = _machine(run)
    prefix = f"{run.scope}.{run.study}.costmodel"
    if isinstance(machine, str) or len(found) < 2:
        why = machine if isinstance(machine, str) else "fewer than two cases have a search by every thread"
        text = f"unavailable: {why}"
        where = (f"{prefix}.step", origin(run, "n/a"), "provenance and limits")
        yield make_number(*where, "ns", math.nan, text=text, note=text)
        return
    # Every second case is kept for the check; sorted, so that both halves have few and many items.
    fit_on, check_on = found[::2], found[1::2]
    fit = fit_step(machine, *_columns(fit_on, FITTED), FITTED)
    fitted = machine._replace(step_ns=fit.step_ns)
    yield from _step(run, prefix, fit, len(fit_on))
    where = (origin(run, "n/a"), f"method={FITTED}, {', '.join(OPERATIONS)}, float32")
    yield make_number(
        f"{prefix}.fit_error", *where, "fraction", fit.error, note=f"median of {len(fit_on)} cases"
    )
    error = error_of(fitted, *_columns(check_on, FITTED), FITTED)
    note = f"median of the {len(check_on)} cases that the fit did not see"
    yield make_number(f"{prefix}.check_error", *where, "fraction", error, note=note)
    yield from _ratio_errors(run, prefix, fitted, found)


def _step(run: Run, prefix: str, fit: Fit, count: int) -> Iterator[Number]:
    where = (origin(run, "n/a"), f"method={FITTED}")
    known = "" if fit.identified else "at most "
    note = (
        f"fitted on {count} cases" if fit.identified else "searches hide behind memory traffic in every case"
    )
    text = f"{known}{quantity_text(fit.step_ns, 'ns')}"
    yield make_number(f"{prefix}.step", *where, "ns", fit.step_ns, text=text, note=note)
    clock = _clock(run)
    if math.isfinite(clock):
        cycles = fit.step_ns * clock / 1000
        text = f"{known}{significant(cycles)} cycles"
        yield make_number(f"{prefix}.step_cycles", *where, "cycles", cycles, text=text, note=note)


def _ratio_errors(run: Run, prefix: str, machine: Machine, found: list[Case]) -> Iterator[Number]:
    """Yield, pair by pair, the median of |predicted / measured ratio - 1| and the ratios where they differ most."""
    for method, other in PAIRS:
        known = [case for case in found if {method, other} <= set(case.times)]
        pairs = [
            (ratio(method, other, machine, case.load), case.times[other] / case.times[method])
            for case in known
        ]
        if not pairs:
            continue
        errors = [abs(predicted / measured - 1) for predicted, measured in pairs]
        predicted, measured = pairs[errors.index(max(errors))]
        worst = f"{significant(predicted)}\u00d7 predicted, {significant(measured)}\u00d7 measured"
        key = f"{prefix}.{method}.ratio_error_over_{other}"
        where = (key, origin(run, "n/a"), f"{len(pairs)} comparisons")
        value = statistics.median(errors)
        yield make_number(*where, "fraction", value, note=f"median; farthest apart: {worst}")


def _cases(run: Run) -> list[Case]:
    """Return the float32 comparisons of memory-bound operations that have a number of elements."""
    counts = run.rows[run.rows["quantity"] == "elements"].groupby(["workload", "n"])["value"].first()
    found = []
    for group, rows in groups(run, quantity="kernel", unit="ms"):
        distribution, _, operation = group.workload.partition("-")
        elements = counts.get((distribution, group.n), math.nan)
        if operation in OPERATIONS and math.isfinite(elements):
            times = {str(name): float(value) for name, value in pivot(rows).median().items()}
            found.append(Case(group, Load(float(elements), float(group.n)), times))
    return sorted(
        (case for case in found if case.times), key=lambda case: (case.load.elements, case.group.workload)
    )


def _columns(found: list[Case], method: str) -> tuple[list[Load], list[float]]:
    return [case.load for case in found], [case.times[method] for case in found]


def _machine(run: Run) -> Machine | str:
    """Return what the model must know of a run's machine, or why that is not known."""
    rows = run.rows[(run.rows["quantity"] == "bandwidth") & (run.rows["method"] == "copy")].dropna(
        subset="value"
    )
    if rows.empty:
        return "no bandwidth was measured"
    bandwidth = float(rows[rows["n"] == rows["n"].max()]["value"].median())
    if kind(run) == "cpu":
        threads = run.provenance.get("machine", {}).get("cpu", {}).get("threads")
        return (
            Machine(bandwidth, math.inf, float(threads), launch_ms=0.0)
            if threads
            else "threads are not recorded"
        )
    facts = hardware_of(device_name(run))
    if facts is None:
        return f"the threads in flight of {device_name(run)} are not in the model's table"
    return Machine(bandwidth, facts.cache, facts.multiprocessors * facts.threads_each, launch_ms=LAUNCH_MS)


def _clock(run: Run) -> float:
    """Return a GPU's highest clock in MHz, NaN for a CPU."""
    gpu = run.provenance.get("machine", {}).get("gpu") or {}
    clock = gpu.get("clock_sm_max_mhz") if kind(run) == "gpu" else None
    return float(clock) if clock else math.nan


def predictions(numbers: Numbers, scope: str) -> Iterator[Number]:
    """Yield what the model says of block metadata over a search by every thread on the published machines: a step takes
    as many cycles there as where it was fitted. With a verdict beside each, and one sentence on all."""
    step = numbers.get(f"{scope}.mapping.costmodel.step_cycles")
    if step is None:
        return
    where = (step.role, step.machine, step.dataset, step.source)
    prefix, parts = f"{scope}.mapping.costmodel", []
    for name, facts in HARDWARE.items():
        bandwidth = numbers.get(f"published.machines.{name}.memory_bandwidth")
        published = _published(numbers, name)
        if bandwidth is None or published is None:
            continue
        machine = Machine(
            bandwidth.value,
            numbers.value(f"published.machines.{name}.l2_cache") * 1e6,
            facts.multiprocessors * facts.threads_each,
            step.value * 1000 / facts.clock_mhz,
        )
        loads = [Load(items * ITEM_ELEMENTS, items) for items in PUBLISHED_ITEMS]
        values = [ratio("block-metadata", FITTED, machine, load) for load in loads]
        low, high = min(values), max(values)
        inside = low <= published[1] * (1 + AGREES_WITHIN) and high >= published[0] * (1 - AGREES_WITHIN)
        verdict = "agrees" if inside else "does not agree"
        ends = with_unit("\u2013".join(dict.fromkeys([significant(low), significant(high)])), "ratio")
        at_most = "at most " if step.text.startswith("at most") else ""
        note = f"{PUBLISHED_ITEMS[0]:,} to {PUBLISHED_ITEMS[1]:,} items, multiply float32".replace(
            ",", "\u2009"
        )
        text = f"{at_most}{ends}"
        yield make_number(
            f"{prefix}.{name}.predicted", where, note, "ratio", values[0], low, high, text=text, note=note
        )
        yield make_number(f"{prefix}.{name}.verdict", where, note, "text", math.nan, text=verdict)
        parts.append(f"{human(PUBLISHED_MACHINES, name)} {text}, published {published[2]}: {verdict}")
    if parts:
        yield make_number(f"{prefix}.sentence", where, "by rule", "text", math.nan, text="; ".join(parts))


def _published(numbers: Numbers, name: str) -> tuple[float, float, str] | None:
    """Return the ends and the text of the published ratio; about equal is one."""
    key = f"published.block_metadata_gain.{name}.memory-bound.speedup_over_thread_search"
    if key not in numbers:
        return None
    number = numbers[key]
    known = math.isfinite(number.low) and math.isfinite(number.high)
    return (number.low, number.high, number.text) if known else (1.0, 1.0, number.text)
