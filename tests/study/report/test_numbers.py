"""Frame follow from the rows: medians, paired ratios, slopes, parts of the saving; each has a source."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from frames import TIME, number
from synthetic_runs import CPU_LAUNCH_US, GPU_LAUNCH_US, LAWS, PUBLISHED

from octopus.errors import InputError
from octopus_study.measure.rows import read_rows
from octopus_study.report.build import build_numbers
from octopus_study.report.frame import Frame
from octopus_study.report.machines import fact
from octopus_study.report.tables.cells import bound_text

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
    ratios = gpu_values(runs, "end_to_end", "host", "published") / gpu_values(
        runs, "end_to_end", "host", "octopus"
    )
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


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        ("pretended-gpu.stage_timing.launch-overhead.cuda-core-launch.slope", GPU_LAUNCH_US),
        ("pretended-cpu.stage_timing.launch-overhead.kernel-call.slope", CPU_LAUNCH_US),
    ],
)
def test_the_slope_finds_the_cost_of_a_launch(numbers: Frame, identifier: str, expected: float) -> None:
    assert numbers.value(identifier) == pytest.approx(expected, rel=0.02)


def test_a_slope_explains_only_the_saving_of_its_own_launches(numbers: Frame) -> None:
    law = LAWS["gpu"]
    saving = {
        "launches": ("n-launches", "published", 2 * 999 * 31.0),
        "launches-fused": ("n-launches-fused", "octopus", 999 * GPU_LAUNCH_US),
    }
    for name, (slower, faster, launching) in saving.items():
        saved = sum(sign * (law[m][0] * 1000 + law[m][1]) for sign, m in ((1, slower), (-1, faster)))
        share = numbers[f"{GPU}.saving.{name}.explained"]
        assert share.value == pytest.approx(launching / 1000 / saved, rel=0.05)
        assert share.low < share.value < share.high


def test_time_over_bound_time_and_the_share_of_the_bound(numbers: Frame) -> None:
    key = f"{GPU}.published.crop_resize_normalize.device"
    times = numbers.value(f"{key}.times_write-bound")
    assert times == pytest.approx(LAWS["gpu"]["published"][0] * 1000 / 0.131 + 0.1 / 0.131, rel=0.02)
    assert bound_text(numbers, numbers[key].key).endswith(f"({100 / times:.2f} %)")
    assert numbers.value(f"{key}.share_of_write-bound") == pytest.approx(1 / times)


def test_a_kernel_version_is_major_and_minor() -> None:
    assert fact({"os": "Debian 12, Linux 6.18.44-fc-v669"}, "os") == "Debian 12, Linux 6.18"


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


def test_published_values_keep_their_printed_digits(numbers: Frame) -> None:
    assert numbers.text("published.stage_timing.n1000.published.build_metadata") == "1.000 ms"
    assert numbers.text("published.auto_tuner.all.tuner.probe_time") == "≤ 50 ms"
    bound = numbers["published.derived.jetson-orin-nano.n1000.times_write_bound"]
    assert bound.value == pytest.approx((172.165 + 26.519) / (3 * 224 * 224 * 4 * 1000 / 102e9 * 1e3))


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
