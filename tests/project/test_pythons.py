"""The Pythons beside the one of the tests: an environment made of the lock, with a small core in it; those refused."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from copies import copied
from test_lock import load
from workflow_copy import COPIED, QUICK

INSTALLED = (*COPIED, "pyproject.toml", "README.md", "LICENSE", "requirements.lock")
LONG = pytest.mark.skipif("OCTOPUS_FAULTS" not in os.environ, reason="`make faults` runs it")
CORE = """
import numpy as np, octopus
from octopus_study.reference import crops as reference

frame = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
boxes = np.array([[3, 5, 40, 30], [0, 0, 64, 48], [10, 10, 11, 11]])
crops = octopus.crop_resize(frame, boxes, (24, 32), mean=3.0, std=2.0)
np.testing.assert_allclose(crops, reference.crop_resize(frame, boxes, (24, 32), 3.0, 2.0), atol=1e-3)
"""


def python_of(version: str) -> str:
    """The Python of that version, from the PATH or from pyenv; without one the test is skipped."""
    name = f"python{version}"
    places = [shutil.which(name), *sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/{name}"))]
    for place in filter(None, places):  # one on the PATH may be a script of pyenv that has none to call
        if subprocess.run([place, "-c", ""], capture_output=True, check=False).returncode == 0:
            return str(place)
    pytest.skip(f"not here: Python {version}")


def run(*command: object, folder: Path) -> str:
    """Run what must succeed, and see nothing of this checkout."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"OCTOPUS_CACHE_DIR": str(folder / "kernels"), "OCTOPUS_MIRROR": ""}
    done = subprocess.run(list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


@LONG
@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_what_the_lock_installs_works(version: str, root: Path, tmp_path: Path) -> None:
    found = python_of(version)
    folder = copied(root, tmp_path / "it's (a) clone [x]", INSTALLED)
    run(found, "-m", "venv", folder / ".venv", folder=folder)
    own = folder / ".venv/bin"
    run(own / "python", "workflow/scripts/install.py", "requirements.lock", folder=folder)
    run(own / "python", "-c", CORE, folder=folder)
    said = " ".join(run(own / "octopus", "doctor", folder=folder).split())
    assert f"machine Python ok {version}." in said and "backend numba ok" in said
    planned = run(own / "snakemake", "-n", "--cores", "1", *QUICK, folder=folder)
    assert "This was a dry-run" in planned and "paper" in planned


@pytest.mark.parametrize("version", [(3, 10), (3, 11), (3, 13), (3, 14), (4, 0)])
def test_other_pythons_are_refused_before_anything_is_fetched(version, root, monkeypatch):
    install, calls = load(root, "install"), []
    monkeypatch.setattr(sys, "version_info", (*version, 0))
    monkeypatch.setattr(install, "pip", lambda *arguments, cwd=None: calls.append(arguments))
    monkeypatch.setattr(install, "compile_modules", lambda: None)
    try:
        install.main(str(root / "requirements.lock"))
    except SystemExit as end:
        refused = "{}.{}".format(*version)
        assert f"needs Python 3.11, 3.12 or 3.13, and this is {refused}" in str(end.code) and not calls
    else:
        assert (3, 11) <= version < (3, 14) and calls
