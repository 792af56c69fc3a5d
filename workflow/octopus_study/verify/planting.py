"""Planting a fault in a copy of the checkout and asking the check that must notice, in a process of its own."""

from __future__ import annotations

import difflib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from octopus.errors import InputError
from octopus_study.verify.plants import PLANTS, Plant
from octopus_study.verify.scene import Paths, build

_COPIED = ("octopus", "workflow", "config", "paper", "data/published")
_IGNORED = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
_COMMAND = "import sys; from octopus_study.cli.commands import app; app(sys.argv[1:])"
_SECONDS, _AT_ONCE = 600, 2


class Harvest(NamedTuple):
    """What came of a plant: whether its check was red, and what it said."""

    name: str
    caught: bool
    said: str

    @property
    def line(self) -> str:
        """The outcome in one line."""
        check = PLANTS[self.name].check
        return f"{self.name:<20} {f'caught by {check}' if self.caught else f'NOT caught by {check}'}: {self.said}"


def listed() -> Iterator[str]:
    """Yield each plant with the check that must notice it."""
    for name, plant in PLANTS.items():
        yield f"{name:<20} {plant.check:<10} {plant.what}"


def harvest(name: str, root: Path) -> Iterator[Harvest]:
    """Plant one fault, or ``all``, and yield what came of each.

    Raises
    ------
    InputError
        There is no such plant, or it no longer fits the code.
    """
    chosen = list(PLANTS) if name == "all" else [name]
    if name != "all" and name not in PLANTS:
        near = difflib.get_close_matches(name, PLANTS, n=3) or list(PLANTS)
        raise InputError(
            f"There is no plant {name!r}; there are {', '.join(near)} (all: octopus verify --plants)."
        )
    with TemporaryDirectory(prefix="octopus-plant-") as folder:
        built = Path(folder, "build")
        if any(PLANTS[one].built and _reads_build(PLANTS[one]) for one in chosen):
            build(Paths().below(root), None, built)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            yield from pool.map(lambda one: _try(one, root.resolve(), built, Path(folder, one)), chosen)


def _reads_build(plant: Plant) -> bool:
    return plant.check not in ("answers", "clocks", "opponents", "sensors", "digests", "rows")


def _try(name: str, root: Path, built: Path, copy: Path) -> Harvest:
    plant = PLANTS[name]
    copy_checkout(root, copy, plant.study)
    if plant.built and built.is_dir():
        shutil.copytree(built, copy / "paper" / "build")
    try:
        plant.edit(copy)
    except InputError as error:
        return Harvest(name, False, str(error))
    done = run_in(copy, "verify", "--only", plant.check)
    shutil.rmtree(copy)
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    caught = done.returncode == 1 and f"red: {plant.check}" in done.stdout
    return Harvest(name, caught, lines[1] if caught else " ".join(lines[-3:]))


def copy_checkout(root: Path, copy: Path, study: str = "") -> None:
    """Copy sources; results are links, since they are large and hardly any is changed."""
    for part in _COPIED:
        shutil.copytree(root / part, copy / part, ignore=_IGNORED)
    reference = Path("data/reference")
    for path in [*(root / reference).glob("*.csv"), *(root / reference).glob(f"*/{study or '*'}.*")]:
        link = copy / path.relative_to(root)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path)


def run_in(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the artifact with the code of a copy."""
    environment = os.environ | {"PYTHONPATH": f"{copy}{os.pathsep}{copy / 'workflow'}", "MPLBACKEND": "agg"}
    command = [sys.executable, "-c", _COMMAND, *arguments]
    return subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
