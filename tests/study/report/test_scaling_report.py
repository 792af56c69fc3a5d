"""The report of several GPUs: shares of linear, rates, the spread, and what one GPU can't say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from frames import build_report, caption, lines
from synthetic_runs import timed, write_run
from synthetic_scaling import BLOCK, SLOWEST, WORKS, linear, scaling

from octopus_study.measure.rows import write_rows
from octopus_study.report.claims import read_claims
from octopus_study.report.frame import Frame
from octopus_study.report.studies import scaling as report

Once = Callable[[str, Callable[[Path], object]], Path]
CLAIMS = ("own-scaling-crops-linear", "own-scaling-upload", "own-scaling-spread")


def of_gpus(visible: int) -> Callable[[Path], object]:
    """Write a report of a pretended machine with so many GPUs."""

    def fill(root: Path) -> None:
        from synthetic_runs import sign

        folder = write_run(root / "reference", "pretended-gpu", "gpu", only=("scaling",))
        write_rows(folder / "scaling.csv", list(scaling("gpu", "visdrone-val", timed, visible)))
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


def test_a_figure_has_a_line_per_way_and_quantity(numbers: Frame) -> None:
    axes = report.draw(numbers).axes
    shown = [[line.get_label() for line in axis.containers] for axis in axes]
    assert [len(labels) for labels in shown] == [8, 8, 2]
    assert list(axes[0].get_xticks()) == [2, 4]
    shares = axes[0].containers[0].lines[0].get_ydata()
    assert np.allclose(shares, [linear("processes", "resident", count) for count in (2, 4)], rtol=0.01)
