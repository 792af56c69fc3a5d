"""The report of two models on one GPU and of image shapes: shares, verdicts by rule, and gaps said aloud."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from frames import build_report, caption, lines
from synthetic_companions import MODELS, NO_TORCH, concurrency, image_shape
from synthetic_power import pretended_provenance

from octopus_study.measure.rows import Row, write_rows
from octopus_study.names import CONCURRENCY_ARMS
from octopus_study.report.charts import style
from octopus_study.report.claims import read_claims
from octopus_study.report.frame import Frame
from octopus_study.report.outputs import draw
from octopus_study.report.studies import report_of as study_report
from octopus_study.report.studies.image_shape import HEURISTICS, QUADRANTS, UNDECIDED, verdict
from octopus_study.status import different

PAIR, SHAPE = "gpu.concurrency", "gpu.image_shape"
STUDIES = ("concurrency", "image_shape")
FIGURES = [name for study in STUDIES for name in study_report(study).figures]
TABLES = [name for study in STUDIES for name in study_report(study).tables]


def report_of(tmp_path: Path, study: str, rows: list[Row]) -> Path:
    """A report of a GPU that measured one study."""
    table = write_rows(tmp_path / "reference" / "pretended-gpu" / f"{study}.csv", rows)
    of = {"machine": "pretended-gpu", "device": "cuda", "dataset": "visdrone-val"}
    table.with_suffix(".json").write_text(json.dumps(pretended_provenance(study, table, **of)))
    return build_report(tmp_path / "report", None, tmp_path / "reference")


@pytest.mark.parametrize(("arm", "hidden"), [("two-streams", -0.13), ("two-processes-mps", 0.52)])
def test_the_hidden_share_is_paired_within_blocks(arm: str, hidden: float, numbers: Frame) -> None:
    overlap = numbers[f"{PAIR}.arms.{arm}.overlap"]
    assert overlap.value == pytest.approx(hidden, abs=0.02)
    assert overlap.low < overlap.value < overlap.high
    # Noise that all share is several times as wide.
    assert overlap.high - overlap.low < 0.03


def test_streams_are_judged_by_their_best_arm(numbers: Frame) -> None:
    arms = {name: numbers[f"{PAIR}.arms.{name}.over_sequential"] for name in ("two-streams", "two-threads")}
    best = min(arms, key=lambda name: arms[name].value)
    assert numbers.text(f"{PAIR}.arms.best-streams") == CONCURRENCY_ARMS[best]
    for quantity in ("overlap", "over_sequential"):
        mine, its = (numbers[f"{PAIR}.arms.{arm}.{quantity}"] for arm in ("best-streams", best))
        assert (mine.value, mine.low, mine.high) == (its.value, its.low, its.high)


def test_a_way_that_could_not_run_says_why(tmp_path: Path) -> None:
    rows = [
        row.answered(different("half precision")) if (row.method, row.quantity) == ("two-threads", "makespan") else row
        for row in concurrency("gpu", "visdrone-val", mps=False)
    ]
    folder = report_of(tmp_path, "concurrency", rows)
    judged = {one.claim_id: one for one in read_claims(folder / "claims.csv")}
    for said in (caption(folder, "concurrency"), judged["conc-mps"].reason):
        assert "no client reached the MPS daemon" in said
    assert [row[0] for row in lines(folder, "concurrency") if "\u2020" in row[1]] == [CONCURRENCY_ARMS["two-threads"]]


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


def test_memory_follows_the_quadrants_or_cudnn(numbers: Frame, tmp_path: Path) -> None:
    assert numbers.text(f"{SHAPE}.cause.drunet.verdict") == QUADRANTS
    assert numbers.text(f"{SHAPE}.splits.drunet.step68").startswith("8 of 8 widths that are no multiple of 8")
    folder = report_of(tmp_path, "image_shape", list(image_shape("gpu", "visdrone-val", caused_by_cudnn=True)))
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


def test_patches_and_batches(numbers: Frame) -> None:
    start = f"{SHAPE}.patches.drunet"
    assert numbers.text(f"{start}.best") == "16 \u00d7 128²"
    gain = numbers[f"{start}.side128.gain"]
    assert gain.low < gain.value < gain.high and 0 < numbers.value(f"{start}.noise_floor") < 0.01
    assert numbers.value(f"{start}.least_gain") == pytest.approx(1 / 1.08, abs=0.02)
    assert "16 \u00d7 512²" in numbers[f"{start}.least_gain"].note
    assert numbers.value(f"{start}.memory_batch") == pytest.approx((0.2 + 1.6) / 1.0)


def test_claims_are_judged_by_direction_on_a_gpu_and_by_size_on_their_board(full: Path) -> None:
    judged = {(one.claim_id, one.scope): one for one in read_claims(full / "claims.csv")}
    for name in ("conc-pattern-throughput", "shape-linear", "shape-1228", "shape-best"):
        assert judged[name, "pretended-gpu"].verdict == "reproduced"
    for name in ("conc-threads", "shape-cause", "shape-divisible"):
        assert judged[name, "pretended-gpu"].verdict == "not reproduced"
    # One wants kernels that fill the GPU, the other room on it.
    for name in ("conc-streams-overlap", "conc-mps"):
        assert judged[name, "pretended-gpu"].reason.startswith("precondition not ")
    assert judged["conc-times", "pretended-gpu"].reason == "needs an RTX 2060"
    assert judged["shape-cause", "pretended-cpu"].reason == "needs a GPU"


def test_machines_without_the_extras_say_so_and_nothing_else(alone: Path) -> None:
    known = Frame.read(alone / "numbers.csv")
    for study in STUDIES:
        assert known.text(f"shown.{study}.missing").endswith("PyTorch is not installed")
        assert f"shown.{study}.measured" not in known
    for name in TABLES:
        assert "PyTorch is not installed" in caption(alone, name) and len(lines(alone, name)) == 2
    judged = [one for one in read_claims(alone / "claims.csv") if one.study in STUDIES]
    assert judged and {one.verdict for one in judged} == {"not measurable here"}


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
