"""The library's wheel, made of its sdist: small, alone, quick to import, right on the CPU; the artifact's: whole."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import cv2
import numpy as np
import pytest
from packaging.requirements import Requirement

BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE", "octopus")
ARTIFACT = ("octopus_study", "pandas", "cv2", "snakemake", "psutil", "platformdirs", "pydantic", "typer", "rich")
BOXES = np.array([[3, 5, 40, 30], [0, 0, 64, 48], [10, 10, 11, 11]])

COMMAND = "import sys; from octopus.cli import main; sys.exit(main())"
USE = """
import sys
from importlib.util import find_spec

import numpy as np

import octopus

given = np.load(sys.argv[1])
crops = octopus.crop_resize(given["frame"], given["boxes"], (24, 32))
np.testing.assert_allclose(crops, given["expected"], atol=1e-3)
batch = octopus.RaggedBatch.from_list([np.ones((4, 6), np.float32), np.ones((3, 2), np.float32)])
assert octopus.ops.multiply(batch, [0.5, 2.0])[1].max() == 2
assert octopus.keep_tiles(np.ones((8, 8), np.uint8), [[0, 0, 8, 8]], 0.0)[0].all()
print(*(name for name in sys.argv[2:] if find_spec(name)))
"""


def run(*command: object, folder: Path) -> str:
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def needed(package: str) -> set[str]:
    """The distributions that a plain `pip install` of a package brings, itself among them."""
    requirements = map(Requirement, distribution(package).requires or ())
    plain = [item.name for item in requirements if not item.marker or item.marker.evaluate({"extra": ""})]
    return {package}.union(*map(needed, plain))


def built(root: Path, names: tuple[str, ...], folder: Path) -> Path:
    """Build a sdist from a copy, so that neither old build folders get in nor new ones are left, and a wheel of it."""
    source = folder / "source"
    source.mkdir()
    for name in names:
        copy = shutil.copytree if (root / name).is_dir() else shutil.copy
        copy(root / name, source / name)
    build = f"from setuptools.build_meta import build_sdist; build_sdist({str(folder)!r})"
    run(sys.executable, "-c", build, folder=source)
    options = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", folder)
    run(sys.executable, "-m", "pip", "wheel", *options, next(folder.glob("*.tar.gz")), folder=folder)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(root, BUILT_FROM, tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel and links to what it needs, made without a network."""
    folder = tmp_path_factory.mktemp("bare")
    run(sys.executable, "-m", "venv", "--without-pip", folder, folder=folder)
    site = next(folder.glob("lib/python*/site-packages"))
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index")
    run(*pip, "--target", site, wheel, folder=folder)
    for package in needed("octopus-ragged") - {"octopus-ragged"}:
        files = distribution(package).files or ()
        for name in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            (site / name).symlink_to(Path(distribution(package).locate_file(name)))
    return folder / "bin" / "python"


def test_the_wheel_is_small_and_holds_the_library_alone(wheel: Path) -> None:
    assert wheel.stat().st_size < 450_000
    names = zipfile.ZipFile(wheel).namelist()
    assert "octopus/py.typed" in names
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"octopus", "octopus_ragged"}
    others = {name for name in names if name.startswith("octopus/") and not name.endswith((".py", "py.typed"))}
    assert others == {"octopus/integrations/code.tsv", "octopus/known_faults.tsv"}


def test_installing_it_brings_at_most_five_packages() -> None:
    assert needed("octopus-ragged") == {"octopus-ragged", "numpy", "numba", "llvmlite"}


def test_importing_it_takes_less_than_a_tenth_of_a_second(bare: Path) -> None:
    code = "import time; start = time.perf_counter(); import octopus; print(time.perf_counter() - start)"
    assert min(float(run(bare, "-c", code, folder=bare.parent)) for _ in range(5)) < 0.1


def test_it_is_right_on_the_cpu_without_any_package_of_the_artifact(bare: Path, tmp_path: Path) -> None:
    frame = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
    crops = [frame[y1:y2, x1:x2].astype(np.float32) for x1, y1, x2, y2 in BOXES]
    expected = [cv2.resize(crop, (32, 24), interpolation=cv2.INTER_LINEAR).transpose(2, 0, 1) for crop in crops]
    np.savez(tmp_path / "given.npz", frame=frame, boxes=BOXES, expected=expected)
    (tmp_path / "use.py").write_text(USE)
    assert run(bare, "use.py", "given.npz", *ARTIFACT, folder=tmp_path).split() == []


def test_its_command_has_the_library_s_two_commands(bare: Path, tmp_path: Path) -> None:
    listed = run(bare, "-c", COMMAND, "--help", folder=tmp_path).partition("commands:\n")[2]
    assert [line.split()[0] for line in listed.splitlines()] == ["doctor", "tune"]
    found = run(bare, "-c", COMMAND, "doctor", folder=tmp_path)
    assert re.search(r"^backend +numba +ok ", found, re.MULTILINE)


def test_the_wheel_of_the_artifact_holds_every_file_of_its_package(root: Path, tmp_path: Path) -> None:
    names = ("pyproject.toml", "octopus_study")
    there = set(zipfile.ZipFile(built(root / "workflow", names, tmp_path)).namelist())
    package = root / "workflow/octopus_study"
    files = (path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc")
    assert {path.relative_to(root / "workflow").as_posix() for path in files} - there == set()
