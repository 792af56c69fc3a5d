"""VisDrone's annotations, pool and frame, what studies draw of them, and data that were changed or are gone."""

import hashlib
import shutil
from dataclasses import replace

import cv2
import numpy as np
import pytest

from octopus_study.data import visdrone
from octopus_study.data.fetch import fetch
from octopus_study.data.manifest import write_manifest
from octopus_study.data.scene import load_scene
from octopus_study.data.sentinel2 import read_band, write_band
from octopus_study.data.workload import load_workload, sample_boxes
from octopus_study.errors import DataError


def make_root(root, annotations, sizes=(), images=()):
    for folder in ("annotations", "images"):
        (root / folder).mkdir(parents=True)
    for stem, text in annotations.items():
        (root / "annotations" / f"{stem}.txt").write_text(text)
    if sizes:
        lines = ["stem,width,height", *(",".join(map(str, row)) for row in sizes)]
        (root / "image_sizes.csv").write_text("\n".join(lines) + "\n")
    for stem, width, height in images:
        cv2.imwrite(str(root / "images" / f"{stem}.jpg"), np.zeros((height, width, 3), np.uint8))
    return root


@pytest.mark.parametrize(("text", "rows"), [
    ("1,2,3,4,1,4,0,0\n5,6,7,8,0,11,1,2\n", 2), ("1,2,3,4,1,4,0,0,\r\n", 1), ("1,2,3,4,1,4,0,0", 1), ("", 0),
])  # fmt: skip
def test_annotation_formats(tmp_path, text, rows):
    (tmp_path / "a.txt").write_text(text, newline="")
    array = visdrone.read_annotations(tmp_path / "a.txt")
    assert array.shape == (rows, 8) and array.dtype == np.int64
    assert rows == 0 or array[0].tolist() == [1, 2, 3, 4, 1, 4, 0, 0]


@pytest.mark.parametrize("text", ["1,2,3\n", "1,2,3,4,1,car,0,0\n", "<html>\n"])
def test_malformed_annotation_names_the_file(tmp_path, text):
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(DataError, match=r"a\.txt: expected rows of 8"):
        visdrone.read_annotations(tmp_path / "a.txt")


def test_pool_scales_with_truncation_and_keeps_the_closed_range(tmp_path):
    # The image has half the frame's sides; so 8 px become 16 and 160 px become 320.
    rows = [(1, 1, 8, 8), (1, 1, 7, 8), (1, 1, 160, 160), (1, 1, 161, 160)]
    rows += [(0, 1, 20, 20), (900, 1, 60, 20), (899, 1, 60, 20)]
    text = "".join(f"{x},{y},{w},{h},0,0,0,0\n" for x, y, w, h in rows)
    pool = visdrone.load_pool(make_root(tmp_path, {"a": text}, [("a", 960, 540)]))
    assert pool.dtype == np.int32
    assert pool.tolist() == [[2, 2, 18, 18], [2, 2, 322, 322], [1798, 2, 1918, 42]]


def test_pool_takes_the_first_files_in_sorted_order(tmp_path):
    texts = {stem: f"{index},9,30,30,1,4,0,0\n" for index, stem in enumerate("cab", start=1)}
    root = make_root(tmp_path, texts, [(stem, 1920, 1080) for stem in "abc"])
    assert visdrone.load_pool(root, files=2)[:, 0].tolist() == [2, 3]


def test_frame_is_rgb(drone_root):
    frame = visdrone.load_frame(drone_root)
    bgr = cv2.imread(str(visdrone.frame_path(drone_root)))
    assert frame.shape == (1080, 1920, 3) and frame.dtype == np.uint8 and frame.flags.c_contiguous
    np.testing.assert_array_equal(frame[..., 0], bgr[..., 2])


def test_frame_that_is_missing_or_of_another_size(tmp_path):
    root = make_root(tmp_path, {"a": ""})
    with pytest.raises(DataError, match="missing or no image"):
        visdrone.load_frame(root)
    cv2.imwrite(str(root / "images" / "a.jpg"), np.zeros((54, 96, 3), np.uint8))
    with pytest.raises(DataError, match="96 x 54 px; expected 1920 x 1080 px"):
        visdrone.load_frame(root)


def test_content_digest_is_that_of_the_checksum_list(tmp_path):
    sizes = [("a", 8, 8), ("b", 640, 480)]
    root = make_root(tmp_path, {"b": "", "a": "1,2,3,4,1,4,0,0\n"}, sizes, images=[("a", 8, 8)])
    listing = "".join(
        f"{hashlib.sha256((root / name).read_bytes()).hexdigest()}  {name}\n"
        for name in ("annotations/a.txt", "annotations/b.txt", "image_sizes.csv", "images/a.jpg")
    )
    assert visdrone.content_digest(root) == hashlib.sha256(listing.encode()).hexdigest()


def test_content_digest_notices_each_change(drone_root, tmp_path):
    before = visdrone.content_digest(drone_root)
    root = shutil.copytree(drone_root, tmp_path / "copy")
    assert visdrone.content_digest(root) == before
    last = visdrone.annotation_files(root)[-1]
    last.write_text(last.read_text().replace("1,4,0,0", "1,5,0,0"))
    digests = {before, visdrone.content_digest(root)}
    table = root / "image_sizes.csv"
    table.write_text(table.read_text().replace("1920,1080", "1921,1080"))
    digests.add(visdrone.content_digest(root))
    visdrone.frame_path(root).unlink()
    assert len(digests | {visdrone.content_digest(root)}) == 4


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


def first_of(folder):
    return min(folder.iterdir())


CHANGED, GONE = r"changed since it was fetched: .* `snakemake", r"are gone from .* `snakemake --cores 1`"
BLACK = np.zeros((1080, 1920, 3), np.uint8)


@pytest.mark.parametrize(("spoil", "message"), [
    (lambda root: first_of(root / "annotations").write_text("1,1,20,20,1,4,0,0\n"), CHANGED),
    (lambda root: cv2.imwrite(str(first_of(root / "images")), BLACK), CHANGED),
    (shutil.rmtree, GONE),
])  # fmt: skip
def test_data_that_are_changed_or_gone_are_refused(tmp_path, spoil, message):
    spoil(tmp_path / fetch("visdrone-val", raw_dir=tmp_path, mode="sample").path)
    with pytest.raises(DataError, match=message):
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
