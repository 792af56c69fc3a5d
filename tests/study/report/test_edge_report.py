"""The report of the satellite's tiles, the drone's video and the detector: what each rule saves, frames against their
budget, and gaps said aloud."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from frames import build_report, caption, lines, matching
from matplotlib.text import Text
from synthetic_edge import FRAME_LAWS, FRAMES, PREPARING, RULES, SIDE, detections
from synthetic_runs import sign, write_run

from octopus_study.data.distributions import satellite_tiles
from octopus_study.data.sentinel2 import ATTRIBUTION
from octopus_study.report.charts import style
from octopus_study.report.claims import read_claims
from octopus_study.report.frame import Frame, Key
from octopus_study.report.outputs import draw
from octopus_study.report.samples import ratio_of_sums, resampled
from octopus_study.report.studies import (
    detector,
    drone_figure,
    drone_view,
    satellite_figures,
    satellite_numbers,
)
from octopus_study.report.view import View, views

FIGURES = ("satellite_tiles", "satellite_pipeline", "drone_frames", "detector_stages")
TABLES = ("satellite", "satellite_methods", "drone", "drone_stream", "detector")
STUDIES = ("satellite", "drone", "detector")
TILES = len(satellite_tiles(8192, 8192))


@pytest.fixture
def whole(tensorrt: Path) -> Frame:
    """The numbers of a GPU whose receipt holds the full scene."""
    return Frame.read(tensorrt / "numbers.csv")


def test_a_resampled_statistic_lies_in_its_interval() -> None:
    values = pd.Series(np.random.default_rng(1).normal(10, 1, 200), index=pd.RangeIndex(200, name="block"))
    value, low, high, _ = resampled(values, np.mean)
    assert low < value < high and value == pytest.approx(values.mean())
    assert high - low == pytest.approx(2 * 1.96 / 200**0.5, rel=0.15)
    assert all(math.isnan(end) for end in resampled(values[:1], np.mean)[1:3])
    pairs = values.to_frame().assign(triple=3 * values)
    assert resampled(pairs, ratio_of_sums) == pytest.approx((3, 3, 3, len(pairs)))


@pytest.mark.parametrize("rule", RULES)
def test_what_a_rule_saves_follows_from_what_it_keeps(rule: str, numbers: Frame) -> None:
    start = f"gpu.satellite.scale-rgb8.n{TILES}"
    sent, everything, size, all_bytes, kept, processing = (
        numbers.value(f"{start}.{name}")
        for name in (
            f"{rule}.kept_downlink_time.deterministic",
            "scene.scene_downlink_time.deterministic",
            f"{rule}.kept_bytes.deterministic",
            "scene.scene_bytes.deterministic",
            f"{rule}.kept_tiles.deterministic",
            "octopus.end_to_end.host",
        )
    )
    gain = numbers[f"{start}.{rule}.pipeline_speedup"]
    assert gain.value == pytest.approx(everything / (sent + processing / 1000))
    assert gain.low <= gain.value <= gain.high
    share = numbers.value(f"{start}.{rule}.processing_share")
    assert share == pytest.approx(processing / 1000 / (sent + processing / 1000))
    assert numbers.value(f"{start}.{rule}.bandwidth_saved") == pytest.approx(1 - size / all_bytes)
    assert numbers.value(f"{start}.{rule}.kept_share") == kept / TILES


def test_indices_get_no_median(numbers: Frame) -> None:
    assert not matching(numbers, r".*\.(tile_\w+|thumbnail)\.deterministic")
    assert numbers.value(f"gpu.satellite.scale-rgb8.n{TILES}.fixed.kept_tiles.deterministic") > 0
    # n counts frames here, and the time is that of one.
    assert not matching(numbers, r".*\.detector\..*\.end_to_end\.host\.per_object")


def test_the_kernel_is_compared_with_reading_the_scene(numbers: Frame) -> None:
    key = f"gpu.satellite.scale-rgb8.n{TILES}.octopus.keep_tiles.device.share_of_read-bound"
    assert numbers.value(key) == pytest.approx(0.9, abs=0.02)
    assert numbers.text("gpu.satellite.flags_equal") == "in all 12 cases"


def test_the_picture_comes_back_from_its_series(numbers: Frame) -> None:
    picture = satellite_figures.picture(numbers)
    boxes = satellite_tiles(1000, 1000)
    # The real scene of a reference goes before the generated one of this machine.
    assert picture is not None and picture.view.machine != "here"
    assert not picture.tiles.synthetic and (picture.boxes == boxes).all() and picture.size == (1000, 1000)
    pixels = picture.series.picture
    assert pixels.shape == (SIDE, SIDE) and (pixels.min(), pixels.max()) == (0, 255)
    for rule, threshold in RULES.items():
        assert (picture.kept[rule] == (np.array(picture.series["brightness"]) > threshold)).all()
    assert numbers.text("shown.satellite.picture").endswith(f"{ATTRIBUTION}.")


def test_the_full_scene_goes_before_its_window(whole: Frame, tensorrt: Path, tmp_path: Path) -> None:
    picture = satellite_figures.picture(whole)
    assert picture is not None and picture.series.name == "picture.full" and len(picture.boxes) == TILES
    draw("satellite_tiles", tensorrt / "numbers.csv", tmp_path / "tiles")


def test_a_generated_scene_is_stamped_and_credited_to_nobody(alone: Path, full: Path) -> None:
    known = Frame.read(alone / "numbers.csv")
    synthetic = satellite_figures.synthetic
    assert synthetic(known) and not synthetic(Frame.read(full / "numbers.csv"))
    words = known.text("shown.satellite.picture")
    assert words.endswith(f"{satellite_numbers.GENERATED}.")
    assert ATTRIBUTION == satellite_numbers.ATTRIBUTION not in words


def test_the_attribution_stands_in_the_figure(
    full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, stacked = [], style.stacked
    monkeypatch.setattr(
        style, "stacked", lambda charts, legend, note="": stacked(charts, legend, notes.append(note) or note)
    )
    draw("satellite_tiles", full / "numbers.csv", tmp_path / "tiles")
    assert len(notes) == 1 and ATTRIBUTION in notes[0]


def test_series_and_pictures_are_no_numbers(numbers: Frame) -> None:
    assert not matching(numbers, r".*\.series")
    assert "shown.satellite.picture" in numbers


def test_claims_on_greenland_need_the_full_scene(full: Path, tensorrt: Path) -> None:
    judged = {(one.claim_id, one.scope): one for one in read_claims(full / "claims.csv")}
    assert judged["sat-tiles", "pretended-cpu"].verdict == "reproduced"
    assert judged["sat-downlink", "pretended-cpu"].verdict == "reproduced"
    for claim in ("sat-kept", "sat-share", "sat-bytes", "sat-kept-downlink", "sat-saved", "sat-pipeline"):
        window, generated = judged[claim, "pretended-gpu"], judged[claim, "here"]
        assert window.verdict == generated.verdict == "not measurable here"
        assert window.reason.endswith("needs the full scene of 8192 \u00d7 8192 px, not a window of it")
        assert generated.reason.endswith("needs the real scene, not generated data")
        full_scene = next(one for one in read_claims(tensorrt / "claims.csv") if one.claim_id == claim)
        assert full_scene.verdict == "not reproduced"  # made-up brightness keeps other tiles
    assert judged["sat-processing", "pretended-gpu"].reason == "needs a Jetson Orin Nano"


def test_frames_are_summed_up_by_their_budget(numbers: Frame) -> None:
    key = "cpu.drone.frames.clip-10s.host.opencv"
    frames = np.array(numbers.series("pretended-cpu", "drone", "clip-10s.host.opencv")["ms"])
    budget = numbers.value("cpu.drone.clips.clip-10s.frame_budget")
    assert len(frames) == 300 and budget == pytest.approx(1000 / 30)
    for name, value in {
        "mean": frames.mean(),
        "p99": np.percentile(frames, 99),
        "max": frames.max(),
        "sum": frames.sum(),
        "budget_share": frames.mean() / budget,
        "misses": (frames > budget).sum(),
    }.items():
        assert numbers.value(f"{key}.{name}") == pytest.approx(value, rel=1e-3)
    mean = numbers[f"{key}.mean"]
    assert mean.low < mean.value < mean.high
    assert numbers.value(f"{key}.misses") > 0 == numbers.value(key.replace("opencv", "octopus") + ".misses")
    assert key.replace("clip-10s", "clip-1s") + ".p99" not in numbers  # thirty frames have no such percentile


def test_detections_follow_the_published_rule(numbers: Frame, full: Path) -> None:
    counts = {seconds: int(frames.sum()) for seconds, frames in detections().items()}
    assert (counts[1], counts[10]) == (851, 8347)
    judged = {(one.claim_id, one.scope): one for one in read_claims(full / "claims.csv")}
    for claim in ("drone-detections-1s", "drone-detections-10s", "drone-per-frame", "drone-length"):
        assert judged[claim, "pretended-gpu"].verdict == "reproduced"
    assert judged["drone-faster-opencv", "pretended-gpu"].verdict == "reproduced"
    assert judged["drone-faster-opencv", "pretended-cpu"].reason == "needs a GPU"
    for claim in ("drone-opencv-size", "drone-frame-ms", "drone-budget"):
        assert judged[claim, "pretended-gpu"].reason == "needs a Jetson Orin Nano"


def test_published_ratios_follow_from_published_times(numbers: Frame) -> None:
    over = "published.derived.drone_video.speedup_over_"
    assert numbers.text(f"{over}opencv") == "1.88\u00d7" and numbers.text(f"{over}n-launches") == "1.42\u00d7"
    each = numbers.value("published.derived.detector.cpu-preprocessing.frame_time")
    assert each == pytest.approx(4384 / 200)
    assert numbers.value("published.derived.satellite.processing_share") == pytest.approx(0.147 / 361.147)


def test_overlap_is_a_share_of_what_can_be_hidden(numbers: Frame) -> None:
    hidden = numbers["gpu.drone.overlap.fraction"]
    assert hidden.value == pytest.approx((11.2 - 9.4) / 2.2, abs=0.05) and hidden.low < hidden.high
    assert numbers.value("gpu.drone.overlap.over_ideal") == pytest.approx(9.4 / 9.0, abs=0.01)
    assert "cpu.drone.overlap.fraction" not in numbers


def test_the_clip_s_length_does_not_matter(numbers: Frame) -> None:
    slope, fixed = FRAME_LAWS["gpu"]["octopus"]
    means = [slope * frames.mean() + fixed for frames in (detections()[10], detections()[1])]
    assert numbers.value("gpu.drone.length.octopus") == pytest.approx(means[0] / means[1], abs=0.05)


def test_all_frames_of_the_detector_are_one_total(numbers: Frame) -> None:
    start, model = "gpu.detector", sum((6.0, 0.6))
    for method, preparing in PREPARING["gpu"].items():
        total = numbers[f"{start}.total.{method}"]
        assert total.value == pytest.approx(FRAMES * (preparing + model), rel=0.02)
        assert total.low < total.value < total.high
        share = numbers.value(f"{start}.preprocess_share.{method}")
        assert share == pytest.approx(preparing / (preparing + model), rel=0.02)
    gain = numbers.value(f"{start}.gain.total.over_opencv")
    assert gain == pytest.approx((9.0 + model) / (0.35 + model), rel=0.02)


def test_a_frame_s_gain_is_paired_and_stands_beside_octopus_again(numbers: Frame) -> None:
    gain, again = (numbers[f"gpu.detector.gain.frame.over_{name}"] for name in ("opencv", "octopus-again"))
    assert gain.value == pytest.approx(15.6 / 6.95, rel=0.02) and gain.low < gain.value < gain.high
    assert again.low < 1 < again.high and again.high - again.low < 0.02


@pytest.mark.parametrize(
    ("ending", "method", "count"),
    [
        ("", "opencv", 0),
        ("", "opencv-uint8", 0),
        ("_interpolated", "opencv", 1),
        ("_interpolated", "opencv-uint8", 23),
    ],
)
def test_detections_at_a_threshold_are_counted(ending: str, method: str, count: int, numbers: Frame) -> None:
    assert numbers.value(f"gpu.detector.detections_differing{ending}.{method}") == count


def test_late_frames_and_the_budget_are_shares(numbers: Frame) -> None:
    for method in ("octopus", "opencv", "n-launches-published"):
        late, share = (numbers[f"gpu.drone.real_time.{method}.{name}"] for name in ("late", "budget_share"))
        paced = f"gpu.drone.frames.clip-10s.paced.{method}.misses"
        misses = numbers.get(paced) or numbers[f"gpu.drone.frames.clip-10s.host.{method}.misses"]
        assert late.note.startswith("paced" if paced in numbers else "host")
        assert late.value == pytest.approx(misses.value / 300) and late.low <= late.value <= late.high
        assert share.value == numbers.value(f"gpu.drone.frames.clip-10s.host.{method}.budget_share")


def test_identical_detections_are_judged_or_a_reason_is_given(full: Path, numbers: Frame) -> None:
    judged = {(one.claim_id, one.scope): one for one in read_claims(full / "claims.csv")}
    assert judged["detector-identical", "pretended-gpu"].verdict == "not reproduced"
    assert numbers.value("gpu.detector.frames_differing.opencv-uint8") == 0
    assert numbers.value("gpu.detector.frames_differing_interpolated.opencv-uint8") == 7
    assert numbers.text("gpu.detector.frames_differing_interpolated.opencv-uint8") == f"7 of {FRAMES // 4}"
    cpu = judged["detector-identical", "pretended-cpu"]
    assert cpu.verdict == "not measurable here" and "torch is not installed" in cpu.reason
    measured = [view.machine for view in views(numbers, "detector") if detector.measured(view)]
    assert measured == ["pretended-gpu"]
    assert "pip" not in "".join(itertools.chain(*lines(full, "claims_published")))


def test_tables_show_published_beside_measured(full: Path, tensorrt: Path, numbers: Frame) -> None:
    rules = lines(full, "satellite")
    assert rules[3][:6] == ["Fixed threshold", "53.5 %", "325 of 727", "86 MiB", "55 %", "361 s"]
    assert any(row[0].startswith("**Window of the scene (synthetic sample)") for row in rules)
    assert any(
        row[0].startswith("**Full scene, 3") and "805 s" in row[0] for row in lines(tensorrt, "satellite")
    )
    published = {row[0]: row for row in lines(full, "drone")[3:6]}
    assert published["One launch"][1:4] == ["4.8 ms"] * 3
    over = numbers.text("published.derived.drone_video.speedup_over_opencv")
    assert published["OpenCV (threads not said)"][-1] == over
    assert [row[-5] for row in lines(full, "detector")[3:5]] == ["\u2013", "2.9\u00d7"]


def test_other_answers_are_marked(full: Path, numbers: Frame) -> None:
    other = Key("pretended-gpu", "drone", "clip-10s", 8347, "n-launches-published", "frame_time", "host")
    assert drone_view.differs(View(numbers, other.machine, "drone"), other) == " \u2020"
    words = " ".join(text.get_text() for text in drone_figure.draw(numbers).findobj(Text))
    assert words.count("\u2020: the answer differs") == 1
    marked = {row[0] for row in lines(full, "drone") if "\u2020" in row[0]}
    assert marked == {"N launches, published \u2020"} and "\u2020: the answer differs" in caption(
        full, "drone"
    )


def test_gaps_are_lettered(full: Path) -> None:
    for name in ("satellite_methods", "drone", "drone_stream"):
        assert caption(full, name).endswith("(a) needs a CUDA GPU.")
        assert any("(a)" in cell for row in lines(full, name) for cell in row)
    assert caption(full, "detector").endswith("(a) torch is not installed.")


def test_a_run_without_some_parts_still_has_its_report(tmp_path: Path) -> None:
    """Without the byte budget, the pace, the streams and the longest clip, as a quick run."""
    folder = write_run(tmp_path / "reference", "pretended-gpu", "gpu", only=STUDIES)
    for study, words in {
        "satellite": (",byte-budget,",),
        "drone": (",paced,", ",pipelined,", "clip-10s"),
    }.items():
        path = folder / f"{study}.csv"
        kept = [line for line in path.read_text().splitlines() if not any(word in line for word in words)]
        path.write_text("\n".join(kept) + "\n")
        sign(path)
    report = build_report(tmp_path / "report", None, tmp_path / "reference")
    known = Frame.read(report / "numbers.csv")
    assert drone_view.clips(View(known, "pretended-gpu", "drone")) == ["clip-1s", "clip-5s"]
    assert set(satellite_figures.picture(known).kept) == {"fixed", "otsu"}
    for name in FIGURES:
        draw(name, report / "numbers.csv", tmp_path / name)
