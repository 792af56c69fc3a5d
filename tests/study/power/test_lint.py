"""The results linter: whole runs pass, one rule alone catches each defect, and both voltage tables are refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from defects import BACK_TO_BACK, COUNTER, DEFECTS, ENERGY, IDLE, INTEGRAL, NET, POWER, constant_power, high, published
from synthetic_power import METHODS, PowerRun, no_sensor_run, power_run
from typer.testing import CliRunner

from octopus_study.cli.commands import app
from octopus_study.errors import DataError, MeasureError
from octopus_study.measure.rows import validate_rows
from octopus_study.power import lint
from octopus_study.power.lint import LINTS, lint_file
from octopus_study.report.add_reference import add_reference

ROOT = Path(__file__).parents[3]
PUBLISHED = ROOT / "data" / "published"
REFERENCES = sorted((ROOT / "data" / "reference").glob("*/*.csv"))
MISREAD, RELABELLED = PUBLISHED / "power_voltage_misread.csv", PUBLISHED / "power_voltage_relabelled.csv"


def refusing(path: Path) -> list[str]:
    return [finding.check for finding in lint_file(path)]


WHOLE = {"counts": (50, 500, 5000), "paced_counts": (50, 5000), "again_counts": (500,)}
HEALTHY = {
    "a board": lambda: power_run("gpu_board", **WHOLE),
    "a module": lambda: power_run("module_vdd_in", **WHOLE),
    "without a sensor": no_sensor_run,
    "idle that drifted, without net energies": lambda: power_run(idle_drift=0.08, watts=high),
    "hardly above idle at a fixed rate": lambda: power_run(watts=lambda method, n: 126.0 + METHODS.index(method)),
    "equal powers after a passed test": lambda: power_run(watts=300.0),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_run_is_accepted(name: str, tmp_path: Path) -> None:
    table = HEALTHY[name]().write(tmp_path)
    validate_rows(table)
    assert lint_file(table) == []


def test_equal_powers_without_a_test_are_a_constant_times_time(tmp_path: Path) -> None:
    run = power_run(watts=300.0)
    run.power["selftest"] = None
    assert refusing(run.write(tmp_path)) == ["power-on-test", "identity"]


def test_every_committed_reference_is_accepted() -> None:
    assert {path: findings for path in REFERENCES if (findings := lint_file(path))} == {}


@pytest.mark.parametrize("name", DEFECTS)
def test_one_rule_alone_catches_the_defect(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    defect = DEFECTS[name]
    table = defect.run().write(tmp_path)
    assert refusing(table) == [defect.check], lint_file(table)
    monkeypatch.setitem(LINTS, defect.check, lambda table: "")
    # Without a scope or a record it is unknown what the numbers are those of.
    assert defect.check == "scope" or name == "no record" or lint_file(table) == []


def momentary_run(layer: str, factor: float) -> PowerRun:
    """Return a run whose trace misses the mean of some windows, while the driver's own mean was integrated."""
    run = power_run()
    run.power["source"] |= {"power": "field value POWER_INSTANT", "integrated": "nvmlDeviceGetPowerUsage"}
    run.scale(factor, (POWER, ENERGY, COUNTER, INTEGRAL), layer=layer, method="published")
    run.drop(quantity=NET)
    return run


def counted_run(layer: str, factor: float) -> PowerRun:
    """Return a run of a board with a counter and a power of the moment alone: paced windows are counted only."""
    run = power_run()
    run.power["source"] |= {"power": "nvmlDeviceGetPowerUsage", "integrated": "nvmlDeviceGetPowerUsage"}
    run.drop(layer="paced", quantity=INTEGRAL)
    run.drop(quantity=NET)
    if layer == "back_to_back":
        run.drop(layer=layer, method="published", quantity=INTEGRAL)
    run.scale(factor, (POWER, ENERGY, COUNTER), layer=layer, method="published")
    return run


@pytest.mark.parametrize(("make", "layer", "factor", "checks"), [
    (momentary_run, "paced", 1.15, []), (momentary_run, "back_to_back", 1.04, []),
    (momentary_run, "back_to_back", 1.08, ["trace-agrees"]),
    (counted_run, "paced", 1.15, []), (counted_run, "back_to_back", 1.04, []),
    (counted_run, "back_to_back", 1.08, ["trace-agrees"]),
])  # fmt: skip
def test_readings_of_the_moment_check_steady_work_alone(make, layer, factor, checks, tmp_path):
    assert refusing(make(layer, factor).write(tmp_path)) == checks


def test_a_load_that_draws_what_idle_draws_is_refused(tmp_path: Path) -> None:
    run, published = power_run(counts=(100,), paced_counts=()), BACK_TO_BACK | {"method": "published"}
    run.drop(quantity=(ENERGY, COUNTER, INTEGRAL), **published)
    run.put("value", run.rows[run.select(**IDLE, quantity=POWER)]["value"].max(), quantity=POWER, **published)
    run.drop(quantity=NET)
    assert refusing(run.write(tmp_path)) == ["load-above-idle"]


def test_without_the_rate_in_the_provenance_it_is_not_asked_for(tmp_path: Path) -> None:
    run = power_run(frame_rate=29.0)
    run.frame_rate = None
    assert refusing(run.write(tmp_path)) == []


@pytest.mark.parametrize("path", sorted(PUBLISHED.glob("*.csv")), ids=lambda path: path.stem)
def test_of_the_published_tables_only_the_voltage_tables_are_refused(path: Path) -> None:
    expected = {MISREAD: ["load-above-idle", "identity"], RELABELLED: ["load-above-idle"]}
    assert refusing(path) == expected.get(path, [])


def test_the_table_of_volts_times_amperes_is_far_from_both_symptoms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its powers' ratios deviate by 0.012 over eight counts: a linter only a little stricter would refuse it."""
    table = lint.read_table(PUBLISHED / "power.csv")
    deviation = np.std(list(lint.log_ratios(table.arms)), ddof=1)
    assert 0.011 < deviation < 0.013
    assert table.loads["low"].min() > 1.3 * table.idle["high"].max()
    monkeypatch.setattr(lint, "LEAST_DEVIATION", 0.013)
    assert refusing(PUBLISHED / "power.csv") == ["identity"]


TIMES = [(10, "a", "time", 10, "ms"), (10, "a", "power", 8, "W"), (10, "a", "energy", 90, "mJ")]


@pytest.mark.parametrize(("rows", "checks"), [
    (constant_power(("a", "b"), (1, 2, 3, 4)), ["identity"]),
    (constant_power(("a", "b"), (1, 2, 3)), []),
    (constant_power(("a", "b", "c"), (1, 2)), ["identity"]),
    (constant_power(("a",), (1, 2, 3, 4, 5)), ["identity"]),
    (constant_power(("a", "a-again"), (1, 2, 3, 4)), []),
    (TIMES, ["power-times-time"]),
    ([(1, "a", "power", 4913, "mV")], ["typed-units"]),
    ([(1, "a", "energy", 4913, "W")], ["typed-units"]),
    ([(1, "a", "power", 12, "percent")], ["typed-units"]),
    ([(1, "a", "power", 8000, "W")], ["plausible-range"]),
])  # fmt: skip
def test_a_published_table_is_judged_by_itself(rows: list[tuple], checks: list[str], tmp_path: Path) -> None:
    assert refusing(published(rows, tmp_path)) == checks


def test_what_is_no_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="no table"):
        lint_file(tmp_path / "power.csv")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(MeasureError, match="columns"):
        lint_file(tmp_path / "other.csv")
    run = power_run()
    run.rows = pd.concat([run.rows, run.rows.head(1)])
    with pytest.raises(MeasureError, match="repeats rows"):
        lint_file(run.write(tmp_path))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"extra": null}', '{"extra": {"power": null}}'])
def test_a_record_that_cannot_be_read_is_none(content: str, tmp_path: Path) -> None:
    table = power_run().write(tmp_path)
    table.with_suffix(".json").write_text(content)
    assert refusing(table)[0] == "power-on-test"


def test_the_command_tells_each_finding_in_a_line() -> None:
    result = CliRunner().invoke(app, ["lint-results", *map(str, (PUBLISHED / "power.csv", MISREAD, RELABELLED))])
    assert result.exit_code == 1
    found = [line.partition(": ")[2].partition(": ")[0] for line in result.stdout.splitlines()]
    assert found == ["accepted", "load-above-idle", "identity", "load-above-idle"]


def test_a_run_that_the_linter_refuses_becomes_no_reference(tmp_path: Path) -> None:
    good = power_run().write(tmp_path / "results" / "good").parent
    assert add_reference(good, tmp_path / "reference", {}).name == "good"
    bad = DEFECTS["load below idle"].run().write(tmp_path / "results" / "bad").parent
    with pytest.raises(DataError, match=r"the results linter refuses it \(load-above-idle"):
        add_reference(bad, tmp_path / "reference", {})
    assert not (tmp_path / "reference" / "bad").exists()
