"""A package that is missing or broken is a reason, never a crash; sources in C++ are checked, then compiled."""

import hashlib
import os
import shutil
import stat
import sys
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest
from crop_methods import BOXES, job, padded_items

from octopus.backends import cpu
from octopus_study.baselines import availability, native_build
from octopus_study.baselines.availability import Unavailable, need, need_torch, require_room
from octopus_study.baselines.graphs import PaddedGraph
from octopus_study.baselines.native_build import Source, fetch, library, sources
from octopus_study.errors import DataError
from octopus_study.studies import context


def test_a_missing_package_and_how_to_get_it():
    with pytest.raises(Unavailable, match=r"^Warp Drive is not installed \(pip install warp\)$"):
        need("octopus_warp_drive", "Warp Drive", "pip install warp")


def test_torch_has_the_threads_of_the_library(monkeypatch):
    """By itself it has those of OMP_NUM_THREADS, which Snakemake sets to its `--cores`."""
    torch = MagicMock(__file__="torch.py")
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(availability, "_installed", lambda module: True)
    before = cpu.set_num_threads(3)
    try:
        assert need_torch("cpu", "baselines") is torch
        torch.set_num_threads.assert_called_once_with(3)
        context._set_threads(2)
        torch.set_num_threads.assert_called_with(2)
        assert cpu.get_num_threads() == 2
    finally:
        context._set_threads(before)


def test_a_folder_of_stubs_is_no_package(tmp_path, monkeypatch):
    (tmp_path / "octopus_stubs").mkdir()
    (tmp_path / "octopus_stubs" / "__init__.pyi").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Unavailable, match="is not installed"):
        need("octopus_stubs", "Warp Drive")


def test_too_little_memory_says_both_amounts(monkeypatch):
    monkeypatch.setattr("octopus.backends.cuda.memory.free_bytes", lambda: 1233)
    require_room("it", "cuda", 1233)
    with pytest.raises(Unavailable, match=r"it needs 1,234 bytes on the GPU for this batch, 1,233 are free"):
        require_room("it", "cuda", 1234)


def test_padding_puts_each_crop_in_a_corner():
    boxes = BOXES[[0, 3, 4]]
    method = object.__new__(PaddedGraph)
    method.job = job("cpu", boxes)
    (padded,) = method.inputs()
    method.batch.host.fill(7)
    method.prepare()
    assert np.array_equal(padded.owner, padded_items(boxes))


CONTENT = b"// nothing\n"
SOURCE = Source("cuframe", "who/what", "c0ffee", {"src/a.cu": ("a.cu", hashlib.sha256(CONTENT).hexdigest())})


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """No network, a cache and a mirror of one's own, and a device that needs no GPU."""

    def unreachable(url, path, check, **_):
        if not Path(path).exists():
            raise DataError(f"can't reach {url}")

    monkeypatch.setattr(native_build, "download", unreachable)
    monkeypatch.setattr(native_build, "_device", lambda: "sm_90")
    monkeypatch.setenv("OCTOPUS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("OCTOPUS_MIRROR", str(tmp_path / "data"))
    return tmp_path


def mirrored(folder, content=CONTENT):
    place = folder / "peers_src" / "cuframe"
    place.mkdir(parents=True)
    (place / "a.cu").write_bytes(content)


def nvcc(folder, monkeypatch, script):
    place = folder / "bin"
    place.mkdir()
    (place / "nvcc").write_text(f"#!/bin/sh\n{script}\n")
    (place / "nvcc").chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")


def test_a_source_comes_from_beside_the_mirror_and_then_from_the_cache(alone):
    mirrored(alone)
    fetch(SOURCE, alone / "into")
    assert (alone / "into" / "a.cu").read_bytes() == CONTENT
    shutil.rmtree(alone / "peers_src")
    fetch(SOURCE, alone / "into")


def test_another_source_than_the_pinned_one_is_refused(alone):
    mirrored(alone, b"// something else\n")
    with pytest.raises(Unavailable, match=r"the source of cuframe can't be fetched: .*its SHA-256 is"):
        fetch(SOURCE, alone / "into")


def test_without_a_compiler_there_is_a_reason(alone, monkeypatch):
    monkeypatch.setenv("PATH", str(alone))
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(Unavailable, match=r"cuframe is C\+\+, and there is no compiler for it"):
        library(SOURCE)


def test_what_does_not_compile_is_a_reason_and_leaves_nothing(alone, monkeypatch):
    mirrored(alone)
    nvcc(alone, monkeypatch, "echo 'a.cu(1): error: no such thing' >&2; exit 2")
    with pytest.raises(Unavailable, match=r"cuframe can't be compiled: a.cu\(1\): error"):
        library(SOURCE)
    assert not list((alone / "cache").rglob("*.so"))


@pytest.mark.parametrize("source", sources().values(), ids=lambda source: source.name)
def test_sources_are_pinned(source):
    assert len(source.commit) == 40 and (native_build.HERE / f"{source.name}.cu").is_file()
    assert all(len(sha256) == 64 for _, sha256 in source.files.values())
