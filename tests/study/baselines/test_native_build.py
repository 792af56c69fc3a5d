"""Baselines in C++: their sources are checked, compiled where there is a compiler, and else a reason."""

import hashlib
import os
import shutil
import stat
from pathlib import Path

import pytest

from octopus_study.baselines import native_build
from octopus_study.baselines.availability import Unavailable
from octopus_study.baselines.native_build import Source, fetch, library, sources
from octopus_study.errors import DataError

CONTENT = b"// nothing\n"
SOURCE = Source("cuframe", "who/what", "c0ffee", {"src/a.cu": ("a.cu", hashlib.sha256(CONTENT).hexdigest())})


@pytest.fixture(autouse=True)
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
    """A compiler that is a script."""
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
    with pytest.raises(Unavailable, match=r"the source of cuframe can't be had: .*its SHA-256 is"):
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
