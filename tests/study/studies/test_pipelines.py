"""The study of whole pipelines: what it plans, a quick run on the CPU, and its reasons where packages are missing."""

from dataclasses import replace

import numpy as np
import pytest

from octopus_study.data.workload import sample_boxes
from octopus_study.measure import read_rows
from octopus_study.studies.crops import reference_of
from octopus_study.studies.pipelines import crops, loader


def test_processors_give_the_same_rows_in_a_quick_run(runs):
    for package in ("torchvision", "transformers", "hf_processors_rs"):
        pytest.importorskip(package)
    rows = read_rows(runs["pipelines"])
    differing = rows[(rows["quantity"] == "values_differing") & rows["value"].notna()]
    assert len(differing) and (differing["value"] < 0.01).all()


@pytest.mark.parametrize(
    ("kind", "edge"), [(crops.GridSample, "box"), (crops.Compiled, "box"), (crops.RoiAlign, "image")]
)
def test_a_call_for_all_boxes_makes_the_crops_of_those_that_count(quick_context, kind, edge):
    pytest.importorskip("torchvision")
    context = quick_context("pipelines")
    boxes = sample_boxes(context.workload.pool, 9, context.seed)
    step = kind(context, boxes, 5)
    step.run()
    assert len(step.made) == 9
    right = reference_of(context).of(boxes[:5], edge)
    assert np.abs(step.result() - right).max() <= step.tolerance


def test_no_core_gets_two_of_a_loaders_workers(quick_context, monkeypatch):
    context = quick_context("pipelines")
    settings = context.config.pipelines.model_copy(update={"loader_workers": [1, 2, 4, 16]})
    config = context.config.model_copy(update={"pipelines": settings})
    monkeypatch.setattr(loader, "available_cores", lambda: 3)
    named = [part.case.workload for part in loader.parts(replace(context, config=config))]
    assert named == ["loader-1-workers", "loader-2-workers", "loader-3-workers"]


@pytest.mark.parametrize("device", loader.ROUNDINGS)
def test_a_batch_is_rounded_as_the_processor_in_the_workers_does(quick_context, tmp_path, device):
    pytest.importorskip("torchvision")
    pytest.importorskip("transformers")
    folder = loader.Folder(loader.written(quick_context("pipelines"), tmp_path, 8))
    pictures = [folder[index] for index in range(8)]
    options = loader.OPTIONS | {"rounding": loader.ROUNDINGS[device]}
    made = loader.of_images.resize(pictures, loader.SIDE, device="cpu", **options)
    assert np.abs(made - loader.Processed()(pictures).numpy()).max() <= loader.Loaded.tolerance
