"""Power runs with one defect each, and the check of the linter that alone must catch it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from synthetic_power import PowerRun, power_run

BOARD, MODULE = "gpu_board", "module_vdd_in"
POWER, ENERGY, NET = f"power_mean_{BOARD}", f"energy_per_frame_{BOARD}", f"energy_per_frame_net_{BOARD}"
COUNTER, INTEGRAL = f"window_energy_counter_{BOARD}", f"window_energy_integral_{BOARD}"
BACK_TO_BACK = {"layer": "back_to_back"}
Spoil = Callable[[PowerRun], None]


def high(method: str, n: int) -> float:
    """Watts of loads that are far above any idle, and differ."""
    return 200.0 + 10 * len(method) + n / 50


class Defect(NamedTuple):
    """A run, and the check that must catch what is wrong with it."""

    check: str
    make: Callable[[], PowerRun]


DEFECTS: dict[str, Defect] = {
    # What is wrong from the beginning; those below spoil a healthy run.
    "load_below_idle": Defect(
        "load-above-idle",
        lambda: power_run(watts=lambda method, n: 124.0 if method == "n-launches" else 300.0),
    ),
    "windows_of_two_seconds": Defect(
        "window-length", lambda: power_run(window_seconds=2.0, period_seconds=0.02)
    ),
    "four_windows": Defect("window-count", lambda: power_run(windows=4)),
}


def defect(check: str, **settings: Any) -> Callable[[Spoil], Spoil]:
    """Enter a function that spoils a run of those settings, which this check alone must catch."""

    def enter(spoil: Spoil) -> Spoil:
        def make() -> PowerRun:
            run = power_run(**settings)
            spoil(run)
            return run

        DEFECTS[spoil.__name__] = Defect(check, make)
        return spoil

    return enter


@defect("typed-units")
def millivolts_in_a_power(run: PowerRun) -> None:
    run.rows.loc[run.select(quantity=POWER), "unit"] = "mV"


@defect("typed-units")
def joules_in_a_power(run: PowerRun) -> None:
    run.rows.loc[run.select(layer="trace"), "unit"] = "J"


@defect("scope")
def power_of_nobody_knows_what(run: PowerRun) -> None:
    run.rows["quantity"] = run.rows["quantity"].str.replace(f"power_mean_{BOARD}", "power_mean")


@defect("scope")
def idle_of_another_scope(run: PowerRun) -> None:
    of_idle = run.rows["quantity"].str.replace(BOARD, MODULE)
    run.rows["quantity"] = run.rows["quantity"].where(run.rows["layer"] != "idle", of_idle)


@defect("power-on-test")
def no_record(run: PowerRun) -> None:
    del run.power["selftest"]


@defect("power-on-test")
def failed_test(run: PowerRun) -> None:
    run.power["selftest"] |= {"passed": False, "reason": "rises: power changed by +0.3 %"}


@defect("power-on-test")
def test_of_another_sensor(run: PowerRun) -> None:
    run.power["selftest"]["scope"] = MODULE


@defect("power-on-test")
def record_without_its_checks(run: PowerRun) -> None:
    run.power["selftest"]["checks"] = [{"id": "readable", "outcome": "passed", "detail": ""}]


@defect("load-above-idle")
def paced_load_far_below_idle(run: PowerRun) -> None:
    run.scale(0.9, (POWER, ENERGY, COUNTER, INTEGRAL), layer="paced", method="octopus")
    run.drop(layer="paced", quantity=NET)
    chosen = run.rows[run.select(layer="paced", method="octopus")]
    paced = chosen.pivot(index="block", columns="quantity", values="value")
    for start, length in paced[["window_start", "window"]].itertuples(index=False):
        inside = run.rows["block"].between(1000 * start - 150, 1000 * (start + length) + 150)
        run.rows.loc[inside & (run.rows["layer"] == "trace"), "value"] *= 0.9


@defect("load-above-idle")
def no_idle(run: PowerRun) -> None:
    run.drop(layer="idle", method="idle")
    run.drop(quantity=NET)


def of_other_units(run: PowerRun, factor: float) -> None:
    """Leave a run that is consistent in itself, in other units than it says."""
    run.rows.loc[run.rows["unit"].isin(("W", "J", "mJ")), "value"] *= factor


@defect("plausible-range")
def a_thousand_times_too_much(run: PowerRun) -> None:
    of_other_units(run, 1000)


@defect("plausible-range")
def a_thousandth(run: PowerRun) -> None:
    of_other_units(run, 1 / 1000)


@defect("missing-not-zero")
def zero_for_a_failed_reading(run: PowerRun) -> None:
    between = run.rows.index[run.select(layer="trace", method="between")]
    run.rows.loc[between[3], "value"] = 0.0


@defect("missing-not-zero")
def gap_without_a_reason(run: PowerRun) -> None:
    run.rows.loc[run.rows.index[run.select(quantity=f"energy_uncertainty_{BOARD}")][2], "value"] = np.nan


@defect("power-times-time")
def power_of_another_run(run: PowerRun) -> None:
    run.scale(1.04, POWER, **BACK_TO_BACK, method="published")


@defect("same-window")
def time_of_another_run(run: PowerRun) -> None:
    run.scale(0.9, "time_per_frame", **BACK_TO_BACK, method="octopus")


@defect("same-window")
def energy_of_another_run(run: PowerRun) -> None:
    run.scale(1.04, (POWER, ENERGY), **BACK_TO_BACK, method="published")
    run.drop(quantity=NET)


@defect("same-window")
def energy_without_a_time(run: PowerRun) -> None:
    run.drop(**BACK_TO_BACK, method="published", quantity="time_per_frame")


@defect("same-window")
def energy_that_nothing_measured(run: PowerRun) -> None:
    run.drop(**BACK_TO_BACK, quantity=(COUNTER, INTEGRAL))


@defect("counter-agrees")
def counter_of_another_device(run: PowerRun) -> None:
    run.scale(1.08, (POWER, ENERGY, NET, COUNTER))


@defect("trace-agrees")
def trace_of_another_run(run: PowerRun) -> None:
    run.scale(1.05, layer="trace", method="published")


@defect("trace-agrees")
def trace_that_ends_early(run: PowerRun) -> None:
    last = run.rows.loc[run.select(layer="trace"), "block"].max()
    run.rows = run.rows[(run.rows["layer"] != "trace") | (run.rows["block"] < last // 2)]


@defect("trace-agrees", watts=lambda method, n: 300.0)
def sensor_that_froze_under_way(run: PowerRun) -> None:
    run.drop(layer="trace", method="octopus", n=1000)


@defect("trace-agrees")
def no_trace(run: PowerRun) -> None:
    run.drop(layer="trace")


@defect("window-length")
def windows_of_few_updates(run: PowerRun) -> None:
    run.power["selftest"]["update_seconds"] = 0.2


@defect("frame-rate", frame_rate=29.0)
def frames_that_come_late(run: PowerRun) -> None:
    run.frame_rate = 30.0


@defect("window-count")
def an_arm_that_lost_a_window(run: PowerRun) -> None:
    run.drop(**BACK_TO_BACK, method="octopus", n=100, block=2, quantity=ENERGY)


@defect("idle-drift", idle_drift=0.08, watts=high)
def net_of_an_idle_that_drifted(run: PowerRun) -> None:
    arms = ["n", "method", "layer", "block"]
    net = run.select(quantity=NET)
    assert run.rows.loc[net, "value"].isna().all()
    idle = run.rows[run.select(layer="idle", method="idle", quantity=POWER)].groupby("n")["value"].mean()
    wide = run.rows[run.select(layer=("back_to_back", "paced"))]
    wide = wide.pivot(index=arms, columns="quantity", values="value").dropna(subset=ENERGY)
    levels = idle.loc[wide.index.get_level_values("n")].to_numpy()
    values = wide[ENERGY] - 1e3 * levels * wide["window"] / wide["frames"]
    keys = pd.MultiIndex.from_frame(run.rows.loc[net, arms])
    run.rows.loc[net, "value"] = values.loc[keys].to_numpy(dtype=float)
    run.rows.loc[net, "answer"] = "same"


@defect("idle-drift")
def net_of_an_idle_known_on_one_side(run: PowerRun) -> None:
    run.drop(layer="idle", method="idle", block=1)


@defect("net-of-idle")
def net_of_an_idle_from_elsewhere(run: PowerRun) -> None:
    run.scale(1.3, NET)
