"""The detector itself on the GPU: the same input gives the same bits, and every way ends in the same detections."""

from __future__ import annotations

import numpy as np
import pytest

from octopus_study.studies.detector.inputs import INPUT_METHODS, InputJob, OctopusInput, OpenCvInput
from octopus_study.studies.detector.model import Detector, reproducible

SHAPE, SIZE = (216, 384, 3), (128, 128)


def pictures(count):
    rough = np.random.default_rng(1).integers(0, 256, (count, 27, 48, 3), np.uint8)
    return rough.repeat(8, axis=1).repeat(8, axis=2)


@pytest.fixture(scope="module")
def job():
    return InputJob(SHAPE, SIZE, (123.675, 116.28, 103.53), (58.395, 57.12, 57.375), "cuda", 1)


@pytest.fixture(scope="module")
def detector(job):
    return Detector(np.concatenate([job.expected(frame) for frame in pictures(4)]), "cuda", 42)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", INPUT_METHODS, ids=lambda kind: kind.name)
def test_an_input_on_the_gpu_is_the_reference(job, kind):
    way = kind(job)
    for frame in pictures(2):
        planes = way.prepare(frame)
        assert planes.is_cuda
        assert np.abs(planes.cpu().numpy() - job.expected(frame)).max() < 1e-2


@pytest.mark.gpu
def test_detections_repeat_to_the_bit_and_do_not_depend_on_who_prepared_the_input(job, detector):
    frame, results = pictures(1)[0], []
    with reproducible(detector.torch):
        for kind in (OctopusInput, OctopusInput, OpenCvInput):
            way = kind(job)
            results.append(detector.finish(detector.infer(way.prepare(frame)), way.back))
    first, second, third = results
    assert len(first.boxes) > 5
    assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))
    assert np.array_equal(np.sort(first.labels), np.sort(third.labels))
    assert np.allclose(np.sort(first.scores), np.sort(third.scores), atol=5e-3)
