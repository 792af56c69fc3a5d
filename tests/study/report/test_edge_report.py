"""The report of the satellite's tiles, the drone's video and the detector: what each rule saves, frames against their
budget, and gaps said aloud."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from frames import build_report, caption
from synthetic_edge import RULES, SIDE
from synthetic_runs import sign, write_run

from octopus_study.data.distributions import satellite_tiles
from octopus_study.data.sentinel2 import ATTRIBUTION
from octopus_study.report.charts import style
from octopus_study.report.claims import read_claims
from octopus_study.report.frame import Frame
from octopus_study.report.outputs import draw
from octopus_study.report.samples import ratio_of_sums, resampled
from octopus_study.report.studies import drone, satellite_figure
from octopus_study.report.view import View

STUDIES = ("satellite", "drone", "detector")
TILES = len(satellite_tiles(8192, 8192))


def test_a_resampled_statistic_lies_in_its_interval() -> None:
    values = pd.Series(np.random.default_rng(1).normal(10, 1, 200), index=pd.RangeIndex(200, name="block"))
    value, low, high = resampled(values, np.mean)[:3]
    assert low < value < high and value == pytest.approx(values.mean())
    assert high - low == pytest.approx(2 * 1.96 / 200**0.5, rel=0.15)
    pairs = values.to_frame().assign(triple=3 * values)
    assert resampled(pairs, ratio_of_sums)[:4] == pytest.approx((3, 3, 3, len(pairs)))


@pytest.mark.parametrize("rule", RULES)
def test_what_a_rule_saves_follows_from_what_it_keeps(rule: str, numbers: Frame) -> None:
    start = f"gpu.satellite.scale-rgb8.n{TILES}"
    sent, everything, processing = (
        numbers.value(f"{start}.{name}")
        for name in (
            f"{rule}.kept_downlink_time.deterministic",
            "scene.scene_downlink_time.deterministic",
            "octopus.end_to_end.host",
        )
    )
    gain = numbers[f"{start}.{rule}.pipeline_speedup"]
    assert gain.value == pytest.approx(everything / (sent + processing / 1000))
    assert gain.low <= gain.value <= gain.high


def test_the_picture_comes_back_from_its_series(
    full: Path, alone: Path, tensorrt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real data go before generated ones, the full scene before its window; the owner of the picture is named."""
    notes, stacked = [], style.stacked
    monkeypatch.setattr(
        style, "stacked", lambda charts, legend, note="": stacked(charts, legend, notes.append(note) or note)
    )
    for folder, synthetic, side, said in (
        (full, False, 1000, ATTRIBUTION),
        (alone, True, 1000, satellite_figure.GENERATED),
        (tensorrt, False, 8192, ATTRIBUTION),
    ):
        known = Frame.read(folder / "numbers.csv")
        picture = satellite_figure.picture(known)
        assert satellite_figure.synthetic(known) == picture.tiles.synthetic == synthetic
        assert (picture.boxes == satellite_tiles(side, side)).all() and set(picture.kept) == set(RULES)
        pixels = picture.series.picture
        assert pixels.shape == (SIDE, SIDE) and (pixels.min(), pixels.max()) == (0, 255)
        draw("satellite_tiles", folder / "numbers.csv", tmp_path / "tiles")
        assert said in notes[-1]


def test_claims_on_greenland_need_the_full_scene(full: Path, tensorrt: Path) -> None:
    judged = {(one.claim_id, one.scope): one for one in read_claims(full / "claims.csv")}
    whole = {one.claim_id: one for one in read_claims(tensorrt / "claims.csv")}
    assert judged["sat-tiles", "pretended-cpu"].verdict == "reproduced"
    for claim in ("sat-kept", "sat-share", "sat-bytes", "sat-kept-downlink", "sat-saved", "sat-pipeline"):
        window, generated = judged[claim, "pretended-gpu"], judged[claim, "here"]
        assert window.verdict == generated.verdict == "not measurable here"
        assert window.reason.endswith("needs the full scene of 8192 \u00d7 8192 px, not a window of it")
        assert generated.reason.endswith("needs the real scene, not generated data")
        assert whole[claim].verdict == "not reproduced"  # made-up brightness keeps other tiles


def test_late_frames_and_the_budget_are_shares(numbers: Frame) -> None:
    for method in ("octopus", "opencv", "n-launches-published"):
        late, share = (numbers[f"gpu.drone.real_time.{method}.{name}"] for name in ("late", "budget_share"))
        host, paced = (f"gpu.drone.frames.clip-10s.{layer}.{method}" for layer in ("host", "paced"))
        misses = numbers.get(f"{paced}.misses") or numbers[f"{host}.misses"]
        assert late.value == pytest.approx(misses.value / 300) and late.low <= late.value <= late.high
        assert share.value == numbers.value(f"{host}.budget_share")
    mean, p99, longest = (numbers.value(f"{host}.{name}") for name in ("mean", "p99", "max"))
    assert mean < p99 < longest


@pytest.mark.parametrize(
    ("ending", "method", "count"),
    [("", "opencv-uint8", 0), ("_interpolated", "opencv", 1), ("_interpolated", "opencv-uint8", 23)],
)
def test_detections_at_a_threshold_are_counted(ending: str, method: str, count: int, numbers: Frame) -> None:
    assert numbers.value(f"gpu.detector.detections_differing{ending}.{method}") == count


def test_gaps_are_lettered(full: Path) -> None:
    for name, why in (
        ("satellite", "needs a CUDA GPU"),
        ("drone", "needs a CUDA GPU"),
        ("detector", "torch is not installed"),
    ):
        assert f") {why}." in caption(full, name)


def test_a_run_without_some_parts_still_has_its_report(tmp_path: Path) -> None:
    """Without the byte budget, the pace, the streams and the longest clip, as a quick run."""
    folder = write_run(tmp_path / "reference", "pretended-gpu", "gpu", only=STUDIES)
    for study, words in {"satellite": (",byte-budget,",), "drone": (",paced,", ",pipelined,", "clip-10s")}.items():
        path = folder / f"{study}.csv"
        kept = [line for line in path.read_text().splitlines() if not any(word in line for word in words)]
        path.write_text("\n".join(kept) + "\n")
        sign(path)
    report = build_report(tmp_path / "report", None, tmp_path / "reference")
    known = Frame.read(report / "numbers.csv")
    assert drone.clips(View(known, "pretended-gpu", "drone")) == ["clip-1s", "clip-5s"]
    assert set(satellite_figure.picture(known).kept) == {"fixed", "otsu"}
    draw("satellite_tiles", report / "numbers.csv", tmp_path / "tiles")
