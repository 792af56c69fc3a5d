import hashlib
import shutil

import cv2
import numpy as np
import pytest

from octopus_study.data import visdrone
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


@pytest.mark.parametrize(
    ("text", "rows"),
    [("1,2,3,4,1,4,0,0\n5,6,7,8,0,11,1,2\n", 2), ("1,2,3,4,1,4,0,0,\r\n", 1), ("1,2,3,4,1,4,0,0", 1), ("", 0)],
)
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
    rows = [
        (1, 1, 8, 8),
        (1, 1, 7, 8),
        (1, 1, 160, 160),
        (1, 1, 161, 160),
        (0, 1, 20, 20),
        (900, 1, 60, 20),
        (899, 1, 60, 20),
    ]
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
