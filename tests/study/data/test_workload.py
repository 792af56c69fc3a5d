from __future__ import annotations

import numpy as np
import pytest

from octopus.errors import InputError
from octopus_study.data.fetch import fetch
from octopus_study.data.workload import load_workload, sample_boxes
from octopus_study.errors import DataError

POOL = np.arange(400, dtype=np.int32).reshape(100, 4)


def test_sample_is_the_published_draw():
    chosen = np.random.RandomState(42).choice(100, 30, replace=False)
    np.testing.assert_array_equal(sample_boxes(POOL, 30), POOL[chosen])
    assert sample_boxes(POOL, 30).flags.c_contiguous and sample_boxes(POOL, 30).dtype == np.int32


def test_sample_repeats_boxes_only_beyond_the_pool():
    assert len(np.unique(sample_boxes(POOL, 100), axis=0)) == 100
    assert sample_boxes(POOL, 101).shape == (101, 4)
    assert sample_boxes(POOL, 0).shape == (0, 4)


def test_bad_sample():
    with pytest.raises(InputError, match="asked for -1 boxes"):
        sample_boxes(POOL, -1)
    with pytest.raises(InputError, match="pool of 0"):
        sample_boxes(POOL[:0], 1)


def test_workload_of_the_sample(tmp_path):
    fetch("visdrone-val", raw_dir=tmp_path / "raw", mode="sample", receipt=tmp_path / "r.json")
    workload = load_workload(tmp_path / "r.json")
    assert (workload.dataset, workload.synthetic) == ("synthetic-visdrone", True)
    assert workload.frame.shape == (1080, 1920, 3) and workload.pool.shape == (2045, 4)
    assert load_workload(tmp_path / "r.json").sha256 == workload.sha256


def test_workload_needs_boxes(tmp_path):
    fetch("sentinel2-b04", raw_dir=tmp_path, mode="sample")
    with pytest.raises(DataError, match="a receipt for synthetic-sentinel2; a workload needs visdrone-val"):
        load_workload(tmp_path / "sentinel2-b04.json")
