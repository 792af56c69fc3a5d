"""How far the windows of a power run can be trusted: their number and length, counter against integral, load
against idle, the power limit, and what sampling costs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from octopus_study.power.decomposition import paired_ratio
from octopus_study.report.derive.power_vetting import LAYERS
from octopus_study.report.derive.samples import origin, pivot
from octopus_study.report.labels import SHORT_METHODS, human
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run

if TYPE_CHECKING:
    import pandas as pd

# From this share of a window's time on, the power limit is said to hold the clock down.
CAPPED_FROM = 0.05


def quality_numbers(run: Run, scope: str) -> Iterator[Number]:
    """Yield what a reader needs to trust the windows of a run."""
    rows = run.rows[run.rows["layer"].isin(LAYERS) & run.rows["value"].notna()]
    yield from _windows(run, rows, scope)
    yield from _agreement(run, rows, scope)
    yield from _above_idle(run, rows, scope)
    yield from _capped(run, rows)
    yield from _sampling_cost(run, scope)


def _windows(run: Run, rows: pd.DataFrame, scope: str) -> Iterator[Number]:
    """Yield how many windows there are, how long, and how far their energies can be trusted."""
    energies = rows[rows["quantity"] == f"energy_per_frame_{scope}"]
    per_arm = energies.groupby(["n", "method", "layer"])["block"].nunique()
    yield _fact(run, "windows", "count", float(len(energies)), "windows with an energy")
    yield _fact(run, "windows_per_arm", "count", float(per_arm.min()), "fewest windows of an arm")
    for quantity, name, unit in (
        ("window", "window", "s"),
        (f"energy_uncertainty_{scope}", "uncertainty", "fraction"),
    ):
        values = rows.loc[rows["quantity"] == quantity, "value"]
        if len(values):
            value = float(values.min() if quantity == "window" else values.max())
            yield _fact(
                run, name, unit, value, "shortest" if quantity == "window" else "largest of all windows"
            )


def _agreement(run: Run, rows: pd.DataFrame, scope: str) -> Iterator[Number]:
    """Yield by how much counter and integral differ at most over the windows that have both."""
    key = ["n", "method", "layer", "block"]
    both = [
        rows[rows["quantity"] == f"window_energy_{way}_{scope}"].set_index(key)["value"]
        for way in ("counter", "integral")
    ]
    apart = (both[0] / both[1] - 1).abs().dropna()
    if len(apart):
        note = f"largest |counter / integral - 1| of {len(apart)} windows"
        yield _fact(run, "counter_agreement", "fraction", float(apart.max()), note)
        yield _fact(
            run,
            "counter_agreement_median",
            "fraction",
            float(apart.median()),
            note.replace("largest", "median"),
        )


def _above_idle(run: Run, rows: pd.DataFrame, scope: str) -> Iterator[Number]:
    """Yield the smallest mean power under load over the highest idle power of the same count."""
    quantity = f"power_mean_{scope}"
    idle = run.rows[
        (run.rows["layer"] == "idle") & (run.rows["method"] == "idle") & (run.rows["quantity"] == quantity)
    ]
    highest = idle.groupby("n")["value"].max()
    loads = (
        rows[(rows["quantity"] == quantity) & (rows["layer"] == "back_to_back")].groupby("n")["value"].min()
    )
    ratios = (loads / highest).dropna()
    if len(ratios):
        yield _fact(
            run, "least_load_over_idle", "ratio", float(ratios.min()), "least load / highest idle at any n"
        )
    if len(highest):
        yield _fact(run, "idle", "W", float(idle["value"].median()), "median of the idle windows")


def _capped(run: Run, rows: pd.DataFrame) -> Iterator[Number]:
    """Yield for which share of the time each arm is held at the power limit, and which arms clearly are.

    The share is of the time of a window with the settling before it and the tail behind it, by the violation counter.
    """
    chosen = rows[(rows["quantity"] == "power_capped") & (rows["layer"] == "back_to_back")]
    if chosen.empty:
        return
    shares = chosen.groupby(["method", "n"])["value"].median()
    for (method, n), share in shares.items():
        key = f"{run.scope}.{run.study}.visdrone.n{n}.{method}.capped_share"
        where = (
            origin(run, str(chosen["dataset"].iloc[0])),
            f"n={n}, method={method}, quantity=power_capped",
        )
        note = "share of the time at the power limit, window with settling and tail, median of the windows"
        yield make_number(key, *where, "fraction", float(share), note=note)
    held: dict[str, list[str]] = {}
    for (method, n), share in shares.items():
        if share >= CAPPED_FROM and not str(method).endswith("-again"):
            held.setdefault(human(SHORT_METHODS, str(method)), []).append(str(n))
    text = "; ".join(f"{method} at n = {', '.join(counts)}" for method, counts in held.items()) or "none"
    where = (f"{run.scope}.{run.study}.capped", origin(run, ""), "quantity=power_capped")
    yield make_number(*where, "text", math.nan, text=text)


def _sampling_cost(run: Run, scope: str) -> Iterator[Number]:
    """Yield time per frame, and idle power where a counter tells it, with the sampler running over without it."""
    for name, quantity, subject in (
        ("sampling_cost", "time_per_frame", "octopus"),
        ("sampling_cost_idle", f"power_mean_{scope}", "idle"),
    ):
        pair = [f"{subject}-sampled", f"{subject}-unsampled"]
        rows = run.rows[run.rows["method"].isin(pair) & (run.rows["quantity"] == quantity)]
        table = pivot(rows)
        both = table[pair].dropna() if set(pair) <= set(table.columns) else table[:0]
        if len(both):
            ratio = paired_ratio(both[pair[0]], both[pair[1]])
            where = (f"{run.scope}.{run.study}.{name}", origin(run, str(rows["dataset"].iloc[0])))
            note = f"{quantity} with the sampling process / without it, {len(both)} pairs"
            yield make_number(*where, f"method in {pair}, quantity={quantity}", "ratio", *ratio, note=note)


def _fact(run: Run, name: str, unit: str, value: float, note: str) -> Number:
    return make_number(
        f"{run.scope}.{run.study}.{name}", origin(run, _dataset(run)), note, unit, value, note=note
    )


def _dataset(run: Run) -> str:
    return next((name for name in run.datasets if name not in ("n/a", "none")), "n/a")
