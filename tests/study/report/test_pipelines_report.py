"""The report of pipelines: shares of a model's step, tables, and claims."""

from __future__ import annotations

from pathlib import Path

import pytest
from frames import lines
from synthetic_pipelines import FILES, PREPARED, STEP

from octopus_study.report.claims import read_claims
from octopus_study.report.frame import Frame
from octopus_study.report.studies import pipelines

KEY = "gpu.pipelines.model-ragged.n32"
PILLOW = f"{KEY}.pillow"


@pytest.mark.parametrize("method", STEP)
def test_preprocessing_has_its_share_of_a_step(numbers: Frame, method: str) -> None:
    share = numbers[f"{PILLOW}.{method}.prepare.host.share_of_model_step"]
    assert share.value == pytest.approx(PREPARED[method] / STEP[method], rel=0.02)
    rate = numbers[f"{PILLOW}.{method}.model_step.host.images_per_second"]
    assert rate.value == pytest.approx(1000 * 32 / STEP[method], rel=0.02)


def test_the_worst_and_the_best_input_are_named(numbers: Frame) -> None:
    """That of files on the GPU, the greatest of all, is of another answer."""
    key = "gpu.pipelines.model.octopus.prepare.host"
    least, greatest = (numbers[f"{key}.{name}_over_transformers"] for name in ("least", "greatest"))
    assert least.value == pytest.approx(3, rel=0.02) and greatest.value == pytest.approx(12, rel=0.02)
    assert not least.interval and "of 17 batches and inputs" in least.note
    assert numbers.text(f"{key}.least").endswith("tensors on the GPU")
    assert not numbers.text(f"{key}.greatest").endswith(("GPU", "JPEG files"))


def test_tables_of_pipelines(full: Path, numbers: Frame) -> None:
    inputs = by_name(full, "pipelines_inputs")
    assert len(inputs) == 5
    row = inputs["32: 512 to 2048 px"]
    for place, form in enumerate(("pillow", "numpy", "torch", "torch-gpu")):
        assert row[place] == numbers.text(f"{KEY}.{form}.octopus.prepare.host.speedup_over_transformers")
    assert row[5].startswith(
        numbers.text(f"{KEY}.jpeg.octopus.prepare.host.speedup_over_transformers-torchvision")
    )
    assert row[6] == numbers.text(f"{PILLOW}.octopus.model_step.host.speedup_over_transformers")
    model = by_name(full, "pipelines_model")
    row = model["32: 512 to 2048 px, Pillow"]
    assert row[1] == numbers.text(f"{PILLOW}.octopus.prepare.host.speedup_over_transformers")
    assert row[4] == numbers.text(f"{PILLOW}.octopus.prepare.host.speedup_over_hf-processors-rs")
    files = model["32: 512 to 2048 px, JPEG files"]
    over = numbers.text(f"{KEY}.jpeg.octopus.prepare.host.speedup_over_transformers-torchvision")
    assert files[5].startswith(f"{over} \u2020") and files[1].count("\u2020") == 1
    decoded = numbers[f"{KEY}.jpeg.octopus-host-decoded.prepare.host.speedup_over_transformers"]
    assert files[6] == decoded.text
    assert decoded.value == pytest.approx(FILES / PREPARED["octopus-host-decoded"], rel=0.02)
    step = by_name(full, "pipelines_step")["32: 512 to 2048 px"]
    assert step[3] == numbers.text(f"{PILLOW}.transformers.prepare.host.share_of_model_step")
    assert step[5] == numbers.text(f"{PILLOW}.octopus.cosine.deterministic")
    crops = by_name(full, "pipelines_crops")
    assert crops["28 detections of 300"][-2:] == ["0", "1"]
    data = by_name(full, "pipelines_data")
    for name, column, other, workload in (
        ("Slices of 4K", 2, "sahi", "slices.n32.octopus.slices"),
        ("JPEG, 4 workers", 4, "transformers", "loader-4-workers.n256.octopus.loaded"),
    ):
        assert data[name][column] == numbers.text(f"gpu.pipelines.{workload}.host.speedup_over_{other}")


@pytest.mark.parametrize(
    ("workload", "name"), [("crops-7", "7 detections"), ("loader-12-workers", "JPEG, 12 workers")]
)
def test_pipelines_of_any_number_have_a_name(workload: str, name: str) -> None:
    assert pipelines.named(workload) == name


def by_name(full: Path, table: str) -> dict[str, list[str]]:
    """The rows of the GPU, by their first cell."""
    rows = lines(full, table)
    begin = next(index for index, row in enumerate(rows) if "Pretended GPU" in row[0]) + 1
    end = next(
        (index for index, row in enumerate(rows) if index > begin and "Pretended" in row[0]), len(rows)
    )
    return {row[0]: row[1:] for row in rows[begin:end]}


def test_claims_of_pipelines(full: Path) -> None:
    verdicts = {(one.claim_id, one.scope): one.verdict for one in read_claims(full / "claims.csv")}
    for name in ("model", "files", "crops", "waits", "cosine"):
        assert verdicts[f"own-pipelines-{name}", "pretended-gpu"] == "reproduced"
        assert verdicts[f"own-pipelines-{name}", "pretended-cpu"] == "not measurable here"
    for name, here, elsewhere in (("inputs", "gpu", "cpu"), ("inputs-cpu", "cpu", "gpu")):
        assert verdicts[f"own-pipelines-{name}", f"pretended-{here}"] == "reproduced"
        assert verdicts[f"own-pipelines-{name}", f"pretended-{elsewhere}"] == "not measurable here"
