import shutil
from dataclasses import replace

import cv2
import numpy as np
import pytest

from octopus_study.data.fetch import fetch
from octopus_study.data.manifest import write_manifest
from octopus_study.data.scene import load_scene
from octopus_study.data.sentinel2 import read_band, write_band
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


def test_workload_of_the_sample(tmp_path):
    fetch("visdrone-val", raw_dir=tmp_path / "raw", mode="sample", manifest=tmp_path / "r.json")
    workload = load_workload(tmp_path / "r.json")
    assert (workload.dataset, workload.synthetic) == ("synthetic-visdrone", True)
    assert workload.frame.shape == (1080, 1920, 3) and workload.pool.shape == (2045, 4)
    assert load_workload(tmp_path / "r.json").sha256 == workload.sha256


def first_file(kind, root):
    return sorted((root / kind).iterdir())[0]


@pytest.mark.parametrize(("kind", "change"), [("annotations", "1,1,20,20,1,4,0,0\n"), ("images", None)])
def test_changed_data_are_refused(tmp_path, kind, change):
    manifest = fetch("visdrone-val", raw_dir=tmp_path, mode="sample")
    file = first_file(kind, tmp_path / manifest.path)
    if change is None:
        black = np.zeros((1080, 1920, 3), np.uint8)
        assert cv2.imwrite(str(file), black)
    else:
        file.write_text(change)
    with pytest.raises(DataError, match=r"changed since it was fetched: .* `snakemake"):
        load_workload(tmp_path / "visdrone-val.json")


def test_data_that_are_gone_are_refused(tmp_path):
    manifest = fetch("visdrone-val", raw_dir=tmp_path, mode="sample")
    shutil.rmtree(tmp_path / manifest.path)
    with pytest.raises(DataError, match=r"are gone from .* `snakemake --cores 1`"):
        load_workload(tmp_path / "visdrone-val.json")


@pytest.mark.parametrize("name", ["visdrone-val", "sentinel2-b04"])
def test_a_manifest_that_calls_other_data_real_is_refused(tmp_path, name):
    path = tmp_path / f"{name}.json"
    manifest = fetch(name, raw_dir=tmp_path, mode="sample")
    write_manifest(replace(manifest, dataset=name, synthetic=False), path)
    with pytest.raises(DataError, match=f"not the real {name}, though its manifest says so"):
        load_workload(path) if name == "visdrone-val" else load_scene(path)


def test_a_changed_scene_is_refused(tmp_path):
    manifest = fetch("sentinel2-b04", raw_dir=tmp_path, mode="sample", window=[0, 0, 64, 32])
    band = read_band(tmp_path / manifest.path)
    write_band(tmp_path / manifest.path, replace(band, pixels=band.pixels // 2))
    with pytest.raises(DataError, match="synthetic-sentinel2 has been changed since it was fetched: "):
        load_scene(tmp_path / "sentinel2-b04.json")
