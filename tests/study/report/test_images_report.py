"""The report of images of any size: shares of the roof, speed-ups over who gives the same answer, and claims."""

from __future__ import annotations

from pathlib import Path

import pytest
from frames import SOURCE, lines, number, text
from matplotlib.axes import Axes
from matplotlib.text import Text
from synthetic_images import BATCHES, OTHERS, OWNERS, SHARE

from octopus_study.names import IMAGE_BATCHES
from octopus_study.report.charts import style
from octopus_study.report.claims import read_claims
from octopus_study.report.frame import Frame, Key, make_number
from octopus_study.report.studies import images
from octopus_study.studies.images import workloads


@pytest.mark.parametrize("method", ["octopus", "octopus-bf16"])
@pytest.mark.parametrize("batch", BATCHES)
def test_the_roof_is_the_longer_of_filling_and_copying(method: str, batch: str, numbers: Frame) -> None:
    share = numbers[f"gpu.images.{batch}.n{BATCHES[batch][0]}.{method}.kernel.device.share_of_roof"]
    assert share.value == pytest.approx(SHARE, rel=0.01) and share.low <= share.value <= share.high
    assert "copy-bound" in share.selector and "write-bound" in share.selector


def test_pillow_is_compared_with_octopus_that_rounds_as_it_does(numbers: Frame) -> None:
    key = "cpu.images.large.n4.{}.end_to_end.host.speedup_over_pillow"
    assert numbers.value(key.format("octopus")) == pytest.approx(OTHERS["cpu"]["pillow"], rel=0.02)
    assert numbers.value(key.format("octopus-pillow")) == pytest.approx(
        OTHERS["cpu"]["pillow"] / 1.1, rel=0.02
    )


@pytest.mark.parametrize("other", sorted(OWNERS.keys() - {"block-search"}))
def test_who_owns_a_tile_is_compared_with_block_search(other: str, numbers: Frame, full: Path) -> None:
    key = "gpu.images.small.n256.block-search.{}.speedup_over_" + other
    for layer in ("kernel.device", "end_to_end.host"):
        assert numbers.value(key.format(layer)) == pytest.approx(OWNERS[other], rel=0.02)
    rows = [row for row in lines(full, "images_owners") if row[0].startswith("256 of 64")]
    assert [row[0].rpartition(", ")[2] for row in rows] == ["kernel", "whole way"]
    assert all(
        float(row[6].rstrip("\u00d7")) == pytest.approx(OWNERS["launch-per-image"], rel=0.02) for row in rows
    )
    assert [row[7:] for row in rows] == [["1.00 MiB", "64.0 KiB", "16.0 KiB"]] * 2


def test_tables_have_their_own_kind_of_machine_and_say_what_is_missing(full: Path) -> None:
    kernels, gpu, cpu = (lines(full, name) for name in ("images_kernel", "images", "images_cpu"))
    assert any(row[6:] == ["1", "1996"] for row in kernels)
    assert len([row for row in gpu if row[0].endswith("rows")]) == 4
    assert any("20.0\u00d7" in row[4] for row in gpu if len(row) > 4) and any("(a)" in row[-2] for row in gpu)
    assert sum(row[0].startswith("32 of") for row in cpu) == 4  # two batches of two machines
    assert set(IMAGE_BATCHES) == set(workloads.BATCHES)


def test_another_answer_is_hatched_and_named() -> None:
    whole = Key("m", "images", "thumbnails", 256, "octopus", "end_to_end", "host")
    found = [
        text(Key("m", "machine", quantity="kind"), "gpu"),
        text(Key("m", "images", quantity="measured_on"), "2026-11-21"),
        number(whole, "ms", 1.0),
        make_number(
            whole.but(method="dali"), SOURCE, "ms", 3.0, note="different: largest error 2 exceeds 1; why"
        ),
        number(whole.but(method="cvcuda"), "ms", 2.0),
        *(number(whole.speedup(name), "ratio", value) for name, value in (("dali", 3.0), ("cvcuda", 2.0))),
    ]
    figure = images.draw(Frame(found))
    (axis,) = [axis for axis in figure.findobj(Axes) if axis.get_xlabel().startswith("Time")]
    assert [bar.get_hatch() for bar in axis.patches] == [style.HATCH, None]
    words = " ".join(" ".join(part.get_text() for part in figure.findobj(Text)).split())
    assert "the answer differs. DALI: why." in words and "Different answer" in words


def test_claims_are_judged_by_their_rules(full: Path) -> None:
    verdicts = {(one.claim_id, one.scope): one.verdict for one in read_claims(full / "claims.csv")}
    assert verdicts["own-images-roof", "pretended-gpu"] == "reproduced"
    assert verdicts["own-images-whole", "pretended-gpu"] == "reproduced"
    assert verdicts["own-images-whole-small", "pretended-gpu"] == "not reproduced"
    assert verdicts["own-images-launches", "pretended-gpu"] == "reproduced"
    assert verdicts["own-images-owners", "pretended-gpu"] == "reproduced"
    assert verdicts["own-images-padded-grid", "pretended-gpu"] == "reproduced"
    assert verdicts["own-images-launch-per-image", "pretended-gpu"] == "reproduced"
    assert verdicts["own-images-pillow", "pretended-cpu"] == "reproduced"
    assert verdicts["own-images-pillow", "pretended-gpu"] == "not measurable here"
