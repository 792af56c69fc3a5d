"""How far the windows of a power run can be trusted: their number and length, counter against integral, load against
idle, the power limit, and what sampling costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from octopus_study.names import AGAIN, SHORT_METHODS, human
from octopus_study.report.frame import Number, make_number, make_text
from octopus_study.report.runs import Run
from octopus_study.report.samples import paired, pivot
from octopus_study.report.selector import either, where
from octopus_study.report.studies import power_view as power
from octopus_study.report.studies.power_decomposition import paired_ratio

if TYPE_CHECKING:
    import pandas as pd

LAYERS = (power.BACK_TO_BACK, power.PACED)
_ENERGY = "energy_per_frame_"
# From this share of a window's time on, the power limit is said to hold the clock down.
CAPPED_FROM = 0.05


def sensor_scope(run: Run) -> str:
    """Return what the run's energies are the energies of, as their columns name it; empty where there is none."""
    quantities = run.rows.loc[run.rows["value"].notna(), "quantity"].unique()
    names = [name.removeprefix(_ENERGY) for name in quantities if name.startswith(_ENERGY)]
    return min((name for name in names if not name.startswith("net_")), default="")


def _windows(run: Run, quantity: str = "", layers: tuple[str, ...] = LAYERS) -> pd.DataFrame:
    """Return the rows of windows with a number, those of one quantity or of all."""
    rows = run.rows[run.rows["layer"].isin(layers) & run.rows["value"].notna()]
    return rows[rows["quantity"] == quantity] if quantity else rows


def _fact(run: Run, name: str, unit: str, value: float, note: str, selector: str) -> Number:
    dataset = next((name for name in run.datasets if name not in ("n/a", "none")), "n/a")
    return make_number(run.fact_key(name), run.from_rows(dataset, selector), unit, float(value), note=note)


def windows(run: Run) -> Iterator[Number]:
    """Yield how many windows there are, how long, and how far their energies can be trusted."""
    scope = sensor_scope(run)
    energies = _windows(run, f"{_ENERGY}{scope}")
    if energies.empty:
        return
    fewest = energies.groupby(["n", "method", "layer"])["block"].nunique().min()
    chosen = where(quantity=f"{_ENERGY}{scope}", layer=LAYERS)
    yield _fact(run, "windows", "count", len(energies), "windows with an energy", chosen)
    yield _fact(run, "windows_per_arm", "count", fewest, "fewest windows of an arm", chosen)
    lengths, errors = (
        _windows(run, quantity)["value"] for quantity in ("window", f"energy_uncertainty_{scope}")
    )
    if len(lengths):
        yield _fact(run, "window", "s", lengths.min(), "shortest", where(quantity="window", layer=LAYERS))
    if len(errors):
        chosen = where(quantity=f"energy_uncertainty_{scope}", layer=LAYERS)
        yield _fact(run, "uncertainty", "fraction", errors.max(), "largest of all windows", chosen)


def agreement(run: Run) -> Iterator[Number]:
    """Yield by how much counter and integral differ at most over the windows that have both."""
    index, scope = ["n", "method", "layer", "block"], sensor_scope(run)
    names = [f"window_energy_{way}_{scope}" for way in ("counter", "integral")]
    counter, integral = (_windows(run, name).set_index(index)["value"] for name in names)
    apart = (counter / integral - 1).abs().dropna()
    if len(apart):
        note = f"largest |counter / integral - 1| of {len(apart)} windows"
        chosen = where(quantity=names, layer=LAYERS)
        yield _fact(run, "counter_agreement", "fraction", apart.max(), note, chosen)


def above_idle(run: Run) -> Iterator[Number]:
    """Yield idle power, and the smallest mean power under load over the highest idle power of the same count."""
    quantity = f"power_mean_{sensor_scope(run)}"
    idle = run.rows[(run.rows["layer"] == "idle") & (run.rows["method"] == "idle")]
    idle = idle[idle["quantity"] == quantity]
    chosen = where(quantity=quantity, layer="idle", method="idle")
    highest = idle.groupby("n")["value"].max()
    ratios = (_windows(run, quantity, (power.BACK_TO_BACK,)).groupby("n")["value"].min() / highest).dropna()
    if len(ratios):
        note = "least load / highest idle of the same n"
        loaded = where(quantity=quantity, layer=power.BACK_TO_BACK)
        yield _fact(run, "least_load_over_idle", "ratio", ratios.min(), note, either([loaded, chosen]))
    if len(highest):
        yield _fact(run, "idle", "W", idle["value"].median(), "median of the idle windows", chosen)


def capped(run: Run) -> Iterator[Number]:
    """Yield for which share of the time each method is held at the power limit, and which clearly are.

    The share is of the time of a window with the settling before it and the tail behind it, by the violation counter.
    """
    rows = _windows(run, "power_capped", (power.BACK_TO_BACK,))
    if rows.empty:
        return
    held: dict[str, list[str]] = {}
    held_rows = where(quantity="power_capped", layer=power.BACK_TO_BACK)
    for (method, n), share in rows.groupby(["method", "n"])["value"].median().items():
        if method.endswith(AGAIN):
            continue
        source = run.from_rows(rows["dataset"].iloc[0], f"n={n}, method={method}, {held_rows}")
        note = "share of the time at the power limit, window with settling and tail, median of the windows"
        key = run.key(power.WORKLOAD, n, method, quantity="capped_share")
        yield make_number(key, source, "fraction", float(share), note=note)
        if share >= CAPPED_FROM:
            held.setdefault(human(SHORT_METHODS, method), []).append(str(n))
    text = "; ".join(f"{method} at n = {', '.join(counts)}" for method, counts in held.items()) or "none"
    yield make_text(run.fact_key("capped"), run.from_rows("", held_rows), text)


def sampling_cost(run: Run) -> Iterator[Number]:
    """Yield time per frame, and idle power where a counter tells it, with the sampler running over without it."""
    idle = f"power_mean_{sensor_scope(run)}"
    for name, quantity, subject in (
        ("sampling_cost", "time_per_frame", "octopus"),
        ("sampling_cost_idle", idle, "idle"),
    ):
        pair = [f"{subject}-sampled", f"{subject}-unsampled"]
        rows = run.rows[run.rows["method"].isin(pair) & (run.rows["quantity"] == quantity)]
        both = paired(pivot(rows), *pair)
        if len(both):
            ratio = paired_ratio(both[pair[0]], both[pair[1]])
            source = run.from_rows(rows["dataset"].iloc[0], where(method=pair, quantity=quantity))
            note = f"{quantity} with the sampling process / without it, {len(both)} pairs"
            yield make_number(run.fact_key(name), source, "ratio", *ratio, note=note)
