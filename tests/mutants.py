"""``make mutants``: faults that no test may overlook: planted in a copy of the checkout where a few tests then run.

Seventeen of them survived an audit by hand; with each stands the test that fails now.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from octopus_study.verify.planting import copy_checkout
from octopus_study.verify.plants import PLANTS, Edit, code

ROOT = Path(__file__).resolve().parents[1]
STUDY = "workflow/octopus_study"
TESTS = "tests/study"
VERIFY = f"{TESTS}/report/test_verify.py"
SECONDS, AT_ONCE = 900, 2


class Mutant(NamedTuple):
    """A fault, and the tests of which one must fail."""

    edit: Edit
    tests: tuple[str, ...]


# Tests of the faults that `octopus verify --plant` plants too, by its names.
PLANTED = {
    "wrong-axis": (f"{VERIFY}::test_a_report_follows_from_its_rows[axes]",),
    "wrong-axis-energy": (f"{VERIFY}::test_a_report_follows_from_its_rows[axes]",),
    "wrong-prefix": (f"{TESTS}/report/test_text.py",),
    "scaled-rows": (f"{TESTS}/measure/test_paired_runner.py::test_units_are_converted",),
    "retyped": (f"{TESTS}/report/test_published.py",),
    "unwritten-memory": (
        f"{TESTS}/studies/test_arena.py::test_every_crop_is_compared_and_on_poisoned_memory",
    ),
    "first-crop": (f"{TESTS}/studies/test_arena.py::test_every_crop_is_compared_and_on_poisoned_memory",),
    "warm-l2": (f"{VERIFY}::test_instruments_are_right[clocks]",),
    "scaled-timer": (f"{VERIFY}::test_instruments_are_right[clocks]",),
    "energy-as-time": (f"{TESTS}/report/test_power_report.py::test_the_energy_ratio_is_time_times_power",),
    "slowed": (
        f"{VERIFY}::test_instruments_are_right[opponents]",
        f"{TESTS}/peers/test_peer_effort.py",
    ),
}
MUTANTS = {name: Mutant(PLANTS[name].edit, tests) for name, tests in PLANTED.items()} | {
    "at-least-by-the-high-end": Mutant(
        code(
            f"{STUDY}/report/claims/outcome.py",
            "inside = limits.low <= low and high <= limits.high",
            "inside = limits.low <= high and high <= limits.high",
        ),
        (f"{TESTS}/report/test_claims.py::test_both_ends_of_an_interval_count",),
    ),
    "published-total": Mutant(
        code("data/published/pipeline_gain.csv", "total,,gain,2.6", "total,,gain,3.6"),
        (f"{TESTS}/report/test_published.py",),
    ),
    "published-time": Mutant(
        code("data/published/detector.csv", "gpu-preprocessing,time,1490", "gpu-preprocessing,time,990"),
        (f"{TESTS}/report/test_published.py",),
    ),
    "retyped-claim": Mutant(
        code(
            "config/claims.yaml",
            "    published: published.detector.gpu-preprocessing.speedup\n",
            "    value: 1.02\n",
        ),
        (f"{TESTS}/report/test_claims.py::test_published_values_are_read_and_never_typed",),
    ),
    "torch-on-one-thread": Mutant(
        code(
            f"{STUDY}/peers/availability.py",
            "torch.set_num_threads(get_num_threads())",
            "torch.set_num_threads(1)",
        ),
        (f"{TESTS}/peers/test_availability.py",),
    ),
    "roi-align-twice": Mutant(
        code(
            f"{STUDY}/peers/roi_align.py",
            "planes = self.planes(self._planes)",
            "planes = self.planes(self._planes)\n        self._roi_align(planes, self._rois, self.job.size)",
        ),
        (f"{TESTS}/peers/test_peer_effort.py",),
    ),
    "cvcuda-twice": Mutant(
        code(
            f"{STUDY}/peers/cvcuda.py",
            "        super().kernels()\n        self.cv.normalize_into",
            "        super().kernels()\n        super().kernels()\n        self.cv.normalize_into",
        ),
        (f"{TESTS}/peers/test_peer_effort.py",),
    ),
    "verdict-ignores-noise": Mutant(
        code(
            f"{STUDY}/report/claims/outcome.py",
            "return low / (1 + floor), high * (1 + floor)",
            "return low, high",
        ),
        (f"{TESTS}/report/test_claims.py::test_a_difference_below_the_noise_floor_is_ambiguous",),
    ),
}


def killed(name: str, root: Path = ROOT) -> bool:
    """Say whether a test fails where a mutant stands in a copy.

    Raises
    ------
    InputError
        The text that it changes no longer stands once in its file.
    RuntimeError
        Its tests could not run.
    """
    mutant = MUTANTS[name]
    return not passes(mutant.tests, root, mutant.edit)


def passes(tests: Iterable[str], root: Path = ROOT, edit: Callable[[Path], None] = lambda copy: None) -> bool:
    """Say whether tests pass in a copy of the checkout that was edited."""
    with TemporaryDirectory(prefix="octopus-mutant-") as folder:
        copy = Path(folder)
        copy_checkout(root, copy)
        shutil.copytree(root / "tests", copy / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(root / "pyproject.toml", copy)
        edit(copy)
        environment = os.environ | {"PYTHONPATH": f"{copy}{os.pathsep}{copy / 'workflow'}"}
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *tests]
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        if done.returncode not in (0, 1):  # all passed, or one failed
            raise RuntimeError(f"the tests could not run\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.returncode == 0


def outcomes(names: list[str]) -> Iterator[tuple[str, bool]]:
    """Yield each mutant and whether it was killed."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from zip(names, pool.map(killed, names), strict=True)


def main(names: list[str]) -> int:
    """Try mutants, all unless some are named; return 1 where one survives, 2 where its tests fail by themselves."""
    names, survived = names or list(MUTANTS), []
    if not passes(dict.fromkeys(test for name in names for test in MUTANTS[name].tests)):
        print("the tests fail without any mutant: nothing can be said")
        return 2
    for name, dead in outcomes(names):
        print(f"{'killed' if dead else 'SURVIVED':<9} {name}", flush=True)
        survived += [] if dead else [name]
    print(f"{len(names) - len(survived)} of {len(names)} killed")
    return bool(survived)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
