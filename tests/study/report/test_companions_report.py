"""The report of two models on one GPU and of image shapes: shares, verdicts by rule, and gaps said aloud."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from frames import build_report, caption, lines
from synthetic_companions import (
    BATCHES,
    CROPS,
    MATCHING,
    MODELS,
    NO_TORCH,
    ODOMETRY,
    STAGES,
    WORKSPACE,
    concurrency,
    image_shape,
    peak,
)
from synthetic_power import pretended_provenance

from octopus_study.measure.rows import Row, write_rows
from octopus_study.names import CONCURRENCY_ARMS, SHAPE_WAYS
from octopus_study.report.charts import style
from octopus_study.report.claims import read_claims
from octopus_study.report.frame import Frame
from octopus_study.report.outputs import draw
from octopus_study.report.paper import check_paper
from octopus_study.report.studies import report_of as study_report
from octopus_study.report.studies.concurrency_rule import _least
from octopus_study.report.studies.concurrency_tables import first_words
from octopus_study.report.studies.image_shape_cause import HEURISTICS, QUADRANTS, UNDECIDED, verdict
from octopus_study.report.studies.image_shape_view import Patch

PAIR = "gpu.concurrency"
SHAPE = "gpu.image_shape"
FIGURES = ("concurrency_makespan", "concurrency_latency", "image_shape_memory", "image_shape_throughput")
TABLES = [name for study in ("concurrency", "image_shape") for name in study_report(study).tables]


def report_of(tmp_path: Path, study: str, rows: list[Row], gpu: str = "Pretended GPU") -> Path:
    """A report of a GPU that measured one study."""
    table = write_rows(tmp_path / "reference" / "pretended-gpu" / f"{study}.csv", rows)
    of = {"machine": "pretended-gpu", "device": "cuda", "dataset": "visdrone-val"}
    record = json.dumps(pretended_provenance(study, table, **of))
    table.with_suffix(".json").write_text(record.replace("Pretended GPU", gpu))
    return build_report(tmp_path / "report", None, tmp_path / "reference")


def test_the_makespan_lies_between_the_bounds(numbers: Frame) -> None:
    longer, both = (numbers[f"{PAIR}.bounds.{name}"] for name in ("longer", "sum"))
    assert longer.value == pytest.approx(MATCHING, rel=0.01)
    assert both.value == pytest.approx(ODOMETRY + MATCHING, rel=0.01)
    assert longer.low < longer.value < longer.high


@pytest.mark.parametrize(
    ("arm", "hidden"), [("two-streams", -0.13), ("cuda-graphs", 0.35), ("two-processes-mps", 0.52)]
)
def test_the_hidden_share_is_paired_within_blocks(arm: str, hidden: float, numbers: Frame) -> None:
    overlap = numbers[f"{PAIR}.arms.{arm}.overlap"]
    assert overlap.value == pytest.approx(hidden, abs=0.02)
    assert overlap.low < overlap.value < overlap.high
    # Noise that all share is several times as wide.
    assert overlap.high - overlap.low < 0.03


def test_every_way_is_compared_with_one_after_the_other(numbers: Frame) -> None:
    start = f"{PAIR}.two-models.n2"
    assert numbers.text(f"{start}.two-streams.makespan.host.verdict_over_sequential") == "slower"
    assert numbers.text(f"{start}.pipeline.makespan.host.verdict_over_sequential") == "equal"
    assert numbers.text(f"{start}.two-processes-mps.makespan.host.verdict_over_two-processes") == "faster"
    assert 0 < numbers.value(f"{start}.sequential.makespan.host.noise_floor") < 0.02
    over, cost = (numbers[f"{PAIR}.arms.two-streams.{name}"] for name in ("over_sequential", "overhead"))
    assert cost.value == pytest.approx(over.value - 1) and cost.low == pytest.approx(over.low - 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("precondition.visual-odometry.filled", 17.6 * 0.75 / ODOMETRY),
        ("precondition.satellite-matching.filled", 29.45 * 0.8 / MATCHING),
        ("precondition.filled", 17.6 * 0.75 / ODOMETRY),
        ("prefetch.copies_hidden", 0.93),
        ("prefetch.overlap_gain", -0.1),
        ("prefetch.pinned_gain", 1.2),
        ("arms.two-threads.over_two-processes", 57.8 / 54.9),
        ("latency.visual-odometry.pipeline.over_alone", 1.0),
        ("mps.context_ratio", (2 * 290 + 60) / (2 * 512)),
        *((f"parts.{stage}", time) for stage, time in STAGES.items()),
    ],
)
def test_what_verdicts_rest_on_has_an_interval(name: str, value: float, numbers: Frame) -> None:
    number = numbers[f"{PAIR}.{name}"]
    assert number.value == pytest.approx(value, rel=0.02, abs=0.3 if number.unit == "ms" else 0)
    assert number.low <= number.value <= number.high and number.blocks and number.blocks > 1


def test_streams_are_judged_by_their_best_arm(numbers: Frame) -> None:
    arms = {name: numbers[f"{PAIR}.arms.{name}.over_sequential"] for name in ("two-streams", "two-threads")}
    best = min(arms, key=lambda name: arms[name].value)
    assert numbers.text(f"{PAIR}.arms.best-streams") == CONCURRENCY_ARMS[best]
    for quantity in ("overlap", "over_sequential"):
        mine, its = (numbers[f"{PAIR}.arms.{arm}.{quantity}"] for arm in ("best-streams", best))
        assert (mine.value, mine.low, mine.high) == (its.value, its.low, its.high)
        assert mine.note.startswith(f"{best}, of two-streams and two-threads the one with the least makespan")


def test_the_networks_in_a_graph_are_named(numbers: Frame) -> None:
    assert numbers.text(f"{PAIR}.graphs.captured") == "DINOv2"
    assert numbers.text(f"{PAIR}.graphs.not_captured") == "SuperPoint"


def test_latencies_have_a_tail(numbers: Frame) -> None:
    for name, factor in (("p50", 1.0), ("p99", 1.6)):
        number = numbers[f"{PAIR}.latency.visual-odometry.pipeline.{name}"]
        assert number.value == pytest.approx(ODOMETRY * factor, rel=0.04)
        assert number.low <= number.value <= number.high
    assert f"{PAIR}.latency.visual-odometry.sequential-again.p50" not in numbers
    # Crops have fewer iterations than a 99th percentile needs.
    assert f"{PAIR}.latency.model.crops-first.p99" not in numbers
    assert numbers.value(f"{PAIR}.latency.model.crops-first.max") > CROPS["crops-first"]


def test_a_way_is_recommended_by_rule(numbers: Frame, full: Path) -> None:
    assert numbers.text(f"{PAIR}.recommended.whole") == "Two processes with MPS"
    assert numbers.text(f"{PAIR}.recommended.memory") == "One after the other"
    rows = {row[0]: row for row in lines(full, "concurrency_rule")}
    assert rows["By the rule"][1] == "Two processes with MPS"


def test_without_mps_graphs_are_recommended(tmp_path: Path) -> None:
    rows = list(concurrency("gpu", "visdrone-val", mps=False))
    folder = report_of(tmp_path, "concurrency", rows)
    known = Frame.read(folder / "numbers.csv")
    assert known.text(f"{PAIR}.recommended.whole") == "CUDA graphs"
    assert known.text(f"{PAIR}.arms.two-processes-mps.overlap").endswith("no client reached the MPS daemon")
    assert "no client reached the MPS daemon" in caption(folder, "concurrency")
    judged = {one.claim_id: one for one in read_claims(folder / "claims.csv")}
    assert judged["conc-mps"].verdict == "not measurable here"
    assert "no client reached" in judged["conc-mps"].reason


def test_a_way_with_another_answer_is_no_candidate(tmp_path: Path) -> None:
    wrong = ("two-processes-mps", "cuda-graphs")
    rows = [
        row._replace(answer="different: half precision")
        if row.method in wrong and row.quantity == "makespan"
        else row
        for row in concurrency("gpu", "visdrone-val")
    ]
    folder = report_of(tmp_path, "concurrency", rows)
    known = Frame.read(folder / "numbers.csv")
    assert known.text(f"{PAIR}.recommended.whole").startswith("Asynchronous pipeline")
    marked = [row[0] for row in lines(folder, "concurrency") if "†" in row[1]]
    assert sorted(marked) == sorted(CONCURRENCY_ARMS[name] for name in wrong)


def test_ways_whose_intervals_meet_are_not_told_apart() -> None:
    rng = np.random.default_rng(0)
    samples = {name: rng.normal(mean, 1.0, 50) for name, mean in (("a", 10.0), ("b", 10.1), ("c", 15.0))}
    assert sorted(_least(samples)) == ["a", "b"]
    assert _least({"a": np.array([2.0]), "b": np.array([1.0])}) == ["b"]
    assert _least({}) == []


def test_proofs_contexts_and_crops_are_shown(numbers: Frame, full: Path) -> None:
    rows = {row[0]: row for row in lines(full, "concurrency_proof")}
    assert rows["Two processes with MPS"][1] == "2 processes, 2 MPS clients"
    assert rows["Two streams"][2:7] == ["2100", "86.0 %", "79.0 %", "3.00 %", "10.0 %"]
    assert rows["Two threads, two streams"][3].startswith("unavailable (")
    assert "SuperPoint (the host asks" in caption(full, "concurrency_proof")
    assert numbers.text(f"{PAIR}.context.process") == "512 MB"
    assert numbers.value(f"{PAIR}.crops.crops-first.model_delay") == pytest.approx(0.21, abs=0.05)
    crops = {row[0]: row for row in lines(full, "concurrency_crops")}
    assert crops["Crops first, same stream"][2].endswith("slower")
    assert crops["Crops beside, own stream"][3].endswith("ms ¶") and crops["Crops beside, own stream"][
        4
    ].endswith("slower")


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        ((True, 3.2, 0.3, 0.1), QUADRANTS),
        ((True, 3.2, 0.3, 1.5), UNDECIDED),
        ((False, 3.2, 0.3, 0.1), UNDECIDED),
        ((True, 1.0, 0.3, 0.1), UNDECIDED),
        ((True, 1.0, 1.0, 40.0), HEURISTICS),
        ((False, 0.9, 1.1, 8.0), HEURISTICS),
        ((True, 1.0, 1.0, 0.5), UNDECIDED),
    ],
)
def test_the_verdict_follows_the_rule(measured: tuple[bool, float, float, float], expected: str) -> None:
    assert verdict(*measured) == expected


def test_memory_follows_the_quadrants(numbers: Frame) -> None:
    assert numbers.text(f"{SHAPE}.cause.drunet.verdict") == QUADRANTS
    assert numbers.value(f"{SHAPE}.cause.drunet.padded") == pytest.approx(
        peak("drunet", 1228, "padded-whole") / peak("drunet", 1228)
    )
    assert numbers.text(f"{SHAPE}.splits.drunet.step68").startswith("8 of 8 widths that are no multiple of 8")
    assert numbers.value(f"{SHAPE}.jump.drunet") == pytest.approx(peak("drunet", 1296) / peak("drunet", 1228))
    without = peak("drunet", 1296, "no-cudnn") / peak("drunet", 1228, "no-cudnn")
    assert numbers.value(f"{SHAPE}.jump_without_cudnn.drunet") == pytest.approx(without)
    assert numbers.value(f"{SHAPE}.cause.drunet.without_cudnn") == pytest.approx(WORKSPACE["no-cudnn"])
    start = f"{SHAPE}.drunet-interventions.n1296"
    first, after = (
        numbers.value(f"{start}.cudnn-benchmark.{quantity}.memory")
        / numbers.value(f"{start}.as-published.{quantity}.memory")
        for quantity in ("first_allocated_peak", "allocated_peak")
    )
    assert (
        first > after == numbers.value(f"{SHAPE}.interventions.drunet.w1296.cudnn-benchmark.allocated_peak")
    )
    assert numbers.value(f"{SHAPE}.cause.drunet.first_forward") > WORKSPACE["cudnn-benchmark"]
    most = numbers.value(f"{start}.cudnn-benchmark.first_allocated_peak.memory")
    assert numbers.value(f"{SHAPE}.first_forward.drunet.searched") == pytest.approx(most / 1e9)


def test_memory_grows_with_the_batch_or_nobody_measured_it(numbers: Frame, tmp_path: Path) -> None:
    start = f"{SHAPE}.patches.drunet"
    assert numbers.value(f"{start}.side128.memory_batch") == pytest.approx(13 / 1)
    assert numbers.value(f"{start}.memory_batch") == pytest.approx((0.2 + 1.6) / 1.0)
    rows = [row for row in image_shape("gpu", "visdrone-val") if row.quantity != "batch_peak"]
    known = Frame.read(report_of(tmp_path, "image_shape", rows) / "numbers.csv")
    assert known.text(f"{start}.memory_batch").startswith("unavailable: not measured yet")


def test_memory_that_follows_cudnn_says_so(tmp_path: Path) -> None:
    rows = list(image_shape("gpu", "visdrone-val", caused_by_cudnn=True))
    folder = report_of(tmp_path, "image_shape", rows)
    assert Frame.read(folder / "numbers.csv").text(f"{SHAPE}.cause.drunet.verdict") == HEURISTICS
    judged = {one.claim_id: one.verdict for one in read_claims(folder / "claims.csv")}
    assert judged["shape-cause"] == judged["shape-divisible"] == "reproduced"


def test_lines_fit_each_kind_of_width_and_not_both(numbers: Frame) -> None:
    for model in MODELS:
        assert numbers.value(f"{SHAPE}.linearity.{model}.step64.all.r2") == pytest.approx(1)
    for subset in ("whole", "split"):
        assert numbers.value(f"{SHAPE}.linearity.drunet.step68.{subset}.r2") == pytest.approx(1)
        assert f"{SHAPE}.linearity.unet.step68.{subset}.r2" not in numbers
    assert numbers.value(f"{SHAPE}.linearity.drunet.step68.all.r2") < 0.5
    assert numbers.value(f"{SHAPE}.linearity.drunet.step68.all.residual") > 0.2


def test_every_width_has_its_count_of_splits(full: Path) -> None:
    rows = [row for row in lines(full, "shape_widths") if row[0].isdigit()]
    assert [int(row[0]) for row in rows] == list(range(1024, 2049, 68))
    assert all((row[2] == "1") == (row[1] == "4") for row in rows)
    ways = [row for row in lines(full, "shape_cause") if row[0] in SHAPE_WAYS.values()]
    assert len(ways) == 2 * len(SHAPE_WAYS)
    assert {row[1] for row in ways if row[0] == "Split by force"} == {"1"}


def test_patches_and_batches(numbers: Frame, full: Path) -> None:
    start = f"{SHAPE}.patches.drunet"
    assert numbers.text(f"{start}.best") == Patch(128, 16).text == "16 \u00d7 128²"
    assert 0 < numbers.value(f"{start}.noise_floor") < 0.01
    gain = numbers[f"{start}.side128.gain"]
    assert gain.low < gain.value < gain.high and gain.value == pytest.approx(3.08, abs=0.05)
    assert numbers.value(f"{start}.least_gain") == pytest.approx(1 / 1.08, abs=0.02)
    assert "16 \u00d7 512²" in numbers[f"{start}.least_gain"].note
    assert 1 < numbers.value(f"{start}.side128.first_doubling") < gain.value
    row = next(row for row in lines(full, "shape_patches") if row[0] == "DRUNet, 128 px")
    assert len(row) == len(BATCHES) + 5 and row[-1] == "16 \u00d7 128²"


def test_parts_that_no_row_measures_say_so_on_the_published_board(tmp_path: Path) -> None:
    rows = list(concurrency("gpu", "visdrone-val"))
    folder = report_of(tmp_path, "concurrency", rows, "NVIDIA GeForce RTX 2060")
    judged = {one.claim_id: one for one in read_claims(folder / "claims.csv")}
    assert judged["conc-times"].verdict == "not reproduced"
    assert "in no package" in judged["conc-time-litesam"].reason


def test_published_statements_are_numbers(numbers: Frame) -> None:
    assert numbers.text("published.two_models.pinned-prefetch.gain") == "a few ms"
    assert numbers.text("published.image_shape.sides.multiple") == "8, 16 or 32 px"


def test_machines_without_the_extras_say_so_and_nothing_else(alone: Path) -> None:
    known = Frame.read(alone / "numbers.csv")
    for study in ("concurrency", "image_shape"):
        assert known.text(f"shown.{study}.missing").endswith("PyTorch is not installed")
        assert f"shown.{study}.measured" not in known
    for name in TABLES:
        assert "PyTorch is not installed" in caption(alone, name) and len(lines(alone, name)) == 2
    with open(alone / "claims.csv", newline="", encoding="utf-8") as stream:
        judged = [row for row in csv.DictReader(stream) if row["study"] in ("concurrency", "image_shape")]
    assert judged and {row["verdict"] for row in judged} == {"not measurable here"}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_without_models_or_without_a_run_say_why(
    name: str, alone: Path, old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, words = [], style.words
    monkeypatch.setattr(style, "words", lambda figure, text: words(figure, said.append(text) or text))
    for folder in (alone, old):
        draw(name, folder / "numbers.csv", tmp_path / name)
    assert len(said) == 2
    assert "PyTorch is not installed" in said[0] and NO_TORCH not in said[0]
    assert said[1].endswith("is at hand: older results lack it.")


def test_splits_counted_without_a_gpu_are_shown_without_memory(tmp_path: Path) -> None:
    rows = [
        row
        if row.layer == "deterministic"
        else row._replace(value=None, block=0, answer="unavailable: needs a GPU")
        for row in image_shape("gpu", "visdrone-val")
    ]
    folder = report_of(tmp_path, "image_shape", list({row[:9]: row for row in rows}.values()))
    known = Frame.read(folder / "numbers.csv")
    assert known.text("shown.image_shape.missing").endswith("needs a GPU")
    widths = [row for row in lines(folder, "shape_widths") if row[0].isdigit()]
    assert widths and all(row[3] == "\u2013" for row in widths) and {row[2] for row in widths} == {"0", "1"}
    assert known.text(f"{SHAPE}.peak.drunet.w1228") == "unavailable: needs a GPU"
    for name in FIGURES[2:]:
        draw(name, folder / "numbers.csv", tmp_path / name)


@pytest.mark.parametrize("report", ["full", "alone", "old"])
def test_the_sections_use_known_numbers(report: str, request: pytest.FixtureRequest) -> None:
    from synthetic_runs import PAPER

    problems = check_paper(PAPER, Frame.read(request.getfixturevalue(report) / "numbers.csv"))
    assert [one for one in problems if "concurrency" in one or "image_shape" in one] == []


def test_an_error_of_cuda_is_told_without_its_type_and_advice():
    advice = "unless it is pinned. Please use tensor.pin_memory() or allocate it so."
    assert first_words(f"RuntimeError: Cannot copy {advice}") == "Cannot copy unless it is pinned"
    found = first_words("AcceleratorError: CUDA error: operation failed Search for `x' in https://y")
    assert found == "operation failed"
