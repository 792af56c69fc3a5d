"""The results linter: whole runs pass, each defect is caught by one check alone, and both voltage tables are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from synthetic_power import METHODS, PowerRun, no_sensor_run, power_run
from synthetic_timeline import PROFILES
from typer.testing import CliRunner, Result

from octopus.cli import app
from octopus.errors import DataError, MeasureError
from octopus.measure.rows import validate_rows
from octopus.power import lint
from octopus.power.checks import IDS
from octopus.power.lint import LINT_CHECKS, lint_file
from octopus.report.promote import promote

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "data" / "published"
MISREAD, RELABELLED = PUBLISHED / "power_voltage_misread.csv", PUBLISHED / "power_voltage_relabelled.csv"
BOARD, MODULE = "gpu_board", "module_vdd_in"
POWER, ENERGY, NET = f"power_mean_{BOARD}", f"energy_per_frame_{BOARD}", f"energy_per_frame_net_{BOARD}"
COUNTER, INTEGRAL = f"window_energy_counter_{BOARD}", f"window_energy_integral_{BOARD}"


def refusing(path: Path) -> list[str]:
    """Return the ids of the checks that refuse a table."""
    return [finding.check for finding in lint_file(path)]


def reason(path: Path, check: str) -> str:
    """Return what a check says of a table."""
    return next(finding.message for finding in lint_file(path) if finding.check == check)


# Healthy runs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", PROFILES)
def test_a_healthy_run_is_accepted(scope: str, tmp_path: Path) -> None:
    run = power_run(scope, counts=(50, 500, 5000), paced_counts=(50, 5000), again_counts=(500,))
    table = run.write(tmp_path)
    validate_rows(table)
    assert lint_file(table) == []


def test_a_run_without_a_sensor_is_accepted(tmp_path: Path) -> None:
    table = no_sensor_run().write(tmp_path)
    validate_rows(table)
    assert lint_file(table) == []


def test_net_energies_may_be_missing_where_idle_drifted(tmp_path: Path) -> None:
    run = power_run(idle_drift=0.08)
    notes = run.rows.loc[run.select(quantity=NET), "answer"].unique()
    assert list(notes) == ["unavailable: idle drifted by 8.0%"]
    assert lint_file(run.write(tmp_path)) == []


def test_a_quick_method_at_a_fixed_rate_may_draw_as_little_as_idle(tmp_path: Path) -> None:
    run = power_run(counts=(100,), watts=lambda method, n: 126.0 + METHODS.index(method))
    idle = run.rows[run.select(layer="idle", method="idle", quantity=POWER)]["value"].max()
    paced = run.rows[run.select(layer="paced", quantity=POWER)]["value"].min()
    assert paced < 1.005 * idle
    assert lint_file(run.write(tmp_path)) == []


def test_a_power_that_is_equal_in_all_arms_is_accepted_after_a_passed_test(tmp_path: Path) -> None:
    run = power_run(watts=lambda method, n: 300.0)
    assert lint_file(run.write(tmp_path)) == []
    run.power["selftest"] = None
    assert refusing(run.write(tmp_path)) == ["power-on-test", "identity"]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "data/reference").glob("*/*.csv")), ids=lambda p: f"{p.parent.name}-{p.stem}"
)
def test_every_committed_reference_is_accepted(path: Path) -> None:
    assert lint_file(path) == []


# One defect, one check ----------------------------------------------------------------------------------------------

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
    in_windows = run.select(layer="trace", method="octopus", n=100)
    paced = run.rows[run.select(layer="paced", method="octopus")].pivot(
        index="block", columns="quantity", values="value"
    )
    for start, length in paced[["window_start", "window"]].itertuples(index=False):
        inside = run.rows["block"].between(1000 * start - 150, 1000 * (start + length) + 150)
        run.rows.loc[inside & (run.rows["layer"] == "trace"), "value"] *= 0.9
    assert in_windows.any()
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
    run, drifted = power_run(), power_run(idle_drift=0.08)
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
    assert run.select(quantity=NET).sum() == net.sum()
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


@pytest.mark.parametrize("name", DEFECTS)
def test_one_check_alone_catches_the_defect(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check, make = DEFECTS[name]
    table = make().write(tmp_path)
    assert refusing(table) == [check], lint_file(table)
    for stage in (lint.MEANING, lint.CONTENT, lint.WINDOW_CHECKS):
        monkeypatch.delitem(stage, check, raising=False)
    assert not meaningful(name) or lint_file(table) == []


def meaningful(name: str) -> bool:
    """Whether the numbers can still be read without the check: not where nobody knows what they are those of."""
    return DEFECTS[name][0] != "scope" and name != "no_record"


def test_every_check_has_its_defect() -> None:
    caught = {check for check, _ in DEFECTS.values()} | {"identity"}
    assert caught == {check.id for check in LINT_CHECKS}
    assert caught <= set(IDS)


# The trace of readings of the moment --------------------------------------------------------------------------------


def momentary_run(method: str, layer: str, factor: float) -> PowerRun:
    """Return a run whose trace misses the mean of some windows, while the driver's own mean was integrated."""
    run = power_run()
    run.power["source"] |= {"power": "field value POWER_INSTANT", "integrated": "nvmlDeviceGetPowerUsage"}
    for name in (POWER, ENERGY, NET, COUNTER, INTEGRAL):
        if name != NET:
            run.scale(factor, layer=layer, method=method, quantity=name)
    run.drop(quantity=NET)
    return run


@pytest.mark.parametrize(
    ("layer", "factor", "checks"),
    [("paced", 1.15, []), ("back_to_back", 1.04, []), ("back_to_back", 1.08, ["trace-agrees"])],
)
def test_readings_of_the_moment_check_steady_work_alone(
    layer: str, factor: float, checks: list[str], tmp_path: Path
) -> None:
    assert refusing(momentary_run("published", layer, factor).write(tmp_path)) == checks


# Published tables ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(PUBLISHED.glob("*.csv")), ids=lambda path: path.stem)
def test_of_the_published_tables_only_the_voltage_tables_are_refused(path: Path) -> None:
    assert bool(lint_file(path)) == (path in (MISREAD, RELABELLED))


def test_the_first_voltage_table_is_refused_for_both_symptoms() -> None:
    assert refusing(MISREAD) == ["load-above-idle", "identity"]
    assert "13 of 13 powers under load are below idle" in reason(MISREAD, "load-above-idle")
    deviation = float(re.search(r"deviates by ([\d.]+) only", reason(MISREAD, "identity"))[1])
    assert deviation < 0.001


def test_the_second_voltage_table_is_refused_since_it_lies_below_idle() -> None:
    assert refusing(RELABELLED) == ["load-above-idle"]


def test_the_table_of_volts_times_amperes_is_far_from_both_symptoms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its powers' ratios deviate by 0.012 over eight counts: a linter only a little stricter would refuse it."""
    table = lint.read_table(PUBLISHED / "power.csv")
    deviation = np.std(list(lint._log_ratios(table.arms)), ddof=1)
    assert 0.011 < deviation < 0.013
    assert table.loads["low"].min() > 1.3 * table.idle["high"].max()
    monkeypatch.setattr(lint, "LEAST_DEVIATION", 0.013)
    assert refusing(PUBLISHED / "power.csv") == ["identity"]


def published(rows: list[tuple[int, str, str, float, str]], path: Path) -> Path:
    table = pd.DataFrame(rows, columns=["n", "method", "quantity", "value", "unit"])
    table.assign(low=np.nan, high=np.nan, source="made up").to_csv(path, index=False)
    return path


def constant_power(
    methods: tuple[str, ...], counts: tuple[int, ...]
) -> list[tuple[int, str, str, float, str]]:
    """Return 8 W for whatever was measured, with energies and idle that fit."""
    rows: list[tuple[int, str, str, float, str]] = [(0, "idle", "power", 5000, "mW")]
    for n in counts:
        for cost, method in enumerate(methods, 10):
            time = 0.1 * cost * n
            rows += [(n, method, "time", time, "ms"), (n, method, "power", 8000, "mW")]
            rows.append((n, method, "energy", 8 * time, "mJ"))
    return rows


@pytest.mark.parametrize(
    ("methods", "counts", "refused"),
    [
        (("a", "b"), (1, 2, 3, 4), True),
        (("a", "b"), (1, 2, 3), False),
        (("a", "b", "c"), (1, 2), True),
        (("a",), (1, 2, 3, 4, 5), True),
        (("a", "a-again"), (1, 2, 3, 4), False),
    ],
    ids=["four pairs", "three pairs", "three methods", "one method", "a method twice"],
)
def test_only_the_identity_tells_a_power_that_never_changes(
    methods: tuple[str, ...], counts: tuple[int, ...], refused: bool, tmp_path: Path
) -> None:
    table = published(constant_power(methods, counts), tmp_path / "t.csv")
    assert refusing(table) == (["identity"] if refused else [])


def test_published_energies_must_be_power_times_time(tmp_path: Path) -> None:
    rows = [(10, "a", "time", 10, "ms"), (10, "a", "power", 8, "W"), (10, "a", "energy", 90, "mJ")]
    assert refusing(published(rows, tmp_path / "t.csv")) == ["power-times-time"]


@pytest.mark.parametrize(
    ("row", "check"),
    [
        ((1, "a", "power", 4913, "mV"), "typed-units"),
        ((1, "a", "energy", 4913, "W"), "typed-units"),
        ((1, "a", "power", 12, "percent"), "typed-units"),
        ((1, "a", "power", 8000, "W"), "plausible-range"),
    ],
)
def test_published_powers_have_units_and_sizes_of_powers(
    row: tuple[int, str, str, float, str], check: str, tmp_path: Path
) -> None:
    assert refusing(published([row], tmp_path / "t.csv")) == [check]


# Files and commands -------------------------------------------------------------------------------------------------


def test_what_is_no_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="no table"):
        lint_file(tmp_path / "power.csv")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(MeasureError, match="columns"):
        lint_file(tmp_path / "other.csv")


def test_repeated_rows_are_no_windows(tmp_path: Path) -> None:
    run = power_run()
    run.rows = pd.concat([run.rows, run.rows.head(1)])
    with pytest.raises(MeasureError, match="repeats rows"):
        lint_file(run.write(tmp_path))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"extra": null}', '{"extra": {"power": null}}'])
def test_a_record_that_cannot_be_read_is_none(content: str, tmp_path: Path) -> None:
    table = power_run().write(tmp_path)
    table.with_suffix(".json").write_text(content)
    assert refusing(table) == ["power-on-test"]


def octopus(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def test_the_command_tells_each_finding_in_a_line() -> None:
    accepted = octopus("lint-results", PUBLISHED / "power.csv")
    assert (accepted.exit_code, accepted.stdout) == (0, f"{PUBLISHED / 'power.csv'}: accepted\n")
    refused = octopus("lint-results", PUBLISHED / "power.csv", MISREAD, RELABELLED)
    assert refused.exit_code == 1
    lines = refused.stdout.splitlines()
    assert [line.partition(": ")[2].partition(": ")[0] for line in lines] == [
        "accepted",
        "load-above-idle",
        "identity",
        "load-above-idle",
    ]


def test_a_run_that_the_linter_refuses_is_not_promoted(tmp_path: Path) -> None:
    good = power_run().write(tmp_path / "results" / "good").parent
    assert promote(good, tmp_path / "reference").name == "good"
    bad = load_below_idle().write(tmp_path / "results" / "bad").parent
    with pytest.raises(DataError, match="the results linter refuses it .load-above-idle"):
        promote(bad, tmp_path / "reference")
    assert not (tmp_path / "reference" / "bad").exists()


def test_the_record_is_that_of_the_provenance(tmp_path: Path) -> None:
    table = power_run().write(tmp_path)
    record = json.loads(table.with_suffix(".json").read_text())
    record["extra"]["power"]["selftest"]["passed"] = False
    table.with_suffix(".json").write_text(json.dumps(record))
    assert "failed" in reason(table, "power-on-test")
