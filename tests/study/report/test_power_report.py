"""The report of power: energies taken apart, nothing from a refused or absent sensor, and every gap said aloud."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from frames import build_report, caption, lines, matching
from synthetic_power import NO_SENSOR, no_sensor_run, power_run
from synthetic_runs import BASIS, PAPER, write_run

from octopus_study.power.checks import CHECKS
from octopus_study.report.claims import read_claims
from octopus_study.report.frame import Frame
from octopus_study.report.literals import check_paper
from octopus_study.report.outputs import draw, figures, is_synthetic
from octopus_study.report.paper import build_paper
from octopus_study.report.studies import power_view as power
from octopus_study.report.studies.power_figures import draw_traces
from octopus_study.report.view import View

GPU = "gpu.power"
ONE = f"{GPU}.visdrone.n1000.published.over_n-launches.back_to_back"
FIGURES = ("power_traces", "energy_per_frame", "power_pareto", "power_decomposition")
TABLES = ("power", "power_decomposition", "power_checks", "power_paced")


@pytest.fixture(scope="module")
def spoiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report over a GPU whose power lies below its idle, as in the published episode."""
    root = tmp_path_factory.mktemp("spoiled")
    folder = write_run(root / "reference", "pretended-gpu", "gpu", only=("power",))
    run = power_run(machine="pretended-gpu")
    run.scale(0.15, layer="back_to_back", quantity="power_mean_gpu_board")
    run.write(folder)
    return build_report(root / "report", None, root / "reference")


def test_the_energy_ratio_is_time_times_power(numbers: Frame) -> None:
    time, watts, energy = (numbers[f"{ONE}.{part}"] for part in ("time", "power", "energy"))
    assert energy.value == pytest.approx(time.value * watts.value, rel=1e-6)
    for ratio in (time, watts, energy):
        assert ratio.low < ratio.value < ratio.high
    assert numbers.value(f"{ONE}.energy_saved") == pytest.approx(1 - energy.value)
    assert (
        numbers.value(f"{ONE}.time_saved") == pytest.approx(1 - time.value) != pytest.approx(1 - energy.value)
    )
    assert numbers.value(f"{ONE}.power_added") == pytest.approx(watts.value - 1)
    assert numbers.value(f"{ONE}.longer") == pytest.approx(1 / time.value - 1)
    longer = numbers[f"{ONE}.longer"]
    assert longer.low < longer.value < longer.high
    assert len(numbers.text(f"{ONE}.sentence")) > 10


def test_five_windows_get_no_verdict_of_blocks(numbers: Frame) -> None:
    assert matching(numbers, r".*\.power\..*\.(?:speedup|verdict)_over_.*") == []


def test_windows_are_counted_and_compared(numbers: Frame) -> None:
    assert numbers.value(f"{GPU}.windows_per_arm") == 5
    assert numbers.value(f"{GPU}.counter_agreement") == pytest.approx(0.003, abs=1e-4)
    assert numbers.value(f"{GPU}.least_load_over_idle") > 1
    assert numbers.value(f"{GPU}.window") >= 5
    assert 0.9 < numbers.value(f"{GPU}.sampling_cost") < 1.1
    floors = [
        numbers.value(f"{GPU}.visdrone.n1000.{name}_noise_floor") for name in ("time", "power", "energy")
    ]
    assert all(0 < floor < 0.05 for floor in floors) and len(set(floors)) == 3
    assert numbers.text(f"{GPU}.capped") == "none"


def test_at_a_fixed_rate_idle_is_most_of_the_energy(numbers: Frame) -> None:
    assert numbers.text(f"{GPU}.frame_rate") == "30"
    paced = numbers[f"{GPU}.visdrone.n100.octopus.over_published.paced.energy"]
    assert (
        numbers.value(f"{GPU}.visdrone.n100.octopus.over_published.back_to_back.energy")
        < 0.5
        < paced.value
        <= 1
    )
    assert numbers.value(f"{GPU}.visdrone.n100.octopus.paced_idle_share") > 0.9


def test_the_trace_is_that_of_the_test_and_one_round(numbers: Frame) -> None:
    test, one_round, windows, phases = (
        numbers.series("pretended-gpu", "power", name) for name in ("selftest", "round", "windows", "phases")
    )
    shown = [len(series["watts"]) for series in (test, one_round)]
    assert min(shown) > 100 and sum(shown) < 1000
    assert set(windows["method"]) == {*power.METHODS, "octopus-again"} and set(windows["n"]) == {1000}
    assert phases["phase"] == ["idle", "load", "idle", "load"]
    assert not matching(numbers, r".*\.power\.trace\..*")


def test_without_a_sensor_there_is_a_reason_and_no_energy(alone: Path) -> None:
    known = Frame.read(alone / "numbers.csv")
    assert power.measured(known) == [] and "shown.power.measured" not in known
    assert known.text("here.power.unavailable") == NO_SENSOR
    assert (
        known.text("shown.power.energy")
        == "No energy was measured on Pretended (this machine): no power sensor."
    )
    energies = matching(known, r"here\.power\..*energy.*")
    assert energies and all(math.isnan(number.value) for _, number in energies)
    # Nothing of it rests on the stand-in for real data.
    assert is_synthetic(known, "stage_timing") and not is_synthetic(known, "power")
    judged = {one.claim_id: one for one in read_claims(alone / "claims.csv")}
    assert judged["power-saves"].verdict == "not measurable here"


def test_a_gpu_without_a_sensor_says_so_in_the_claims(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "reference", "pretended-gpu", "gpu", only=("power",))
    no_sensor_run(counts=(1000,), machine="pretended-gpu", device="cuda").write(folder)
    report = build_report(tmp_path / "report", None, tmp_path / "reference")
    judged = {one.claim_id: one for one in read_claims(report / "claims.csv")}
    assert judged["power-saves"].reason == "unavailable: no power sensor"
    assert judged["power-size"].reason == "needs a Jetson Orin Nano"


def test_directions_are_judged_where_energy_was_measured(full: Path) -> None:
    judged = {(one.claim_id, one.scope): one.verdict for one in read_claims(full / "claims.csv")}
    for name in ("power-more", "power-sooner", "power-saves"):
        assert judged[name, "pretended-gpu"] == "reproduced"
        assert judged[name, "pretended-cpu"] == "not measurable here"


PUBLISHED_COUNTS = (50, 100, 200, 500, 1000, 2000, 3000, 5000)


def test_sizes_are_judged_on_the_published_board(tmp_path: Path) -> None:
    """A pretended Jetson whose laws are about the published ones."""
    folder = write_run(tmp_path / "reference", "jetson", "gpu", only=("power",))
    for path in folder.glob("*.json"):
        path.write_text(path.read_text().replace("Pretended GPU", "Orin Nano"))
    run = power_run(
        "module_vdd_in", counts=PUBLISHED_COUNTS, paced_counts=(), again_counts=(1000,), machine="jetson"
    )
    table = run.write(folder)
    record = table.with_suffix(".json")
    record.write_text(record.read_text().replace("Pretended GPU", "Orin Nano"))
    report = build_report(tmp_path / "report", None, tmp_path / "reference")
    judged = {one.claim_id: one for one in read_claims(report / "claims.csv")}
    assert judged["power-idle"].reason == "measured once, without an interval"
    assert judged["power-sooner-size"].verdict == "reproduced"
    for name in ("power-size", "power-saved", "power-ms", "power-mj", "power-mw"):
        assert judged[name].measured.endswith("(8 numbers)"), name


def test_a_refused_run_keeps_no_number(spoiled: Path) -> None:
    known = Frame.read(spoiled / "numbers.csv")
    assert power.measured(known) == []
    assert known.text(f"{GPU}.unavailable").startswith("refused by the results linter")
    finite = [
        number for _, number in matching(known, r"pretended-gpu\.power\..*") if number.value == number.value
    ]
    assert finite == []
    assert "No energy was measured on Pretended GPU: refused by the results linter" in known.text(
        "shown.power.energy"
    )
    assert {
        one.verdict for one in read_claims(spoiled / "claims.csv") if one.claim_id.startswith("power-")
    } == {"not measurable here"}


def test_both_glances_tell_the_published_tables_apart(numbers: Frame) -> None:
    wrong, right = "published.derived.power_voltage_misread", "published.derived.power"
    assert (
        numbers.value(f"{wrong}.highest_load_over_idle")
        < 1
        < numbers.value(f"{right}.highest_load_over_idle")
    )
    assert float(numbers.text(f"{wrong}.identity")) < 0.01 < float(numbers.text(f"{right}.identity"))
    assert numbers.value(f"{wrong}.n1000.energy_saved") == pytest.approx(
        numbers.value(f"{wrong}.n1000.time_saved"), abs=0.002
    )
    assert numbers.value(f"{right}.n1000.energy_saved") < 0.7 * numbers.value(f"{right}.n1000.time_saved")


def test_the_linter_judges_the_published_tables(numbers: Frame) -> None:
    verdicts = {
        name: numbers.text(f"published.derived.{name}.linter")
        for name in ("power_voltage_misread", "power_voltage_relabelled", "power")
    }
    assert verdicts["power"] == "accepted"
    assert verdicts["power_voltage_misread"].startswith("refused (")
    assert verdicts["power_voltage_relabelled"].startswith("refused (")


def test_derived_published_ratios_are_those_of_the_table(numbers: Frame) -> None:
    for n in power.published_counts(numbers):
        prefix = f"published.power.n{n}"
        energies = [numbers.value(f"{prefix}.{method}.energy") for method in ("one-launch", "n-launches")]
        # The printed energies differ from time x power by rounding of the source.
        assert numbers.value(f"published.derived.power.n{n}.energy") == pytest.approx(
            energies[0] / energies[1], rel=0.02
        )


def test_the_table_has_published_and_measured_rows(full: Path, numbers: Frame) -> None:
    rows = {row[0]: row[1:] for row in lines(full, "power")}
    column = next(index for index, cell in enumerate(lines(full, "power")[0][1:]) if cell == "n = 1000")
    assert rows["One launch, energy"][column] == "1728.896 mJ"
    key = power.key(View(numbers, "pretended-gpu", "power"), 1000, "octopus", "energy_per_frame")
    assert rows["Octopus, energy"][column] == numbers.text(key)
    assert any("GPU board, idle" in name for name in rows)
    assert "No energy was measured on Pretended (this machine): no power sensor." in caption(full, "power")


def test_the_ratios_table_has_sentences_and_the_linters_verdict(full: Path, numbers: Frame) -> None:
    table = lines(full, "power_decomposition")
    said = [row for row in table if row[0].startswith("**Jetson")]
    assert len(said) == 2 and "refused" in said[0][0] and "accepted" in said[1][0]
    assert any(row[-1] == numbers.text(f"{ONE}.sentence") for row in table)


def test_every_check_is_in_the_table(full: Path, alone: Path) -> None:
    for folder in (full, alone):
        titles = {row[0] for row in lines(folder, "power_checks")}
        assert {check.title for check in CHECKS} <= titles
    assert any(cell.startswith("passed: ") for row in lines(full, "power_checks") for cell in row)


def test_what_is_too_slow_and_what_drifted_is_lettered(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "reference", "pretended-gpu", "gpu", only=("power",))
    run = power_run(counts=(1000,), paced_counts=(1000,), idle_drift=0.06, machine="pretended-gpu")
    # As the study writes it: an arm without windows has a row of no sensor.
    slow = run.select(layer="paced", method="n-launches", quantity="energy_per_frame_gpu_board")
    run.rows.loc[slow, "quantity"] = "energy_per_frame"
    run.write(folder)
    report = build_report(tmp_path / "report", None, tmp_path / "reference")
    assert "idle drifted by" in caption(report, "power") and "one frame takes 54 ms" in caption(
        report, "power_paced"
    )
    known = Frame.read(report / "numbers.csv")
    assert known.text(f"{GPU}.paced_gaps").startswith("N launches at n = 1000 (one frame takes 54 ms")
    assert (
        known.get(power.key(View(known, "pretended-gpu", "power"), 1000, "octopus", "energy_per_frame_net"))
        is None
    )
    for name in FIGURES:
        draw(name, report / "numbers.csv", tmp_path / name)


def test_windows_at_the_power_limit_are_marked(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "reference", "pretended-gpu", "gpu", only=("power",))
    run = power_run(machine="pretended-gpu")
    chosen = run.select(method="octopus", n=1000, quantity="power_capped")
    run.rows.loc[chosen, "value"] = 0.6
    run.write(folder)
    report = build_report(tmp_path / "report", None, tmp_path / "reference")
    assert Frame.read(report / "numbers.csv").text(f"{GPU}.capped") == "Octopus at n = 1000"
    assert "at the power limit" in caption(report, "power")
    assert [cell for row in lines(report, "power") for cell in row if cell.endswith("\u2021")] != []


@pytest.mark.parametrize("report", ["full", "alone", "old", "spoiled"])
def test_what_is_missing_is_said_in_every_figure_and_table(
    report: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    folder: Path = request.getfixturevalue(report)
    known = Frame.read(folder / "numbers.csv")
    for name in TABLES:
        assert report == "full" or "No energy was measured" in caption(folder, name)
    assert bool(power.figure_note(known)) == (report != "full")
    for name in FIGURES:
        draw(name, folder / "numbers.csv", tmp_path / name)
    if report != "full":
        figure = draw_traces(known)
        assert "No energy was measured" in " ".join(text.get_text() for text in figure.texts).replace(
            "\n", " "
        )


def test_the_paper_is_typeset_over_a_refused_run_and_other_sensors(spoiled: Path, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "reference", "pretended-gpu", "gpu", only=("power",))
    power_run("module_vdd_in", counts=(100,), paced_counts=(), machine="pretended-gpu").write(folder)
    here = write_run(tmp_path / "results", "laptop", "cpu", only=("power",))
    power_run("cpu_package", machine="laptop").write(here)
    other = build_report(tmp_path / "other", here, tmp_path / "reference")
    for report in (other, spoiled):
        folder = tmp_path / report.name / "figures"
        for name in FIGURES:
            pdf, _ = draw(name, report / "numbers.csv", folder / name)
        for name in set(figures()) - set(FIGURES):  # other tests look at these
            shutil.copy(pdf, folder / f"{name}.pdf")
        assert check_paper(PAPER, Frame.read(report / "numbers.csv")) == []
        assert build_paper(PAPER, report, folder, tmp_path / "octopus.pdf").stat().st_size > 100_000


def test_older_references_lack_the_study(
    old: Path, make_numbers: Callable[..., Frame], tmp_path: Path
) -> None:
    known = Frame.read(old / "numbers.csv")
    assert known.machines("power") == [] and "shown.power" not in known
    assert power.note(known) == power.NO_RUN
    # A machine without a sensor beside references without the study.
    folder = write_run(tmp_path / "results", "laptop", "cpu", only=("power",))
    reference = write_run(tmp_path / "reference", "pretended-gpu", "gpu", only=BASIS)
    both = make_numbers(folder, reference.parent)
    assert power.measured(both) == [] and both.text("shown.power.energy").startswith(
        "No energy was measured on"
    )
    assert check_paper(PAPER, both) == []
    shutil.rmtree(reference)
