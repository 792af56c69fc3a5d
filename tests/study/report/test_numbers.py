"""Frame follow from the rows: medians, paired ratios, slopes, parts of the saving; each has a source."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from frames import TIME, number
from synthetic_runs import PUBLISHED

from octopus.errors import InputError
from octopus_study.measure.rows import read_rows
from octopus_study.report.build import build_numbers
from octopus_study.report.frame import Frame

GPU = "pretended-gpu.stage_timing.visdrone.n1000"


def gpu_values(runs: Path, quantity: str, layer: str, method: str) -> np.ndarray:
    rows = read_rows(runs / "reference" / "pretended-gpu" / "stage_timing.csv")
    wanted = (rows["workload"] == "visdrone") & (rows["n"] == 1000) & (rows["quantity"] == quantity)
    chosen = rows[wanted & (rows["layer"] == layer) & (rows["method"] == method)]
    return chosen.sort_values("block")["value"].to_numpy()


def test_a_median_is_that_of_its_rows_and_names_them(runs: Path, numbers: Frame) -> None:
    number = numbers[f"{GPU}.octopus.end_to_end.host"]
    assert number.value == np.median(gpu_values(runs, "end_to_end", "host", "octopus"))
    assert number.low < number.value < number.high
    assert number.file.endswith("pretended-gpu/stage_timing.csv")
    assert number.selector == "workload=visdrone, n=1000, quantity=end_to_end, layer=host, method=octopus"


def test_a_speedup_is_paired_per_block(runs: Path, numbers: Frame) -> None:
    ratios = gpu_values(runs, "end_to_end", "host", "published") / gpu_values(runs, "end_to_end", "host", "octopus")
    number = numbers[f"{GPU}.octopus.end_to_end.host.speedup_over_published"]
    assert number.value == pytest.approx(np.median(ratios), rel=1e-12)
    # The noise that a block shares cancels: the interval is narrower than that of either time.
    time = numbers[f"{GPU}.octopus.end_to_end.host"]
    assert (number.high - number.low) / number.value < (time.high - time.low) / time.value
    assert numbers.text(f"{GPU}.octopus.end_to_end.host.verdict_over_published") == "faster"


def test_layers_never_share_a_number(numbers: Frame) -> None:
    assert f"{GPU}.octopus.crop_resize_normalize.device" in numbers
    assert f"{GPU}.octopus.crop_resize_normalize.device_hot" in numbers
    assert f"{GPU}.octopus.crop_resize_normalize.host" not in numbers


def test_an_unavailable_row_stays_visible(numbers: Frame) -> None:
    key = "pretended-cpu.stage_timing.visdrone.n1000.published.upload_metadata.host"
    assert numbers[key].text == "unavailable: the CPU reads the boxes where they are"
    assert numbers.get(key) is None and math.isnan(numbers.value(key))


def test_own_results_stand_beside_the_reference(numbers: Frame) -> None:
    assert numbers.machines("stage_timing") == ["here", "pretended-gpu", "pretended-cpu"]
    assert numbers["here.stage_timing.visdrone.n1000.octopus.end_to_end.host"].synthetic
    assert not numbers["cpu.stage_timing.visdrone.n1000.octopus.end_to_end.host"].synthetic
    assert numbers.text("gpu.machine.name") == "Pretended GPU"
    assert "synthetic VisDrone sample" in numbers.text("shown.stage_timing")


def test_reading_back_gives_the_same_numbers(numbers: Frame, tmp_path: Path) -> None:
    again = Frame.read(numbers.write(tmp_path / "again.csv"))
    assert [repr(number) for number in again] == [repr(number) for number in numbers]


def test_an_unknown_id_names_the_nearest(numbers: Frame) -> None:
    with pytest.raises(InputError, match=r"octopus\.end_to_end\.host"):
        numbers[f"{GPU}.octopus.end_to_ends.host"]


def test_two_numbers_of_one_id_are_refused() -> None:
    one = number(TIME, "ms", 1.0)
    with pytest.raises(InputError, match="Two numbers"):
        Frame([one, one])


def test_nothing_to_report_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No results to report"):
        build_numbers(tmp_path / "absent", tmp_path / "empty", PUBLISHED, tmp_path / "numbers.csv")
