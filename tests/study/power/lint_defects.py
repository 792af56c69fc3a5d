"""Power runs with one defect each, and the check of the linter that alone must catch it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from synthetic_power import PowerRun, power_run

BOARD, MODULE = "gpu_board", "module_vdd_in"
POWER, ENERGY, NET = f"power_mean_{BOARD}", f"energy_per_frame_{BOARD}", f"energy_per_frame_net_{BOARD}"
COUNTER, INTEGRAL = f"window_energy_counter_{BOARD}", f"window_energy_integral_{BOARD}"


def high(method: str, n: int) -> float:
    """Watts of loads that are far above any idle, and differ."""
    return 200.0 + 10 * len(method) + n / 50


DEFECTS: dict[str, tuple[str, Callable[[], PowerRun]]] = {}


def defect(check: str) -> Callable[[Callable[[], PowerRun]], Callable[[], PowerRun]]:
    """Enter a run with one defect, which this check alone must catch."""

    def enter(make: Callable[[], PowerRun]) -> Callable[[], PowerRun]:
        DEFECTS[make.__name__] = (check, make)
        return make

    return enter


@defect("typed-units")
def millivolts_in_a_power() -> PowerRun:
    run = power_run()
    run.rows.loc[run.select(quantity=POWER), "unit"] = "mV"
    return run


@defect("typed-units")
def joules_in_a_power() -> PowerRun:
    run = power_run()
    run.rows.loc[run.select(layer="trace"), "unit"] = "J"
    return run


@defect("scope")
def power_of_nobody_knows_what() -> PowerRun:
    run = power_run()
    run.rows["quantity"] = run.rows["quantity"].str.replace(f"power_mean_{BOARD}", "power_mean")
    return run


@defect("scope")
def idle_of_another_scope() -> PowerRun:
    run = power_run()
    of_idle = run.rows["quantity"].str.replace(BOARD, MODULE)
    run.rows["quantity"] = run.rows["quantity"].where(run.rows["layer"] != "idle", of_idle)
    return run


@defect("power-on-test")
def no_record() -> PowerRun:
    run = power_run()
    del run.power["selftest"]
    return run


@defect("power-on-test")
def failed_test() -> PowerRun:
    run = power_run()
    run.power["selftest"] |= {"passed": False, "reason": "rises: power changed by +0.3 %"}
    return run


@defect("power-on-test")
def test_of_another_sensor() -> PowerRun:
    run = power_run()
    run.power["selftest"]["scope"] = MODULE
    return run


@defect("power-on-test")
def record_without_its_checks() -> PowerRun:
    run = power_run()
    run.power["selftest"]["checks"] = [{"id": "readable", "outcome": "passed", "detail": ""}]
    return run


@defect("load-above-idle")
def load_below_idle() -> PowerRun:
    return power_run(watts=lambda method, n: 124.0 if method == "n-launches" else 300.0)


@defect("load-above-idle")
def paced_load_far_below_idle() -> PowerRun:
    run = power_run()
    for name in (POWER, ENERGY, COUNTER, INTEGRAL):
        run.scale(0.9, layer="paced", method="octopus", quantity=name)
    run.drop(layer="paced", quantity=NET)
    chosen = run.rows[run.select(layer="paced", method="octopus")]
    paced = chosen.pivot(index="block", columns="quantity", values="value")
    for start, length in paced[["window_start", "window"]].itertuples(index=False):
        inside = run.rows["block"].between(1000 * start - 150, 1000 * (start + length) + 150)
        run.rows.loc[inside & (run.rows["layer"] == "trace"), "value"] *= 0.9
    return run


@defect("load-above-idle")
def no_idle() -> PowerRun:
    run = power_run()
    run.drop(layer="idle", method="idle")
    run.drop(quantity=NET)
    return run


@defect("plausible-range")
def a_thousand_times_too_much() -> PowerRun:
    return spoil_scale(1000)


@defect("plausible-range")
def a_thousandth() -> PowerRun:
    return spoil_scale(1 / 1000)


def spoil_scale(factor: float) -> PowerRun:
    """Return a run that is consistent in itself, in other units than it says."""
    run = power_run()
    scaled = run.rows["unit"].isin(("W", "J", "mJ"))
    run.rows.loc[scaled, "value"] *= factor
    return run


@defect("missing-not-zero")
def zero_for_a_failed_reading() -> PowerRun:
    run = power_run()
    between = run.rows.index[run.select(layer="trace", method="between")]
    run.rows.loc[between[3], "value"] = 0.0
    return run


@defect("missing-not-zero")
def gap_without_a_reason() -> PowerRun:
    run = power_run()
    run.rows.loc[run.rows.index[run.select(quantity=f"energy_uncertainty_{BOARD}")][2], "value"] = np.nan
    return run


@defect("power-times-time")
def power_of_another_run() -> PowerRun:
    run = power_run()
    run.scale(1.04, layer="back_to_back", method="published", quantity=POWER)
    return run


@defect("same-window")
def time_of_another_run() -> PowerRun:
    run = power_run()
    run.scale(0.9, layer="back_to_back", method="octopus", quantity="time_per_frame")
    return run


@defect("same-window")
def energy_of_another_run() -> PowerRun:
    run = power_run()
    for name in (POWER, ENERGY):
        run.scale(1.04, layer="back_to_back", method="published", quantity=name)
    run.drop(quantity=NET)
    return run


@defect("same-window")
def energy_without_a_time() -> PowerRun:
    run = power_run()
    run.drop(layer="back_to_back", method="published", quantity="time_per_frame")
    return run


@defect("same-window")
def energy_that_nothing_measured() -> PowerRun:
    run = power_run()
    for name in (COUNTER, INTEGRAL):
        run.drop(layer="back_to_back", quantity=name)
    return run


@defect("counter-agrees")
def counter_of_another_device() -> PowerRun:
    run = power_run()
    for name in (POWER, ENERGY, NET, COUNTER):
        run.scale(1.08, quantity=name)
    return run


@defect("trace-agrees")
def trace_of_another_run() -> PowerRun:
    run = power_run()
    run.scale(1.05, layer="trace", method="published")
    return run


@defect("trace-agrees")
def trace_that_ends_early() -> PowerRun:
    run = power_run()
    last = run.rows.loc[run.select(layer="trace"), "block"].max()
    run.rows = run.rows[(run.rows["layer"] != "trace") | (run.rows["block"] < last // 2)]
    return run


@defect("trace-agrees")
def sensor_that_froze_under_way() -> PowerRun:
    run = power_run(watts=lambda method, n: 300.0)
    repeated = run.select(layer="trace", method="octopus", n=1000)
    run.rows = run.rows[~repeated]
    return run


@defect("trace-agrees")
def no_trace() -> PowerRun:
    run = power_run()
    run.drop(layer="trace")
    return run


@defect("window-length")
def windows_of_two_seconds() -> PowerRun:
    return power_run(window_seconds=2.0, period_seconds=0.02)


@defect("window-length")
def windows_of_few_updates() -> PowerRun:
    run = power_run()
    run.power["selftest"]["update_seconds"] = 0.2
    return run


@defect("frame-rate")
def frames_that_come_late() -> PowerRun:
    run = power_run(frame_rate=29.0)
    run.frame_rate = 30.0
    return run


@defect("window-count")
def four_windows() -> PowerRun:
    return power_run(windows=4)


@defect("window-count")
def an_arm_that_lost_a_window() -> PowerRun:
    run = power_run()
    run.drop(layer="back_to_back", method="octopus", n=100, block=2, quantity=ENERGY)
    return run


@defect("idle-drift")
def net_of_an_idle_that_drifted() -> PowerRun:
    drifted = power_run(idle_drift=0.08, watts=high)
    net = drifted.select(quantity=NET)
    assert drifted.rows.loc[net, "value"].isna().all()
    idle = (
        drifted.rows[drifted.select(layer="idle", method="idle", quantity=POWER)].groupby("n")["value"].mean()
    )
    wide = drifted.rows[drifted.rows["layer"].isin(["back_to_back", "paced"])]
    wide = wide.pivot(index=["n", "method", "layer", "block"], columns="quantity", values="value").dropna(
        subset=ENERGY
    )
    levels = idle.loc[wide.index.get_level_values("n")].to_numpy()
    values = wide[ENERGY] - 1e3 * levels * wide["window"] / wide["frames"]
    keys = pd.MultiIndex.from_frame(drifted.rows.loc[net, ["n", "method", "layer", "block"]])
    drifted.rows.loc[net, "value"] = values.loc[keys].to_numpy(dtype=float)
    drifted.rows.loc[net, "answer"] = "same"
    return drifted


@defect("idle-drift")
def net_of_an_idle_known_on_one_side() -> PowerRun:
    run = power_run()
    run.drop(layer="idle", method="idle", block=1)
    return run


@defect("net-of-idle")
def net_of_an_idle_from_elsewhere() -> PowerRun:
    run = power_run()
    run.scale(1.3, quantity=NET)
    return run
