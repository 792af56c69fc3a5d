"""Frame follow from the rows: medians, paired ratios, slopes, parts of the saving; each has a source."""

import csv
import math
from pathlib import Path

import pytest
from committed_runs import BASIS, CLAIMS, CPU, GPU, PAPER, PUBLISHED, edit_record, write, write_run
from frames import TIME, number

from octopus.errors import InputError
from octopus_study.measure.rows import read_rows
from octopus_study.report.build import build_numbers, numbers_of, vetted
from octopus_study.report.frame import Frame
from octopus_study.report.published import COLUMNS, published_numbers
from octopus_study.report.runs import load_runs
from octopus_study.report.trace import trace

PLACE = f"{GPU}.stage_timing.visdrone.n1000"


def test_a_median_names_its_rows(numbers: Frame) -> None:
    number = numbers[f"{PLACE}.octopus.end_to_end.host"]
    assert number.low < number.value < number.high
    assert number.file.endswith(f"{GPU}/stage_timing.csv")
    assert number.selector == "workload=visdrone, n=1000, quantity=end_to_end, layer=host, method=octopus"


def test_an_unavailable_row_stays_visible(numbers: Frame) -> None:
    key = "cpu.stage_timing.visdrone.n1000.published.upload_metadata.host"
    assert numbers[key].text == "unavailable: the CPU reads the boxes where they are"
    assert numbers.get(key) is None and math.isnan(numbers.value(key))


def test_own_results_stand_beside_the_reference(numbers: Frame) -> None:
    assert numbers.machines("stage_timing") == ["here", GPU, CPU]
    assert numbers["here.stage_timing.visdrone.n1000.octopus.end_to_end.host"].synthetic
    assert not numbers["cpu.stage_timing.visdrone.n1000.octopus.end_to_end.host"].synthetic
    assert numbers.text("gpu.machine.name") == "NVIDIA H200"
    assert "synthetic VisDrone sample" in numbers.text("shown.stage_timing")


def test_an_interval_holds_a_second_run(tmp_path: Path) -> None:
    """Its rows are those of the first, but for Octopus' times, which are three times as long."""
    folder = write_run(tmp_path, GPU, "gpu", only=BASIS)
    once = Frame(numbers_of(vetted(load_runs(None, tmp_path)), PUBLISHED))
    again = write_run(tmp_path / "second", GPU, "gpu", only=BASIS)
    rows = read_rows(again / "stage_timing.csv")
    slow = rows["method"].str.startswith("octopus") & (rows["unit"] == "ms")
    twice = slow & rows["method"].str.endswith("-again")
    value = rows["value"].mask(slow, 3 * rows["value"]).mask(twice, 4 * rows["value"])
    write(again / "stage_timing.csv", rows.assign(value=value))
    edit_record(again / "stage_timing.json", machine__identity__gpu="0123456789ab")
    again.rename(folder / "again")
    (folder / "again" / "distribution.csv").unlink()
    both = Frame(numbers_of(vetted(load_runs(None, tmp_path)), PUBLISHED))
    assert {one.id for one in both} == {one.id for one in once}
    key = f"{PLACE}.octopus.end_to_end.host"
    first, held = once[key], both[key]
    assert (held.value, held.low) == (first.value, first.low) and held.high == pytest.approx(3 * first.high)
    assert held.note.startswith("the interval holds a second run's")
    assert [one._replace(processes=1).of_one_process for one in (first, held)] == [True, False]
    told = "\n".join(trace(key, both, [], PAPER, CLAIMS))
    files = [f"{folder}/{place}stage_timing.csv" for place in ("", "again/")]
    assert f"file:         {' and '.join(files)}\n" in told and told.count("measured at") == 2
    assert f"up to {files[1]}:" in told and f" --force data/results/{GPU}/stage_timing.csv" in told
    floor = f"{key}.noise_floor"
    assert both[floor].value == pytest.approx(1 / 3, rel=0.1) and both[floor].value > once[floor].value
    cards = f"{GPU}.machine.instances"
    assert once.text(cards).startswith("2 cards, ") and both.text(cards).startswith("3 cards, ")
    ratio = f"{PLACE}.octopus.crop_resize_normalize.device.speedup_over_published"
    assert both[ratio].low == pytest.approx(once[ratio].low / 3) and both[ratio].high == once[ratio].high
    verdicts = [(one.text, both.text(one.id)) for one in once if one.machine == GPU and one.derived == "verdict"]
    assert ("faster", "ambiguous") in verdicts
    assert all(text in (before, "ambiguous") for before, text in verdicts)
    assert both[f"{PLACE}.published.end_to_end.host"].interval == once[f"{PLACE}.published.end_to_end.host"].interval


def test_reading_back_gives_the_same_numbers(numbers: Frame, tmp_path: Path) -> None:
    again = Frame.read(numbers.write(tmp_path / "again.csv"))
    assert [repr(number) for number in again] == [repr(number) for number in numbers]


def test_an_unknown_id_names_the_nearest(numbers: Frame) -> None:
    with pytest.raises(InputError, match=r"octopus\.end_to_end\.host"):
        numbers[f"{PLACE}.octopus.end_to_ends.host"]


def test_two_numbers_of_one_id_are_refused() -> None:
    one = number(TIME, "ms", 1.0)
    with pytest.raises(InputError, match="Two numbers"):
        Frame([one, one])


def test_nothing_to_report_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No results to report"):
        build_numbers(tmp_path / "absent", tmp_path / "empty", PUBLISHED, tmp_path / "numbers.csv")


@pytest.mark.parametrize("path", sorted(PUBLISHED.glob("*.csv")), ids=lambda path: path.stem)
def test_every_row_has_a_value_a_unit_and_a_source(path: Path) -> None:
    with open(path, newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            assert row["value"] or row["low"] or row["high"] or row.get("printed")
            assert row["source"][:2] in {"P1", "P2", "P3", "P4"} and row["unit"]


def test_a_table_without_its_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("n,value\n1,2\n")
    with pytest.raises(InputError, match=COLUMNS[0]):
        list(published_numbers(tmp_path))
