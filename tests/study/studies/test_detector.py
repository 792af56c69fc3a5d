"""The study of the detector with a stand-in for torch and the network: who takes part, and what counts as the same."""

from __future__ import annotations

import fake_tensors
import numpy as np
import pytest
from fake_tensors import Tensor

from octopus_study.baselines.availability import Unavailable
from octopus_study.measure import validate_rows
from octopus_study.studies.comparison import measure_plan
from octopus_study.studies.detector import study as detector
from octopus_study.studies.detector.inputs import OctopusInput, OpenCvInput
from octopus_study.studies.detector.model import Detections
from octopus_study.studies.detector.study import Camera, unmatched

CELL = 16
THRESHOLD = 0.5


class Bright:
    """Finds the cells of the input that are brighter than the others."""

    def __init__(self, examples, device, seed):
        assert examples.dtype == np.float32
        assert len(examples) >= 2

    def infer(self, images):
        planes = images.numpy()
        _, _, height, width = planes.shape
        cells = planes.reshape(3, height // CELL, CELL, width // CELL, CELL).mean(axis=(0, 2, 4))
        return 1 / (1 + np.exp(-cells))

    def finish(self, answer, back):
        rows, columns = np.nonzero(answer > THRESHOLD)
        corners = np.stack([columns, rows, columns + 1, rows + 1], axis=1).astype(np.float32) * CELL
        boxes = back(Tensor(corners)).numpy()
        return Detections(boxes, answer[rows, columns].astype(np.float32), np.ones(len(boxes), np.int64))


@pytest.fixture
def torch(monkeypatch):
    monkeypatch.setattr(detector, "Detector", Bright)
    return fake_tensors.install(monkeypatch)


@pytest.fixture
def context(quick_context):
    return quick_context("detector")


def rows_of(context):
    return measure_plan(context, detector.plan(context))


def chosen(rows, **where):
    return [row for row in rows if all(getattr(row, name) == value for name, value in where.items())]


def test_every_way_is_timed_on_every_frame_and_finds_the_same(context, torch):
    rows = rows_of(context)
    validate_rows(rows)
    ways = {"octopus", "octopus-again", "opencv", "opencv-uint8"}
    for stage in detector.STAGES:
        timed = chosen(rows, quantity=stage, unit="ms", layer="host")
        assert {row.method for row in timed} == ways
        for way in ways:
            assert [row.block for row in timed if row.method == way] == list(range(4))
        assert {row.answer for row in timed} == {"n/a" if stage == "inference" else "same"}
    main = [row for row in rows if row.workload == rows[0].workload]
    (count,) = {row.value for row in chosen(main, quantity="detections")}
    assert count > 4
    differing = chosen(main, quantity="detections_unmatched")
    assert [(row.method, row.value, row.answer) for row in differing] == [
        ("opencv", 0, "same"),
        ("opencv-uint8", 0, "same"),
    ]


def test_a_way_that_finds_something_else_is_told_in_every_row(context, torch, monkeypatch):
    right = OpenCvInput.prepare
    monkeypatch.setattr(OpenCvInput, "prepare", lambda way, frame: right(way, 255 - frame))
    rows = [row for row in rows_of(context) if row.method == "opencv"]
    (differing,) = [row for row in rows if row.quantity == "detections_unmatched" and row.n == 4]
    assert differing.value > 4
    assert differing.answer == "different: other detections in 4 of 4 frames"
    assert chosen(rows, quantity="end_to_end")[0].answer == differing.answer
    assert chosen(rows, quantity="preprocess")[0].answer.startswith("different: by as much as")


def test_octopus_is_judged_by_the_float64_reference(context, torch, monkeypatch):
    right = OctopusInput.prepare
    monkeypatch.setattr(OctopusInput, "prepare", lambda way, frame: right(way, 255 - frame))
    rows = chosen(rows_of(context), method="octopus", quantity="end_to_end")
    assert {row.answer for row in rows} == {"different: other detections in 4 of 4 frames"}


def test_a_way_that_can_not_be_had_is_a_row_and_the_others_go_on(context, torch, monkeypatch):
    def broken(way, job):
        raise Unavailable("no such luck")

    monkeypatch.setattr(OpenCvInput, "__init__", broken)
    rows = rows_of(context)
    validate_rows(rows)
    gaps = [row for row in rows if row.value is None and row.method == "opencv"]
    assert {row.quantity for row in gaps} == {*detector.STAGES, *detector.COUNTS}
    assert all("no such luck" in row.answer for row in gaps)
    assert len(chosen(rows, method="opencv-uint8", quantity="end_to_end")) == 4


def test_the_camera_pans_to_the_mirrored_edge_and_back():
    frame = np.random.default_rng(1).integers(0, 256, (4, 40, 3), np.uint8)
    camera = Camera(frame)
    assert np.array_equal(camera.frame(0), frame)
    assert np.array_equal(camera.frame(1)[:, :32], frame[:, 8:])
    assert np.array_equal(camera.frame(1)[:, 32:], frame[:, :31:-1])
    assert np.array_equal(camera.frame(5), frame[:, ::-1])
    assert np.array_equal(camera.frame(6), camera.frame(4))
    assert np.array_equal(camera.frame(10), frame)
    one = camera.frame(3)
    one[:] = 0
    assert camera.frame(3).any()


def result(*found):
    """Detections of (left, top, right, bottom, score, label)."""
    table = np.array(found, np.float64).reshape(-1, 6)
    return Detections(table[:, :4].astype(np.float32), table[:, 4].astype(np.float32), table[:, 5].astype(int))


ONE, TWO = (0, 0, 100, 100, 0.9, 1), (200, 0, 300, 100, 0.8, 2)


def test_the_order_of_detections_and_rounding_do_not_matter():
    moved = (200.5, 0, 300, 99.5, 0.801, 2)
    assert unmatched(result(moved, ONE), result(ONE, TWO)) == 0


@pytest.mark.parametrize("other", [(202, 0, 300, 100, 0.8, 2), (200, 0, 300, 100, 0.79, 2), (200, 0, 300, 100, 0.8, 3)])
def test_another_box_score_or_label_is_another_detection(other):
    assert unmatched(result(ONE, other), result(ONE, TWO)) == 2


def test_a_detection_that_is_missing_counts_from_either_side():
    for pair in ((result(ONE), result(ONE, TWO)), (result(ONE, TWO), result(ONE)), (result(), result(TWO))):
        assert unmatched(*pair) == 1
    assert unmatched(result(), result()) == 0


def test_no_detection_is_partner_of_two():
    assert unmatched(result(ONE, ONE), result(ONE)) == 1
