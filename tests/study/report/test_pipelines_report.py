"""The report of pipelines: shares of a model's step, tables, and claims."""

from __future__ import annotations

from pathlib import Path

import pytest
from frames import lines
from synthetic_pipelines import PREPARED, STEP

from octopus_study.report.claims import read_claims
from octopus_study.report.frame import Frame
from octopus_study.report.studies import pipelines

KEY = "gpu.pipelines.model-ragged.n32"


@pytest.mark.parametrize("method", STEP)
def test_preprocessing_has_its_share_of_a_step(numbers: Frame, method: str) -> None:
    share = numbers[f"{KEY}.{method}.prepare.host.share_of_model_step"]
    assert share.value == pytest.approx(PREPARED[method] / STEP[method], rel=0.02)
    rate = numbers[f"{KEY}.{method}.model_step.host.images_per_second"]
    assert rate.value == pytest.approx(1000 * 32 / STEP[method], rel=0.02)


def test_tables_of_pipelines(full: Path, numbers: Frame) -> None:
    row = by_name(full, "pipelines_model")["32: 512 to 2048 px"]
    assert row[1] == numbers.text(f"{KEY}.octopus.prepare.host.speedup_over_transformers")
    assert row[2] == numbers.text(f"{KEY}.upload-only.prepare.host")
    assert row[4] == numbers.text(f"{KEY}.octopus-cpu.prepare.host.speedup_over_transformers-cpu")
    assert f"{KEY}.octopus.prepare.host.speedup_over_upload-only" not in numbers
    step = by_name(full, "pipelines_step")["32: 512 to 2048 px"]
    assert step[3] == numbers.text(f"{KEY}.transformers.prepare.host.share_of_model_step")
    assert step[-1] == numbers.text(f"{KEY}.octopus.cosine.deterministic")
    assert pipelines.BOUND not in pipelines.RIVALS
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
    for name in ("model", "crops", "waits", "cosine"):
        assert verdicts[f"own-pipelines-{name}", "pretended-gpu"] == "reproduced"
        assert verdicts[f"own-pipelines-{name}", "pretended-cpu"] == "not measurable here"
