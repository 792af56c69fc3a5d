"""The study of whole pipelines: what it plans, a quick run on the CPU, and its reasons where packages are missing."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from octopus_study.studies.pipelines import loader, slices, study
from octopus_study.studies.pipelines.method import thinned

CROPS = {"octopus", "octopus-graph", "torch-loop", "opencv-loop"}


@pytest.fixture(scope="module")
def rows(quick_rows):
    return quick_rows("pipelines")


def test_what_cannot_run_here_has_a_reason(rows, quick_context):
    planned = {
        (part.case.workload, part.case.input, comparison.quantity, method)
        for part in study.plan(quick_context("pipelines"))
        for comparison in part.comparisons
        for method in comparison.methods
    }
    found = {tuple(row) for row in rows[["workload", "input", "quantity", "method"]].itertuples(index=False)}
    assert planned <= found
    lacking = rows[rows["value"].isna() & (rows["quantity"] != "discarded_blocks")]
    assert lacking["answer"].str.startswith("unavailable: ").all()
    tower = rows[(rows["quantity"] == "model_step") & (rows["method"] == "octopus")]
    assert tower["value"].isna().all()


def test_a_quick_run_gives_the_same_answers(rows):
    pytest.importorskip("torch")
    for quantity, methods in (("crops", CROPS - {"octopus-graph"}), ("slices", {"octopus", "numpy-slices"})):
        timed = rows[(rows["quantity"] == quantity) & rows["value"].notna()]
        rounded = timed["method"] == "opencv-loop"
        assert methods <= set(timed["method"]) and set(timed["answer"][~rounded]) == {"same"}
        assert all("rounds to bytes" in answer for answer in timed["answer"][rounded])


def test_processors_give_the_same_rows_in_a_quick_run(rows, quick_context):
    for package in ("torchvision", "transformers", "hf_processors_rs"):
        pytest.importorskip(package)
    timed = rows[rows["quantity"].isin(["prepare", "loaded"]) & rows["value"].notna()]
    assert set(timed["answer"]) == {"same"}
    found = set(timed[["workload", "input", "method"]].itertuples(index=False, name=None))
    for part in study.plan(quick_context("pipelines")):
        for comparison in part.of("prepare"):
            for method in comparison.methods:
                assert (part.case.workload, part.case.input, method) in found
    differing = rows[(rows["quantity"] == "values_differing") & rows["value"].notna()]
    assert len(differing) and (differing["value"] < 0.01).all()


def test_no_core_gets_two_of_a_loaders_workers(quick_context, monkeypatch):
    context = quick_context("pipelines")
    settings = context.config.pipelines.model_copy(update={"loader_workers": [1, 2, 4, 16]})
    config = context.config.model_copy(update={"pipelines": settings})
    monkeypatch.setattr(loader, "available_cores", lambda: 3)
    named = [part.case.workload for part in loader.parts(replace(context, config=config))]
    assert named == ["loader-1-workers", "loader-2-workers", "loader-3-workers"]


@pytest.mark.parametrize("side", [640, 1000, 2160])
def test_slices_cover_the_frame_and_none_reaches_beyond_it(side):
    found = slices.places(side)
    assert (found[:, :2] >= 0).all() and (found[:, 3].max(), found[:, 2].max()) == slices.FRAME
    assert (found[:, 2:] - found[:, :2] == side).all() and len(np.unique(found, axis=0)) == len(found)
    covered = np.zeros(slices.FRAME, bool)
    for x1, y1, x2, y2 in found.tolist():
        covered[y1:y2, x1:x2] = True
    assert covered.all()
    lefts = np.unique(found[:, 0])
    assert (np.diff(lefts) <= side - int(slices.OVERLAP * side)).all()


def test_slices_are_those_of_sahi():
    of_sahi = pytest.importorskip("sahi.slicing")
    boxes = of_sahi.get_slice_bboxes(*slices.FRAME, 640, 640, False, slices.OVERLAP, slices.OVERLAP)
    assert np.array_equal(slices.places(640), boxes)


def test_a_folder_gives_its_pixels_in_order(quick_context, tmp_path):
    context = quick_context("pipelines")
    folder = loader.Folder(loader.written(context, tmp_path, 3))
    assert len(folder) == 3 and [path.name for path in folder.paths] == [
        "00000.jpg",
        "00001.jpg",
        "00002.jpg",
    ]
    assert all(folder[index].dtype == np.uint8 and folder[index].shape[2] == 3 for index in range(3))
    assert len({folder[index].shape for index in range(3)}) == 3


@pytest.mark.parametrize("device", loader.ROUNDINGS)
def test_a_batch_is_rounded_as_the_processor_in_the_workers_does(quick_context, tmp_path, device):
    pytest.importorskip("torchvision")
    pytest.importorskip("transformers")
    folder = loader.Folder(loader.written(quick_context("pipelines"), tmp_path, 8))
    pictures = [folder[index] for index in range(8)]
    options = loader.OPTIONS | {"rounding": loader.ROUNDINGS[device]}
    made = loader.of_images.resize(pictures, loader.SIDE, device="cpu", **options)
    assert np.abs(made - loader.Processed()(pictures).numpy()).max() <= loader.Loaded.tolerance


def test_an_answer_is_thinned_where_it_is_much(monkeypatch):
    monkeypatch.setattr(sys.modules[thinned.__module__], "CHECKED", 10)
    assert len(thinned(np.zeros((5, 2)))) == 5 and len(thinned(np.zeros((5, 4)))) == 2
