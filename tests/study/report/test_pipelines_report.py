"""Pipelines: the worst and the best input, and tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from frames import lines

from octopus_study.report.frame import Frame

KEY = "gpu.pipelines.model-ragged.n32"


def test_the_worst_and_the_best_input_are_named(numbers: Frame) -> None:
    """That of files on the GPU, the greatest of all, is of another answer."""
    key = "gpu.pipelines.model.octopus.prepare.host"
    least, greatest = (numbers[f"{key}.{name}_over_transformers"] for name in ("least", "greatest"))
    assert least.value == pytest.approx(3, rel=0.02) and greatest.value == pytest.approx(12, rel=0.02)
    assert not least.interval and "of 17 batches and inputs" in least.note
    assert numbers.text(f"{key}.least").endswith("tensors on the GPU")
    assert not numbers.text(f"{key}.greatest").endswith(("GPU", "JPEG files"))


def test_a_column_is_of_the_input_that_its_head_names(full: Path, numbers: Frame) -> None:
    inputs = {row[0]: row[1:] for row in lines(full, "pipelines_inputs")}["32: 512 to 2048 px"]
    over = "octopus.prepare.host.speedup_over_transformers"
    for cell, form in zip(inputs, ("pillow", "numpy", "torch", "torch-gpu"), strict=False):
        assert cell == numbers.text(f"{KEY}.{form}.{over}")
    # Decoded on the GPU, the files' pixels differ.
    assert inputs[5].startswith(f"{numbers.text(f'{KEY}.jpeg.{over}-torchvision')} \u2020")
    step = {row[0]: row[1:] for row in lines(full, "pipelines_step")}["32: 512 to 2048 px"]
    assert step[4] == numbers.text(f"{KEY}.pillow.transformers.prepare.host.share_of_model_step")
    assert step[7] == numbers.text(f"{KEY}.pillow.octopus.prepare.host.speedup_over_hf-processors-rs")
