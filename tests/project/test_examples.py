"""The programs in examples/ run as a user would run them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TINY = ["--frames", "6", "--most", "4", "--width", "96", "--height", "64"]


def run(root: Path, arguments: list[str], name: str = "drone_stream", **environment: str) -> str:
    command = [sys.executable, f"examples/{name}.py", *arguments]
    done = subprocess.run(
        command,
        cwd=root,
        env=os.environ | environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.stderr


def test_every_example_is_run_here(root: Path) -> None:
    found = sorted(path.name for path in (root / "examples").glob("*.py"))
    assert found == ["detector_graph.py", "drone_stream.py"]


def test_the_stream_of_a_drone_goes_on_the_cpu_without_a_gpu(root: Path) -> None:
    said = run(root, TINY, CUDA_VISIBLE_DEVICES="")
    assert re.search(r"6 frames with \d+ boxes, on the CPU", said)
    assert re.search(r"no GPU is usable; crops on the CPU: [\d.]+ ms per frame", said)


@pytest.mark.gpu
def test_the_stream_of_a_drone_says_how_much_of_the_uploads_is_hidden(root: Path) -> None:
    said = run(root, ["--frames", "60"])
    assert "on the CUDA" in said and "hidden: " in said


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
