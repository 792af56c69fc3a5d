"""The report of power: energies taken apart, nothing from a refused or absent sensor, and every gap with its reason."""

import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from committed_runs import BASIS, GPU, PAPER, write, write_run
from frames import build_report, caption, lines, matching

from octopus_study.measure.rows import read_rows
from octopus_study.measure.statistics import mean_interval, t_quantile
from octopus_study.report.claims import read_claims
from octopus_study.report.frame import Frame
from octopus_study.report.outputs import draw, is_synthetic
from octopus_study.report.paper import check_paper
from octopus_study.report.studies import power_shown as power
from octopus_study.report.studies.power import LINTED

sys.path.insert(0, str(Path(__file__).parents[1] / "power"))
from synthetic_power import no_sensor_run, power_run

PLACE = "gpu.power"
FIGURE, TABLES = "power_decomposition", ("power", "power_paced")


def report_of(run, root: Path) -> Path:
    """Build the report of one GPU with this run of power."""
    folder = write_run(root / "reference", GPU, "gpu", only=("power",))
    run.machine = GPU
    run.write(folder)
    return build_report(root / "report", None, root / "reference")


@pytest.fixture(scope="module")
def spoiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report over a GPU whose power lies below its idle, as in the published episode."""
    root = tmp_path_factory.mktemp("spoiled")
    table = write_run(root / "reference", GPU, "gpu", only=("power",)) / "power.csv"
    rows = read_rows(table)
    wrong = (rows["layer"] == "back_to_back") & (rows["quantity"] == "power_mean")
    write(table, rows.assign(value=rows["value"].mask(wrong, 0.15 * rows["value"])))
    return build_report(root / "report", None, root / "reference")


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 12.7062), (4, 2.7764), (9, 2.2622)])
def test_quantiles_are_those_of_the_tables(freedom: int, quantile: float) -> None:
    assert t_quantile(freedom) == pytest.approx(quantile, abs=1e-4)


def test_intervals_of_five_windows_hold_the_truth_in_95_percent() -> None:
    """A percentile bootstrap of five windows would hold it in about 83 %."""
    samples = np.random.default_rng(0).normal(1.0, 0.01, (2000, 5))
    inside = [found.low <= 1.0 <= found.high for found in map(mean_interval, samples)]
    assert np.mean(inside) == pytest.approx(0.95, abs=0.015)


def test_without_a_sensor_there_is_a_reason_and_no_energy(alone: Path) -> None:
    known = Frame.read(alone / "numbers.csv")
    assert power.measured(known) == [] and "shown.power.measured" not in known
    assert known.text("here.power.unavailable").startswith("no power sensor (looked at ")
    expected = "No energy was measured on Intel Xeon (this machine): no power sensor."
    assert known.text("shown.power.energy") == expected
    energies = matching(known, r"here\.power\..*energy.*")
    assert energies and all(math.isnan(number.value) for _, number in energies)
    # Nothing of it rests on the stand-in for real data.
    assert is_synthetic(known, "stage_timing") and not is_synthetic(known, "power")


def test_a_gpu_without_a_sensor_is_not_judged(tmp_path: Path) -> None:
    report = report_of(no_sensor_run(counts=(1000,), device="cuda"), tmp_path)
    judged = {one.claim_id: one for one in read_claims(report / "claims.csv")}
    assert judged["power-saves"].reason == "no power sensor"


def test_a_refused_run_keeps_no_number(spoiled: Path) -> None:
    known = Frame.read(spoiled / "numbers.csv")
    assert power.measured(known) == []
    assert known.text(f"{PLACE}.unavailable").startswith("refused by the results linter")
    numbers = matching(known, rf"{GPU}\.power\..*")
    assert [number for _, number in numbers if number.value == number.value] == []
    judged = [one for one in read_claims(spoiled / "claims.csv") if one.claim_id.startswith("power-")]
    assert {one.verdict for one in judged} == {"not measurable here"}


def test_the_published_tables_are_told_apart(numbers: Frame) -> None:
    wrong, right = "published.derived.power_voltage_misread", "published.derived.power"
    highest = [numbers.value(f"{table}.highest_load_over_idle") for table in (wrong, right)]
    assert highest[0] < 1 < highest[1]
    assert float(numbers.text(f"{wrong}.identity")) < 0.01 < float(numbers.text(f"{right}.identity"))
    energy, time = (numbers.value(f"{wrong}.n1000.{name}_saved") for name in ("energy", "time"))
    assert energy == pytest.approx(time, abs=0.002)
    verdicts = {name: numbers.text(f"published.derived.{name}.linter") for name in LINTED}
    assert verdicts.pop("power") == "accepted"
    assert all(verdict.startswith("refused (") for verdict in verdicts.values())


def test_what_is_too_slow_drifted_or_capped_is_marked(tmp_path: Path) -> None:
    run = power_run(counts=(1000,), paced_counts=(1000,), idle_drift=0.06)
    times = run.rows[run.select(method="octopus", layer="back_to_back", quantity="time_per_frame")]
    held = times.assign(quantity="power_capped", unit="fraction", value=0.6)
    run.rows = pd.concat([run.rows, held], ignore_index=True)
    report = report_of(run, tmp_path)
    assert "idle drifted by" in caption(report, "power")
    assert "one frame takes 54.1 ms" in caption(report, "power_paced")
    assert [cell for row in lines(report, "power") for cell in row if cell.endswith("\u2021")] != []
    draw(FIGURE, report / "numbers.csv", tmp_path / FIGURE)


def test_what_is_missing_is_said_in_every_table(alone: Path, old: Path, spoiled: Path, tmp_path: Path) -> None:
    for folder in (alone, old, spoiled):
        assert all("No energy was measured" in caption(folder, name) for name in TABLES)
    draw(FIGURE, spoiled / "numbers.csv", tmp_path / FIGURE)


def test_a_machine_without_a_sensor_stands_beside_references_without_the_study(make_numbers, tmp_path):
    folder = write_run(tmp_path / "results", "laptop", "cpu", only=("power",))
    reference = write_run(tmp_path / "reference", GPU, "gpu", only=BASIS)
    both = make_numbers(folder, reference.parent)
    assert power.measured(both) == []
    assert both.text("shown.power.energy").startswith("No energy was measured on")
    assert check_paper(PAPER, both) == []
