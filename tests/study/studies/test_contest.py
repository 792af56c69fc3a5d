"""The check before the timing: what is wrong or unwritten is found, and never passes by old memory."""

from __future__ import annotations

import numpy as np
import pytest
from octopus_study.peers.fused import Octopus
from octopus_study.peers.job import make_job
from octopus_study.studies.contest import Entry, ReferenceCrops, check

from octopus.errors import InputError
from octopus.kernels import reference

FRAME = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)
BOXES = np.array([[1, 2, 30, 40], [5, 5, 6, 6], [0, 0, 80, 60]], np.int32)
MEAN, STD = (1.0, 2.0, 3.0), (2.0, 4.0, 8.0)


@pytest.fixture
def job():
    return make_job(FRAME, BOXES, (16, 12), MEAN, STD, "cpu")


@pytest.fixture
def expected():
    return ReferenceCrops(FRAME, (16, 12), MEAN, STD).of(BOXES)


def test_the_reference_is_that_of_the_kernels(expected):
    right = reference.crop_resize(FRAME, BOXES, (16, 12), np.array(MEAN), np.array(STD))
    assert np.allclose(expected, right, atol=1e-5)


def test_a_contender_that_writes_nothing_does_not_pass_with_old_values(job, expected):
    octopus = Octopus(job)
    entries = [Entry("octopus", octopus.run), Entry("lazy", lambda: None)]
    answers = check(job, entries, expected)
    assert answers["octopus"] == "same"
    assert answers["lazy"].startswith("different: ") and "NaN" in answers["lazy"]


def test_one_wrong_value_is_found_and_explained(job, expected):
    octopus = Octopus(job)

    def nearly():
        octopus.run()
        job.out[2, 1, 15, 11] += 0.5

    answers = check(job, [Entry("nearly", nearly, why_different="adds")], expected)
    assert answers["nearly"].startswith("different: largest error 0.")
    assert answers["nearly"].endswith("adds")


def test_a_contender_that_fails_is_unavailable_and_one_without_a_result_is_not_judged(job, expected):
    def fail():
        raise RuntimeError("no such engine")

    answers = check(job, [Entry("fails", fail), Entry("bound", lambda: None, answers=False)], expected)
    assert answers == {"fails": "unavailable: RuntimeError: no such engine", "bound": "n/a"}


def test_a_job_needs_a_device():
    with pytest.raises(InputError, match="cpu or cuda"):
        make_job(FRAME, BOXES, (16, 12), MEAN, STD, "auto")


def test_a_part_of_the_crops_can_be_compared(job, expected):
    octopus = Octopus(job)
    entries = [Entry("octopus", octopus.run), Entry("lazy", lambda: None)]
    answers = check(job, entries, expected[::2], every=2)
    assert answers["octopus"] == "same"
    assert answers["lazy"].startswith("different: ")
