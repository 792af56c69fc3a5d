"""The results linter: whole runs pass, one check alone catches each defect, and both voltage tables are refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from lint_defects import BACK_TO_BACK, COUNTER, DEFECTS, ENERGY, INTEGRAL, NET, POWER, high
from synthetic_power import METHODS, PowerRun, no_sensor_run, power_run
from synthetic_timeline import PROFILES
from typer.testing import CliRunner, Result

from octopus_study.cli.commands import app
from octopus_study.errors import DataError, MeasureError
from octopus_study.measure.rows import validate_rows
from octopus_study.power import lint
from octopus_study.power.checks import IDS
from octopus_study.power.lint import LINT_CHECKS, lint_file
from octopus_study.report.promote import promote

ROOT = Path(__file__).parents[3]
PUBLISHED = ROOT / "data" / "published"
REFERENCES = sorted((ROOT / "data" / "reference").glob("*/*.csv"))
MISREAD, RELABELLED = PUBLISHED / "power_voltage_misread.csv", PUBLISHED / "power_voltage_relabelled.csv"


def refusing(path: Path) -> list[str]:
    """Return the ids of the checks that refuse a table."""
    return [finding.check for finding in lint_file(path)]


def reason(path: Path, check: str) -> str:
    """Return what a check says of a table."""
    return next(finding.message for finding in lint_file(path) if finding.check == check)


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
    run = power_run(idle_drift=0.08, watts=high)
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


def test_every_committed_reference_is_accepted() -> None:
    assert {path: findings for path in REFERENCES if (findings := lint_file(path))} == {}


@pytest.mark.parametrize("name", DEFECTS)
def test_one_check_alone_catches_the_defect(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check, make = DEFECTS[name]
    table = make().write(tmp_path)
    assert refusing(table) == [check], lint_file(table)
    for stage in ("MEANING", "CONTENT", "WINDOW_CHECKS"):
        others = {name: ask for name, ask in getattr(lint, stage).items() if name != check}
        monkeypatch.setattr(lint, stage, others)
    assert not meaningful(name) or lint_file(table) == []


def meaningful(name: str) -> bool:
    """Whether the numbers can still be read without the check: not where nobody knows what they are those of."""
    return DEFECTS[name][0] != "scope" and name != "no_record"


def test_every_check_has_its_defect() -> None:
    caught = {check for check, _ in DEFECTS.values()} | {"identity"}
    assert caught == {check.id for check in LINT_CHECKS}
    assert caught <= set(IDS)


def momentary_run(method: str, layer: str, factor: float) -> PowerRun:
    """Return a run whose trace misses the mean of some windows, while the driver's own mean was integrated."""
    run = power_run()
    run.power["source"] |= {"power": "field value POWER_INSTANT", "integrated": "nvmlDeviceGetPowerUsage"}
    run.scale(factor, (POWER, ENERGY, COUNTER, INTEGRAL), layer=layer, method=method)
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


def board_run(factor: float = 1.0) -> PowerRun:
    """Return a run of a board with a counter and a power of the moment alone: paced windows are counted only.

    The trace misses the mean of those by as much as `factor` says.
    """
    run = power_run()
    run.power["source"] |= {"power": "nvmlDeviceGetPowerUsage", "integrated": "nvmlDeviceGetPowerUsage"}
    run.drop(layer="paced", quantity=INTEGRAL)
    run.scale(factor, (POWER, ENERGY, COUNTER), layer="paced")
    run.drop(quantity=NET)
    return run


def test_a_counter_beside_a_power_of_the_moment_is_not_held_against_its_trace_at_a_fixed_rate(
    tmp_path: Path,
) -> None:
    assert refusing(board_run(1.15).write(tmp_path)) == []


@pytest.mark.parametrize(("factor", "checks"), [(1.04, []), (1.08, ["trace-agrees"])])
def test_a_counter_in_the_place_of_an_integral_agrees_with_the_trace_as_two_sensors_do(
    factor: float, checks: list[str], tmp_path: Path
) -> None:
    run = board_run()
    published = BACK_TO_BACK | {"method": "published"}
    run.drop(quantity=INTEGRAL, **published)
    run.scale(factor, (POWER, ENERGY, COUNTER), **published)
    assert refusing(run.write(tmp_path)) == checks


def test_the_trace_of_a_counter_alone_is_asked_at_a_fixed_rate_too(tmp_path: Path) -> None:
    run = power_run("cpu_package")
    run.scale(1.04, layer="trace", method="published")
    run.drop(quantity="energy_per_frame_net_cpu_package")
    assert refusing(run.write(tmp_path)) == ["trace-agrees"]
    assert "10 of" in reason(tmp_path / "power.csv", "trace-agrees")


def test_a_load_that_draws_what_idle_draws_is_refused(tmp_path: Path) -> None:
    run, published = power_run(counts=(100,), paced_counts=()), BACK_TO_BACK | {"method": "published"}
    run.drop(quantity=(ENERGY, COUNTER, INTEGRAL), **published)
    idle = run.rows[run.select(layer="idle", method="idle", quantity=POWER)]["value"].max()
    run.rows.loc[run.select(quantity=POWER, **published), "value"] = idle
    run.drop(quantity=NET)
    assert refusing(run.write(tmp_path)) == ["load-above-idle"]


def test_without_the_rate_in_the_provenance_nobody_asks_for_it(tmp_path: Path) -> None:
    run = power_run(frame_rate=25.0)
    run.frame_rate = None
    assert refusing(run.write(tmp_path)) == []


@pytest.mark.parametrize("path", sorted(PUBLISHED.glob("*.csv")), ids=lambda path: path.stem)
def test_of_the_published_tables_only_the_voltage_tables_are_refused(path: Path) -> None:
    assert bool(lint_file(path)) == (path in (MISREAD, RELABELLED))


def test_the_first_voltage_table_is_refused_for_both_symptoms() -> None:
    assert refusing(MISREAD) == ["load-above-idle", "identity"]
    assert "13 of 13 powers under load are below idle or equal it" in reason(MISREAD, "load-above-idle")
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


def command(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def test_the_command_tells_each_finding_in_a_line() -> None:
    accepted = command("lint-results", PUBLISHED / "power.csv")
    assert (accepted.exit_code, accepted.stdout) == (0, f"{PUBLISHED / 'power.csv'}: accepted\n")
    refused = command("lint-results", PUBLISHED / "power.csv", MISREAD, RELABELLED)
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
    assert promote(good, tmp_path / "reference", {}).name == "good"
    bad = DEFECTS["load_below_idle"].make().write(tmp_path / "results" / "bad").parent
    with pytest.raises(DataError, match=r"the results linter refuses it \(load-above-idle"):
        promote(bad, tmp_path / "reference", {})
    assert not (tmp_path / "reference" / "bad").exists()


def test_the_record_is_that_of_the_provenance(tmp_path: Path) -> None:
    table = power_run().write(tmp_path)
    record = json.loads(table.with_suffix(".json").read_text())
    record["extra"]["power"]["selftest"]["passed"] = False
    table.with_suffix(".json").write_text(json.dumps(record))
    assert "failed" in reason(table, "power-on-test")
