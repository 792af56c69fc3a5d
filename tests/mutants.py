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
from octopus_study.verify.plants import code

ROOT = Path(__file__).resolve().parents[1]
STUDY = "workflow/octopus_study"
TESTS = "tests/study"
VERIFY = f"{TESTS}/report/test_verify.py"
RESIZE = "crop = cv2.resize(self.job.frame[y1:y2, x1:x2].astype(np.float32), self._size)"
SECONDS, AT_ONCE = 900, 2


class Mutant(NamedTuple):
    """A fault: a text that stands once in a file, what takes its place, and the tests of which one must fail."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]


MUTANTS = {
    "at-least-by-the-high-end": Mutant(
        f"{STUDY}/report/claims/outcome.py",
        "inside = limits.low <= low and high <= limits.high",
        "inside = limits.low <= high and high <= limits.high",
        (f"{TESTS}/report/test_claims.py::test_both_ends_of_an_interval_count",),
    ),
    "axis-of-the-arena": Mutant(
        f"{STUDY}/report/studies/arena_figures.py",
        "Device, all boxes (ms)",
        "Device, all boxes (us)",
        (f"{VERIFY}::test_a_report_follows_from_its_rows[axes]",),
    ),
    "axis-of-energy": Mutant(
        f"{STUDY}/report/studies/power_figures.py",
        "Energy per frame (mJ)",
        "Energy per frame (J)",
        (f"{VERIFY}::test_a_report_follows_from_its_rows[axes]",),
    ),
    "gib": Mutant(
        f"{STUDY}/report/text.py", '"GiB", 2.0**-30', '"GiB", 2.0**-31', (f"{TESTS}/report/test_text.py",)
    ),
    "microseconds-of-rows": Mutant(
        f"{STUDY}/measure/_samples.py",
        '"us": 1e3',
        '"us": 1e6',
        (f"{TESTS}/measure/test_paired_runner.py::test_units_are_converted",),
    ),
    "published-arena": Mutant(
        "data/published/arena.csv",
        "uniform-256,tensorrt,kernel,25.4",
        "uniform-256,tensorrt,kernel,35.4",
        (f"{TESTS}/report/test_published.py",),
    ),
    "published-total": Mutant(
        "data/published/pipeline_gain.csv", "total,,gain,2.6", "total,,gain,3.6", (f"{TESTS}/report/test_published.py",)
    ),
    "published-time": Mutant(
        "data/published/detector.csv",
        "gpu-preprocessing,time,1490",
        "gpu-preprocessing,time,990",
        (f"{TESTS}/report/test_published.py",),
    ),
    "retyped-claim": Mutant(
        "config/claims.yaml",
        "    published: published.detector.gpu-preprocessing.speedup\n",
        "    value: 1.02\n",
        (f"{TESTS}/report/test_claims.py::test_published_values_are_read_and_never_typed",),
    ),
    "no-poison": Mutant(
        f"{STUDY}/studies/arena/layers.py",
        "poison(made.output())",
        "pass",
        (f"{TESTS}/studies/test_arena.py::test_every_crop_is_compared_and_on_poisoned_memory",),
    ),
    "first-crop-alone": Mutant(
        f"{STUDY}/studies/arena/layers.py",
        "answer = check_answers([replace(method, run=run)], batch.expected[made.edge])[method.name]",
        "first = replace(method, run=run, result=lambda result=method.result: result()[:1])\n"
        "    answer = check_answers([first], batch.expected[made.edge][:1])[method.name]",
        (f"{TESTS}/studies/test_arena.py::test_every_crop_is_compared_and_on_poisoned_memory",),
    ),
    "warm-l2": Mutant(
        f"{STUDY}/measure/cuda.py",
        "self._flush.fill(self._writes % 256, stream=self._stream)",
        "pass",
        (f"{VERIFY}::test_instruments_are_right[clocks]",),
    ),
    "energy-as-time": Mutant(
        f"{STUDY}/report/studies/power_ratios.py",
        '"time_saved": saved(time)',
        '"time_saved": saved(ratios.energy)',
        (f"{TESTS}/report/test_power_report.py::test_the_energy_ratio_is_time_times_power",),
    ),
    "torch-on-one-thread": Mutant(
        f"{STUDY}/peers/availability.py",
        "torch.set_num_threads(get_num_threads())",
        "torch.set_num_threads(1)",
        (f"{TESTS}/peers/test_availability.py",),
    ),
    "roi-align-twice": Mutant(
        f"{STUDY}/peers/roi_align.py",
        "planes = self.planes(self._planes)",
        "planes = self.planes(self._planes)\n        self._roi_align(planes, self._rois, self.job.size)",
        (f"{TESTS}/peers/test_peer_effort.py",),
    ),
    "cvcuda-twice": Mutant(
        f"{STUDY}/peers/cvcuda.py",
        "        super().kernels()\n        self.cv.normalize_into",
        "        super().kernels()\n        super().kernels()\n        self.cv.normalize_into",
        (f"{TESTS}/peers/test_peer_effort.py",),
    ),
    "opencv-sleeps": Mutant(
        f"{STUDY}/peers/opencv.py",
        RESIZE,
        f"{RESIZE}\n        __import__('time').sleep(1e-3)",
        (f"{VERIFY}::test_instruments_are_right[opponents]", f"{TESTS}/peers/test_peer_effort.py"),
    ),
    "verdict-ignores-noise": Mutant(
        f"{STUDY}/report/claims/outcome.py",
        "return low / (1 + floor), high * (1 + floor)",
        "return low, high",
        (f"{TESTS}/report/test_claims.py::test_a_difference_below_the_noise_floor_is_ambiguous",),
    ),
    "scaled-timer": Mutant(
        f"{STUDY}/measure/clocks.py",
        "- start) / 1e6",
        "- start) / 1e5",
        (f"{VERIFY}::test_instruments_are_right[clocks]",),
    ),
}  # fmt: skip


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
    return not passes(mutant.tests, root, code(mutant.file, mutant.old, mutant.new))


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
