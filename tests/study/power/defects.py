"""Stored runs with one defect each, as data: the rule of the linter that alone must catch it, and what is wrong."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from synthetic_power import PowerRun, power_run

MODULE = "module_vdd_in"
POWER, ENERGY, NET = "power_mean", "energy_per_frame", "energy_per_frame_net"
COUNTER, INTEGRAL = "window_energy_counter", "window_energy_integral"
BACK_TO_BACK = {"layer": "back_to_back"}
OWN, OTHER = (BACK_TO_BACK | {"method": method} for method in ("octopus", "published"))
IDLE = {"layer": "idle", "method": "idle"}


def high(method: str, n: int) -> float:
    """Watts of loads that are far above any idle, and differ."""
    return 200.0 + 10 * len(method) + n / 50


def below_idle(layer: str, method: str) -> Callable[[PowerRun], None]:
    """A method draws less than the idle device, in its windows and in the trace of them alike."""

    def spoil(run: PowerRun) -> None:
        arm = {"layer": layer, "method": method}
        run.scale(0.85, (POWER, ENERGY, COUNTER, INTEGRAL), **arm)
        run.drop(quantity=NET, **arm)
        windows = run.rows[run.select(**arm)].pivot(index=["n", "block"], columns="quantity", values="value")
        for start, length in windows[["window_start", "window"]].itertuples(index=False):
            inside = run.rows["block"].between(1000 * start - 150, 1000 * (start + length) + 150)
            run.rows.loc[inside & (run.rows["layer"] == "trace"), "value"] *= 0.85

    return spoil


def without_idle(run: PowerRun) -> None:
    run.drop(**IDLE)
    run.drop(quantity=NET)


def in_other_units(factor: float) -> Callable[[PowerRun], None]:
    """The run is consistent in itself, in other units than it says."""
    return lambda run: run.scale(factor, unit=("W", "J", "mJ"))


def energy_of_another_run(run: PowerRun) -> None:
    run.scale(1.04, (POWER, ENERGY), **OTHER)
    run.drop(quantity=NET)


def trace_that_ends_early(run: PowerRun) -> None:
    trace = run.rows["layer"] == "trace"
    run.rows = run.rows[~trace | (run.rows["block"] < run.rows.loc[trace, "block"].max() // 2)]


def net_although_idle_drifted(run: PowerRun) -> None:
    arms, net = ["n", "method", "layer", "block"], run.select(quantity=NET)
    assert run.rows.loc[net, "value"].isna().all()
    idle = run.rows[run.select(**IDLE, quantity=POWER)].groupby("n")["value"].mean()
    wide = run.rows[run.select(layer=("back_to_back", "paced"))]
    wide = wide.pivot(index=arms, columns="quantity", values="value").dropna(subset=ENERGY)
    levels = idle.loc[wide.index.get_level_values("n")].to_numpy()
    values = wide[ENERGY] - 1e3 * levels * wide["window"] / wide["frames"]
    keys = pd.MultiIndex.from_frame(run.rows.loc[net, arms])
    run.rows.loc[net, "value"] = values.loc[keys].to_numpy(dtype=float)
    run.rows.loc[net, "status"] = "same"


def shorter(run: PowerRun) -> None:
    """Each window ends after three fifths of its time, and all that was counted in it with it."""
    run.scale(0.6, ("window", "frames", COUNTER, INTEGRAL), **BACK_TO_BACK)


def published(rows: list[tuple], folder: Path) -> Path:
    """Write the rows of a table as it may have been published, without a trace or a test."""
    table = pd.DataFrame(rows, columns=["n", "method", "quantity", "value", "unit"])
    table.assign(low=np.nan, high=np.nan, source="made up").to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def constant_power(methods: tuple[str, ...], counts: tuple[int, ...]) -> list[tuple]:
    """Return 8 W for whatever was measured, with energies and idle that fit."""
    rows: list[tuple] = [(0, "idle", "power", 5000, "mW")]
    for n in counts:
        for cost, method in enumerate(methods, 10):
            time = 0.1 * cost * n
            rows += [(n, method, "time", time, "ms"), (n, method, "power", 8000, "mW")]
            rows.append((n, method, "energy", 8 * time, "mJ"))
    return rows


class Defect(NamedTuple):
    """The rule that must catch it, how a healthy run is spoiled, and the settings of that run."""

    check: str
    spoil: Callable[[PowerRun], object] = lambda run: None
    settings: Mapping[str, Any] = {}

    def run(self) -> PowerRun:
        run = power_run(**self.settings)
        self.spoil(run)
        return run


READABLE = {"id": "readable", "outcome": "passed", "detail": ""}
LATER = {"layer": "trace", "method": "octopus", "n": 1000}
DEFECTS = {
    "load below idle": Defect("load-above-idle", below_idle("back_to_back", "n-launches")),
    "windows of three seconds": Defect("window-length", shorter),
    "four windows": Defect("window-count", lambda run: run.drop(block=4, layer=("back_to_back", "paced"))),
    "millivolts in a power": Defect("typed-units", lambda run: run.put("unit", "mV", quantity=POWER)),
    "joules in a power": Defect("typed-units", lambda run: run.put("unit", "J", layer="trace")),
    "power without a scope": Defect("scope", lambda run: run.put("scope", "", quantity=POWER)),
    "idle of another scope": Defect("scope", lambda run: run.put("scope", MODULE, **IDLE)),
    "no record": Defect("power-on-test", lambda run: run.power.pop("selftest")),
    "failed test": Defect("power-on-test", lambda run: run.power["selftest"].update(passed=False, reason="rises: no")),
    "test of another sensor": Defect("power-on-test", lambda run: run.power["selftest"].update(scope=MODULE)),
    "record without its checks": Defect("power-on-test", lambda run: run.power["selftest"].update(checks=[READABLE])),
    "paced load far below idle": Defect("load-above-idle", below_idle("paced", "octopus")),
    "no idle": Defect("load-above-idle", without_idle),
    "a thousand times too much": Defect("plausible-range", in_other_units(1000)),
    "a thousandth": Defect("plausible-range", in_other_units(1 / 1000)),
    "zero for a failed reading": Defect(
        "missing-not-zero", lambda run: run.put("value", 0.0, only=3, layer="trace", method="between")
    ),
    "a gap without a reason": Defect(
        "missing-not-zero", lambda run: run.put("value", None, only=2, quantity="energy_uncertainty")
    ),
    "power of another run": Defect("power-times-time", lambda run: run.scale(1.04, POWER, **OTHER)),
    "time of another run": Defect("same-window", lambda run: run.scale(0.9, "time_per_frame", **OWN)),
    "energy of another run": Defect("same-window", energy_of_another_run),
    "energy without a time": Defect("same-window", lambda run: run.drop(**OTHER, quantity="time_per_frame")),
    "energy that nothing measured": Defect(
        "same-window", lambda run: run.drop(**BACK_TO_BACK, quantity=(COUNTER, INTEGRAL))
    ),
    "counter of another device": Defect("counter-agrees", lambda run: run.scale(1.08, (POWER, ENERGY, NET, COUNTER))),
    "trace of another run": Defect("trace-agrees", lambda run: run.scale(1.08, layer="trace", method="published")),
    "trace that ends early": Defect("trace-agrees", trace_that_ends_early),
    "sensor that froze under way": Defect("trace-agrees", lambda run: run.drop(**LATER), {"watts": 300.0}),
    "no trace": Defect("trace-agrees", lambda run: run.drop(layer="trace")),
    "windows of few updates": Defect("window-length", lambda run: run.power["selftest"].update(update_seconds=0.2)),
    "frames that come late": Defect("frame-rate", lambda run: setattr(run, "frame_rate", 30.0), {"frame_rate": 29.0}),
    "an arm that lost a window": Defect("window-count", lambda run: run.drop(**OWN, n=100, block=2, quantity=ENERGY)),
    "net of an idle that drifted": Defect("idle-drift", net_although_idle_drifted, {"idle_drift": 0.08, "watts": high}),
    "net of an idle known on one side": Defect("idle-drift", lambda run: run.drop(**IDLE, block=1)),
    "net of an idle from elsewhere": Defect("net-of-idle", lambda run: run.scale(1.3, NET)),
}
