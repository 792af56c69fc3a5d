"""The report of several GPUs: shares of linear, rates, the spread, and what one GPU can't say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import synthetic_scaling
from frames import build_report, caption, lines
from synthetic_runs import sign, write_run
from synthetic_scaling import BLOCK, SLOWEST, WORKS, linear, predicted, scaling

from octopus_study.measure.rows import write_rows
from octopus_study.names import SCALING
from octopus_study.report.claims import read_claims
from octopus_study.report.frame import Frame
from octopus_study.report.studies import scaling as report

Once = Callable[[str, Callable[[Path], object]], Path]
CLAIMS = ("own-scaling-crops-linear", "own-scaling-upload", "own-scaling-spread", "own-scaling-model")


def of_gpus(visible: int) -> Callable[[Path], object]:
    """Write a report of a pretended machine with so many GPUs."""

    def fill(root: Path) -> None:
        folder = write_run(root / "reference", "pretended-gpu", "gpu", only=("scaling",))
        write_rows(folder / "scaling.csv", list(scaling("gpu", "visdrone-val", visible)))
        sign(folder / "scaling.csv")
        build_report(root / "report", None, root / "reference")

    return fill


@pytest.fixture(scope="module")
def report_of(once: Once) -> Callable[[int], Path]:
    return lambda visible: once(f"scaling-{visible}", of_gpus(visible)) / "report"


@pytest.mark.parametrize("way", ["processes", "threads"])
@pytest.mark.parametrize("data", ["resident", "uploaded"])
@pytest.mark.parametrize("kind", ["weak", "strong"])
@pytest.mark.parametrize("visible", [2, 4])
def test_shares_of_linear_are_those_of_the_rates(report_of, visible, kind, data, way) -> None:
    numbers = Frame.read(report_of(visible) / "numbers.csv")
    place = f"gpu.scaling.crops.n{WORKS['crops']}"
    gpus = [count for count in (2, 4) if count <= visible]
    for count in gpus:
        share = numbers[f"{place}.{way}-{count}.{kind}_{data}.host.share_of_linear"]
        assert share.value == pytest.approx(linear(way, data, count), rel=0.01)
        assert share.low < share.value < share.high and share.blocks >= 20
        one, all_of = (numbers[f"{place}.{way}-{n}.{kind}_{data}.host.rate"] for n in (1, count))
        assert all_of.value / (count * one.value) == pytest.approx(share.value, rel=0.01)
        assert all_of.low < all_of.value < all_of.high
    most = numbers[f"{place}.{way}.{kind}_{data}.host.share_of_linear"]
    assert most.value == share.value and most.note.startswith(f"of {visible} GPUs; ")
    assert f"{place}.{way}-1.{kind}_{data}.host.share_of_linear" not in numbers


def test_rates_are_items_a_second_and_copies_gigabytes(report_of) -> None:
    numbers = Frame.read(report_of(2) / "numbers.csv")
    crops = numbers[f"gpu.scaling.crops.n{WORKS['crops']}.threads-1.strong_resident.host.rate"]
    assert (crops.unit, crops.value) == (
        "1/s",
        pytest.approx(1000 * WORKS["crops"] / BLOCK["resident"], rel=0.02),
    )
    copies = numbers[f"gpu.scaling.copies.n{WORKS['copies']}.processes-1.weak_uploaded.host.rate"]
    seconds = BLOCK["uploaded"] / 1000
    assert (copies.unit, copies.value) == (
        "GB/s",
        pytest.approx(WORKS["copies"] * 2**20 / 1e9 / seconds, rel=0.02),
    )


def test_the_spread_is_of_the_slowest_over_the_fastest(report_of) -> None:
    numbers = Frame.read(report_of(4) / "numbers.csv")
    spread = numbers[f"gpu.scaling.images.n{WORKS['images']}.alone.host.spread"]
    assert spread.value == pytest.approx(SLOWEST, rel=0.01) and "gpu-3 / gpu-" in spread.note


def test_one_gpu_has_rates_and_reasons(report_of) -> None:
    folder = report_of(1)
    numbers = Frame.read(folder / "numbers.csv")
    place = f"gpu.scaling.crops.n{WORKS['crops']}"
    for name in ("processes.weak_resident.host.share_of_linear", "alone.host.spread"):
        assert numbers[f"{place}.{name}"].text == "unavailable: one GPU is visible"
    assert numbers.get(f"{place}.processes-1.weak_resident.host.rate")
    verdicts = {one.claim_id: one for one in read_claims(folder / "claims.csv")}
    for claim in CLAIMS:
        assert verdicts[claim].verdict == "not measurable here"
        assert "one GPU is visible" in verdicts[claim].reason
    rows = lines(folder, "scaling_gpus")
    assert ["**2, 4, 8 GPUs: one GPU is visible**"] in [row[:1] for row in rows]
    assert {
        row[1] for row in rows if len(row) > 1 and row[0] in ("Crops, weak", "Copies alone, weak, uploaded")
    } == {"1"}
    words = [text.get_text() for text in report.draw(numbers).texts]
    assert " ".join(words).replace("\n", " ") == report.ONE


def test_a_gpu_that_failed_is_no_fewer_gpus(tmp_path: Path) -> None:
    """Shares of linear and the spread are of all GPUs of a host, or say which one failed."""
    folder = write_run(tmp_path / "reference", "pretended-gpu", "gpu", only=("scaling",))
    why = "unavailable: GPU 3: CUDAError: out of memory"
    rows = [
        row._replace(value=None, block=0, answer=why) if row.method in ("processes-4", "gpu-3") else row
        for row in scaling("gpu", "visdrone-val", 4)
    ]
    write_rows(folder / "scaling.csv", list(dict.fromkeys(rows)))
    record = json.loads((folder / "scaling.json").read_text())
    record["extra"]["gpus"] = ["NVIDIA H200"] * 4
    (folder / "scaling.json").write_text(json.dumps(record))
    sign(folder / "scaling.csv")
    build_report(tmp_path / "report", None, tmp_path / "reference")
    numbers = Frame.read(tmp_path / "report" / "numbers.csv")
    place = f"gpu.scaling.crops.n{WORKS['crops']}"
    assert numbers.text(f"{place}.processes.weak_resident.host.share_of_linear") == why
    assert numbers[f"{place}.processes-2.weak_resident.host.share_of_linear"].known
    assert numbers[f"{place}.threads.weak_resident.host.share_of_linear"].note.startswith("of 4 GPUs; ")
    assert numbers.text(f"{place}.alone.host.spread") == why


def test_claims_and_table_of_four_gpus(full: Path, numbers: Frame) -> None:
    verdicts = {(one.claim_id, one.scope): one.verdict for one in read_claims(full / "claims.csv")}
    expected = {"own-scaling-crops-linear": linear("processes", "resident", 4) >= 0.95}
    expected |= {
        "own-scaling-upload": linear("processes", "uploaded", 4) >= 0.9,
        "own-scaling-spread": SLOWEST <= 1.05,
    }
    for claim, holds in expected.items():
        assert verdicts[claim, "pretended-gpu"] == ("reproduced" if holds else "not reproduced")
        assert verdicts[claim, "pretended-cpu"] == "not measurable here"
    rows = {tuple(row[:2]): row for row in lines(full, "scaling_gpus") if len(row) > 2}
    row = rows["Ragged images, strong, uploaded", "4"]
    key = f"gpu.scaling.images.n{WORKS['images']}.threads-4.strong_uploaded.host"
    assert row[5] == numbers.text(key) and row[6] == numbers.text(f"{key}.rate")
    assert row[7].startswith(numbers.text(f"{key}.share_of_linear").split()[0])
    assert rows["Crops, weak", "1"][4] == "\u2013" and ("Crops, weak", "8") not in rows
    assert "share of linear" in caption(full, "scaling_gpus")


def test_the_figure_names_the_machines_that_it_draws(numbers: Frame) -> None:
    footer = report.REPORT.figures["scaling_gpus"].footer(numbers)
    assert footer == f"Measured on: {numbers.text('shown.scaling.several')}." and "Pretended GPU" in footer


def test_a_figure_has_a_line_per_way_and_quantity(numbers: Frame) -> None:
    axes = report.draw(numbers).axes
    shown = [[line.get_label() for line in axis.containers] for axis in axes]
    assert [len(labels) for labels in shown] == [8, 8, 2]
    assert [label.get_text() for label in axes[0].get_xticklabels()] == ["2", "4"]
    places = [line.lines[0].get_xdata().tolist() for line in axes[0].containers]
    assert len({place for line in places for place in line}) == 16  # none hides another
    shares = axes[0].containers[0].lines[0].get_ydata()
    assert np.allclose(shares, [linear("processes", "resident", count) for count in (2, 4)], rtol=0.01)


@pytest.mark.parametrize("quantity", SCALING)
def test_several_gpus_are_predicted_from_one_and_from_copies(report_of, quantity: str) -> None:
    folder = report_of(4)
    numbers, rows = Frame.read(folder / "numbers.csv"), lines(folder, "scaling_model")
    of_way = f"gpu.scaling.images.n{WORKS['images']}.processes"
    ratios = []
    for count in (2, 4):
        key = f"{of_way}-{count}.{quantity}.host"
        time, ratio = numbers[f"{key}.predicted"], numbers[f"{key}.predicted_over_measured"]
        assert time.value == pytest.approx(predicted(quantity, count), rel=0.02)
        assert time.low < time.value < time.high and "of one process" in time.note
        assert ratio.value == pytest.approx(time.value / numbers.value(key))
        assert ratio.low < ratio.value < ratio.high and ratio.blocks >= 20
        row = next(row for row in rows if row[:2] == [f"Ragged images, {SCALING[quantity]}", str(count)])
        assert row[2].split()[0] == time.text.split()[0] and row[4].split()[0] == ratio.text
        ratios.append(ratio)
    worst = numbers[f"{of_way}.{quantity}.host.predicted_over_measured"]
    assert worst.value == max(ratios, key=lambda one: abs(np.log(one.value))).value
    assert f"{of_way}-1.{quantity}.host.predicted" not in numbers


@pytest.mark.parametrize(("left", "verdict"), [(0.97, "reproduced"), (0.6, "not reproduced")])
def test_a_wrong_prediction_fails_its_claim(monkeypatch, tmp_path: Path, left: float, verdict: str) -> None:
    """Work on data that is there slows down with each GPU, and nothing that the model knows says so."""
    monkeypatch.setitem(synthetic_scaling.LEFT, ("processes", "resident"), left)
    monkeypatch.setitem(synthetic_scaling.LEFT, ("processes", "uploaded"), 0.99)
    of_gpus(4)(tmp_path)
    verdicts = {one.claim_id: one for one in read_claims(tmp_path / "report" / "claims.csv")}
    assert verdicts["own-scaling-model"].verdict == verdict


def test_without_copies_nothing_uploaded_is_predicted(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "reference", "pretended-gpu", "gpu", only=("scaling",))
    rows = [row for row in scaling("gpu", "visdrone-val") if row.workload != "copies"]
    write_rows(folder / "scaling.csv", rows)
    sign(folder / "scaling.csv")
    build_report(tmp_path / "report", None, tmp_path / "reference")
    numbers = Frame.read(tmp_path / "report" / "numbers.csv")
    place = f"gpu.scaling.crops.n{WORKS['crops']}.processes"
    lacking = numbers[f"{place}.weak_uploaded.host.predicted_over_measured"]
    assert lacking.text == "unavailable: one GPU or copies alone were not timed"
    assert numbers.get(f"{place}.weak_resident.host.predicted_over_measured")
