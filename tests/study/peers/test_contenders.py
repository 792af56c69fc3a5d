"""Every contender computes what its name promises, on the CPU and, with the marker `gpu`, on the GPU."""

from __future__ import annotations

import numpy as np
import pytest
from octopus_study.peers.fused import NLaunchesFused, Octopus, OctopusOnGpu
from octopus_study.peers.job import make_job
from octopus_study.peers.opencv import OpenCv, OpenCvInPlace
from octopus_study.peers.published import NLaunches, Published, build_metadata

from octopus.kernels import reference

FRAME = np.random.default_rng(0).integers(0, 256, (200, 300, 3), np.uint8)
BOXES = np.array(
    [[0, 0, 1, 1], [299, 199, 300, 200], [0, 0, 300, 200], [5, 7, 9, 10], [10, 20, 60, 90]], np.int32
)
MEAN, STD = (10.0, 20.0, 30.0), (2.0, 4.0, 8.0)
EXACT = 0.255  # levels
ROUNDED = 0.5 + 1e-3

CPU = [
    (Octopus, EXACT),
    (NLaunchesFused, EXACT),
    (OpenCv, EXACT),
    (OpenCvInPlace, EXACT),
    (Published, ROUNDED),
    (NLaunches, ROUNDED),
]
GPU = [
    (Octopus, EXACT),
    (OctopusOnGpu, EXACT),
    (NLaunchesFused, EXACT),
    (Published, ROUNDED),
    (NLaunches, ROUNDED),
]


def largest_error(kind, device):
    job = make_job(FRAME, BOXES, (40, 56), MEAN, STD, device)
    contender = kind(job)
    job.poison()
    contender.run()
    expected = reference.crop_resize(FRAME, BOXES, (40, 56), np.array(MEAN), np.array(STD))
    levels = np.abs(job.result() - expected) * np.array(STD)[:, None, None]
    return levels.max()


@pytest.mark.parametrize(("kind", "limit"), CPU, ids=lambda value: getattr(value, "name", ""))
def test_on_the_cpu(kind, limit):
    assert largest_error(kind, "cpu") <= limit


@pytest.mark.gpu
@pytest.mark.parametrize(("kind", "limit"), GPU, ids=lambda value: getattr(value, "name", ""))
def test_on_the_gpu(kind, limit):
    assert largest_error(kind, "cuda") <= limit


def test_the_published_passes_do_round():
    assert largest_error(Published, "cpu") > EXACT


def test_stages_together_are_the_run():
    job = make_job(FRAME, BOXES, (40, 56), MEAN, STD, "cpu")
    published = Published(job)
    published.run()
    whole = job.out.copy()
    job.poison()
    published.upload()
    published.crop_resize()
    published.normalize()
    assert np.array_equal(job.out, whole)


def test_metadata_are_the_published_eight_words_per_object():
    job = make_job(FRAME, BOXES, (40, 56), MEAN, STD, "cpu")
    metadata = build_metadata(job)
    assert metadata.dtype == np.int32
    assert metadata[4].tolist() == [10, 20, 50, 70, 300, 200, 56, 40]
    # P1: 1000 objects x 8 int32 = 31 KB
    assert metadata[:1].nbytes * 1000 // 1024 == 31
