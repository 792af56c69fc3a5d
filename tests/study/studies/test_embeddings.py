"""From images to embeddings: the same answer by every way."""

import cv2
import numpy as np
import pytest

from octopus_study.baselines.availability import Unavailable
from octopus_study.measure import Case
from octopus_study.studies.images import embeddings
from octopus_study.studies.images.embeddings import KINDS, PATCH_14, PROJECTION, EmbeddingJob, Folded, counts, timed
from octopus_study.studies.images.job import ROWS
from octopus_study.studies.pictures import cut

COARSE = np.random.default_rng(5).integers(0, 256, (60, 90, 3), np.uint8)
FRAME = cv2.resize(COARSE, (900, 600), interpolation=cv2.INTER_CUBIC)
CASES = [*(("small", name) for name in KINDS), *(("large-patch14", name) for name in PATCH_14)]


@pytest.fixture
def job(request):
    pytest.importorskip("torch")
    model = embeddings.WORKLOADS[request.param][1]
    images = cut(FRAME, np.array([(300, 400), (700, 200), (150, 150)]), 1)
    return EmbeddingJob(images, ROWS, "cpu", model.patch, model, 42)


@pytest.mark.parametrize(("job", "name"), CASES, indirect=["job"])
def test_every_way_gives_the_embeddings_of_float32(job, name):
    try:
        method = (KINDS | PATCH_14)[name](job)
    except Unavailable as reason:
        assert name.startswith("transformers")
        pytest.skip(str(reason))
    # On a CPU the processor rounds between the passes as well, which moves some bytes by one.
    rounds_twice = name.startswith("transformers")
    for quantity in ("embeddings", PROJECTION):
        method.run()
        method.poison()
        if quantity == PROJECTION:
            method.make_rows()
        answer = job.check(timed(method, quantity, "host"), method.right)
        assert answer == "same" or (rounds_twice and answer.startswith("different: by as much as 0.0"))
    found = {row.quantity: row.value for row in counts(Case("images", "d", "small", 3), name, method)}
    assert found["cosine"] > (0.9998 if rounds_twice else 0.99998)
    assert 0 < found["largest_error"] < (0.02 if rounds_twice else 0.008)
    values = job.starts[-1] * job.patch**2 * 3  # each pixel once
    size = {"octopus": 2, "octopus-unpadded": 2, "octopus-bytes": 1, "octopus-bf16": 4}.get(name, 8)
    padded = 592 / 588 if (job.patch, name) == (14, "octopus") else 1
    assert found["row_bytes"] == pytest.approx(values * size * padded / 3)


@pytest.mark.parametrize("job", ["small"], indirect=True)
def test_rows_that_are_not_written_and_a_layer_without_its_bias_are_told(job):
    method = Folded(job)
    method.poison()
    assert job.check(method.timed(method.project), method.right).startswith("different: ")  # of NaN
    method.layer.bias.zero_()
    assert job.check(method.timed(), method.right).startswith("different: by as much as")
