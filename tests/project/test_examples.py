"""The programs in examples/ run as a user would run them."""

import os
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from octopus.backends import cache

TINY = ["--frames", "6", "--most", "4", "--width", "96", "--height", "64"]


def run(root: Path, arguments: list[str], name: str = "drone_stream", **environment: str) -> str:
    command = [sys.executable, f"examples/{name}.py", *arguments]
    done = subprocess.run(
        command, cwd=root, env=os.environ | environment, check=True, capture_output=True, text=True, timeout=300
    )
    return done.stderr


@pytest.mark.parametrize(("name", "arguments", "words"), [
    ("detector_graph", ["--frames", "0"], "must be at least 1"),
    ("detector_graph", ["--frames", "-1"], "must be at least 1"),
    ("detector_graph", ["--width", "8", "--height", "8"], "--width and --height 32"),
    ("drone_stream", ["--most", "0"], "must be at least 1"),
    ("drone_stream", ["--width", "3"], "width and height 4"),
    ("ray_images", ["--batch", "0"], "found --batch 0; --workers must be"),
    ("ray_images", ["--workers", "-1", "--size", "0"], "found --workers -1, --size 0; --workers"),
    ("ray_images", ["--folder", "nowhere"], "--folder nowhere is no folder"),
    ("ray_images", ["--folder", "README.md"], "--folder README.md is no folder"),
    ("ray_images", ["--out", "nowhere/batch.npy"], "lies in no folder that exists"),
])  # fmt: skip
def test_wrong_words_get_one_clear_error(root: Path, name: str, arguments: list[str], words: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        run(root, arguments, name, CUDA_VISIBLE_DEVICES="")
    assert failed.value.returncode == 2 and words in failed.value.stderr
    assert "Traceback" not in failed.value.stderr


def test_the_stream_of_a_drone_goes_on_the_cpu_without_a_gpu(root: Path) -> None:
    said = run(root, TINY, CUDA_VISIBLE_DEVICES="")
    assert re.search(r"6 frames with \d+ boxes, on the CPU", said)
    assert re.search(r"no GPU is usable; crops on the CPU: [\d.]+ ms per frame", said)


@pytest.mark.gpu
def test_the_stream_of_a_drone_says_how_much_of_the_uploads_is_hidden(root: Path) -> None:
    said = run(root, ["--frames", "60"])
    assert "on the CUDA" in said and "hidden: " in said


def written_by_opencv(path: Path) -> None:
    cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed")
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"MJPG"), 25, (96, 64))
    for level in range(0, 140, 20):
        writer.write(np.full((64, 96, 3), level, np.uint8))
    writer.release()


def test_a_file_is_played_by_the_first_decoder_that_can(root: Path, tmp_path: Path) -> None:
    written_by_opencv(tmp_path / "video.avi")
    said = run(root, ["--video", str(tmp_path / "video.avi"), "--most", "4"], CUDA_VISIBLE_DEVICES="")
    assert re.search(
        r"7 frames by (TorchCodec|PyAV|OpenCV) with \d+ made-up boxes, on the CPU: [\d.]+ ms per frame", said
    )


def test_a_file_that_no_decoder_reads_is_said(root: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        run(root, ["--video", "README.md"])
    assert "not by OpenCV: " in failed.value.stderr and "no decoder reads README.md" in failed.value.stderr


@pytest.mark.gpu
def test_a_file_is_played_on_a_gpu(root: Path, tmp_path: Path) -> None:
    written_by_opencv(tmp_path / "video.avi")
    assert "made-up boxes, on the CUDA" in run(root, ["--video", str(tmp_path / "video.avi")])


def test_a_detector_and_its_crops_go_on_the_cpu_without_a_gpu(root: Path) -> None:
    said = run(root, TINY, "detector_graph", CUDA_VISIBLE_DEVICES="")
    made = re.search(r"6 frames, (\d+) crops of at most 24: [\d.]+ ms a frame", said)
    assert made and 0 < int(made[1]) < 24


@pytest.mark.gpu
def test_a_detector_and_its_crops_are_one_graph(root: Path) -> None:
    """The frames are the same as on the CPU, and so are their detections."""
    pytest.importorskip("torch")
    said = [run(root, TINY, "detector_graph", **hidden) for hidden in ({}, {"CUDA_VISIBLE_DEVICES": ""})]
    assert len({re.sub(r"[\d.]+ ms", "", line) for line in said}) == 1


def resized(root: Path, folder: Path, workers: int) -> tuple[str, np.ndarray]:
    """What the program says, and what it writes, of 21 images in 6 blocks; Ray leaves files in its user's home."""
    home = {"HOME": str(folder), "OCTOPUS_CACHE_DIR": str(cache.own_dir())}  # where no kernel is compiled yet
    home |= {"RAY_USAGE_STATS_ENABLED": "0", "CUDA_VISIBLE_DEVICES": ""}
    out = folder / f"{workers}.npy"
    given = ["--images", "21", "--batch", "4", "--size", "64", "--workers", str(workers), "--out", str(out)]
    return run(root, given, "ray_images", **home), np.load(out)


def test_images_of_a_folder_without_ray(root: Path, tmp_path: Path) -> None:
    said, pixels = resized(root, tmp_path, 0)
    assert "21 images in 6 batches by this process: none lost, none twice, all in order" in said
    assert pixels.shape == (21, 3, 64, 64) and len(np.unique(pixels.mean(axis=(1, 2, 3)))) == 21
    if find_spec("ray") is None:
        assert "without Ray, in this process alone" in resized(root, tmp_path, 2)[0]


def test_images_of_a_folder_by_two_workers_of_ray(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray.data", reason="Ray Data is not installed")
    said, pixels = resized(root, tmp_path, 2)
    assert "21 images in 6 batches by 2 workers of Ray: none lost, none twice, all in order" in said
    assert np.array_equal(pixels, resized(root, tmp_path, 0)[1])


@pytest.mark.parametrize(("places", "words"), [
    ([[0, 1], [2, 3], [4]], None),
    ([[0, 1], [4]], "expected images from 2 on, found [4]"),
    ([[0, 1], [2, 3]], "expected 5 images, found 4"),
    ([[0, 1], [0, 1], [2, 3], [4]], "expected images from 2 on, found [0, 1]"),
    ([[2, 3], [0, 1], [4]], "expected images from 0 on, found [2, 3]"),
    ([[1, 0], [2, 3], [4]], "expected images from 0 on, found [1, 0]"),
])  # fmt: skip
def test_images_that_are_lost_twice_or_out_of_place_are_found(root: Path, places: Any, words: str | None) -> None:
    checked = runpy.run_path(str(root / "examples/ray_images.py"))["checked"]
    batches = [{"place": np.array(place), "pixels": np.array(place)} for place in places]
    if words is None:
        assert np.concatenate(list(checked(batches, 5))).tolist() == [0, 1, 2, 3, 4]
        return
    with pytest.raises(RuntimeError, match=re.escape(words)):
        list(checked(batches, 5))
