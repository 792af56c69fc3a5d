"""The committed energies: complete, of a sensor that was seen to work, above idle, and by two ways the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from octopus_study.measure import read_rows
from octopus_study.power.lint import lint_file

REFERENCE = Path(__file__).parents[3] / "data" / "reference"
FILES = sorted(REFERENCE.glob("*/power.csv"))
COUNTS = [50, 100, 200, 500, 1000, 2000, 3000, 5000]
METHODS = ["octopus", "published", "n-launches"]


def record(path: Path) -> dict:
    return json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


MEASURED = [path for path in FILES if record(path)["extra"]["power"]["sensor"]]
SILENT = [path for path in FILES if path not in MEASURED]


def named(path: Path) -> str:
    return path.parent.name


def windows(path: Path, layer: str = "back_to_back"):
    """Values by n, method and block, one column per quantity."""
    rows = read_rows(path)
    chosen = rows[(rows.layer == layer) & rows.value.notna()]
    return chosen.pivot_table(index=["n", "method", "block"], columns="quantity", values="value")


def test_a_machine_with_a_sensor_and_one_without_are_there():
    assert MEASURED
    assert SILENT


@pytest.mark.parametrize("path", FILES, ids=named)
def test_the_linter_accepts_it(path):
    assert lint_file(path) == []


@pytest.mark.parametrize("path", MEASURED, ids=named)
def test_every_count_and_method_has_five_windows_of_five_seconds(path):
    found = windows(path)
    scope = record(path)["extra"]["power"]["scope"]
    for count in COUNTS:
        for method in METHODS:
            arm = found.loc[(count, method)]
            assert arm[f"energy_per_frame_{scope}"].notna().sum() >= 5
            assert arm["window"].min() >= 5
    assert (1000, "octopus-again") in {index[:2] for index in found.index}


@pytest.mark.parametrize("path", MEASURED, ids=named)
@pytest.mark.parametrize("layer", ["back_to_back", "paced"])
def test_load_is_above_idle_and_counter_and_integral_agree_in_every_window(path, layer):
    found, idle = windows(path, layer), windows(path, "idle")
    scope = record(path)["extra"]["power"]["scope"]
    power = f"power_mean_{scope}"
    for count in found.index.unique("n"):
        loads = found.loc[count][power].dropna()
        assert loads.min() >= idle.loc[(count, "idle")][power].max() * (0.99 if layer == "paced" else 1)
    columns = [f"window_energy_{way}_{scope}" for way in ("counter", "integral")]
    if set(columns) <= set(found.columns):
        both = found[columns].dropna()
        assert len(both)
        assert ((both[columns[0]] / both[columns[1]] - 1).abs() <= 0.05).all()


@pytest.mark.parametrize("path", MEASURED, ids=named)
def test_the_power_on_test_was_passed_by_the_same_sensor(path):
    power = record(path)["extra"]["power"]
    assert power["selftest"]["passed"] is True
    assert power["selftest"]["scope"] == power["scope"]
    assert {check["outcome"] for check in power["selftest"]["checks"]} <= {"passed", "not applicable"}


@pytest.mark.parametrize("path", SILENT, ids=named)
def test_a_machine_without_sensor_says_what_was_looked_at_and_has_no_number(path):
    rows = read_rows(path)
    assert rows.value.isna().all()
    assert rows.answer.str.startswith("unavailable: no power sensor (looked at ").all()
    assert set(rows.n) == set(COUNTS)
