"""The recipes of CONTRIBUTING.md, done in a copy of the repository: as many files as they say, up to the report."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import toy_study
from copies import CACHE, copied

from octopus_study.data.fetch import fetch
from octopus_study.report.frame import Frame
from octopus_study.report.paper import unknown_ids

LOCK = "requirements.lock"
COPIED = ("octopus", "workflow", "config", "data/published", "pyproject.toml", "paper", LOCK)

PEER = '''"""Toy: crop by crop on the host, with the answer of Octopus."""

import numpy as np

from octopus_study.baselines.availability import need
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.method import ON_THE_HOST, CropMethod


class ToyCrops(CropMethod):
    """One crop after the other."""

    name = "toy-crops"
    why_no_device = ON_THE_HOST

    def __init__(self, job: CropJob) -> None:
        super().__init__(job.on_host())
        self.on_host = job.on_gpu
        self._resize = need("cv2", "Toy", "pip install -e './workflow[baselines]'").resize

    def run(self) -> None:
        """All boxes."""
        mean, inverse_std = self.job.affine
        for (x1, y1, x2, y2), planes in zip(self.job.boxes.tolist(), self.job.out, strict=True):
            crop = self._resize(self.job.frame[y1:y2, x1:x2].astype(np.float32), self.job.size[::-1])
            planes[...] = ((crop - mean) * inverse_std).transpose(2, 0, 1)
'''
ROW = """toy-crops = {label = "Toy (crops)", colour = "#123456", marker = "*", library = "Toy", target = "toy:ToyCrops"}
"""
# file -> what stands before the insertion, and what is inserted; a new file has nothing before
PEER_FILES = {
    "workflow/octopus_study/baselines/toy.py": [("", PEER)],
    "workflow/octopus_study/names.toml": [
        ("libraries = [\n", '  {name = "Toy", packages = ["toy-crops"], extra = "baselines"},\n'),
        ("[crop_methods]\n", ROW),
    ],
    "workflow/pyproject.toml": [("baselines = [", '"toy-crops>=1.0", ')],
    LOCK: [("\n", "toy-crops==1.0\n")],
}


def with_sample(root: Path, folder: Path, files: dict[str, list[tuple[str, str]]]) -> Path:
    """Copy the repository, insert each text behind the first place where its anchor stands, and fetch the sample."""
    copy = copied(root, folder, COPIED)
    for name, insertions in files.items():
        path = copy / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text() if path.exists() else ""
        for anchor, added in insertions:
            before, found, after = text.partition(anchor) if anchor else (text, "", "")
            assert found == anchor, f"{name} has no {anchor!r}"
            text = before + found + added + after
        path.write_text(text)
    fetch("visdrone-val", raw_dir=copy, mode="sample", progress=False)
    return copy


def python(copy: Path, *command: str) -> str:
    paths = [str(copy), str(copy / "workflow")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OCTOPUS_CACHE_DIR": str(copy / CACHE)}
    done = subprocess.run([sys.executable, *command], cwd=copy, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def commands(copy: Path, *lines: list[str]) -> None:
    """Run commands of the artifact one after the other in one process."""
    code = "from octopus_study.cli.commands import app\n" + "".join(
        f"app({line!r}, standalone_mode=False)\n" for line in lines
    )
    python(copy, "-c", code)


def recipe(root: Path, title: str) -> str:
    return (root / "CONTRIBUTING.md").read_text().partition(f"## {title}")[2].partition("\n## ")[0]


def test_a_baseline_costs_four_files_and_a_study_eight(root: Path) -> None:
    assert len(PEER_FILES) <= 4 and len(toy_study.FILES) <= 8
    for name in PEER_FILES:
        assert Path(name).name in recipe(root, "Add a baseline").replace("<name>", "toy"), name
    for name in toy_study.FILES:
        place = name.replace("stage_timing.typ", "").replace("toy", "<name>")
        assert place.rpartition("/")[2 if "." in place else 0] in recipe(root, "Add a study"), name


def measured(study: str, *settings: str) -> list[list[str]]:
    """Commands that measure a study and report it, in a folder of its own."""
    quick = ["--config=config/quick.yaml", "--set=device=cpu", *(f"--set={setting}" for setting in settings)]
    read, claims = f"--numbers={study}/numbers.csv", f"--claims={study}/claims.csv"
    folders = [f"--results={study}/here", "--reference=none", "--published=data/published"]
    return [
        ["measure", study, *quick, "--manifest=visdrone-val.json", f"--out={study}/here/{study}.csv"],
        ["report", "numbers", *folders, f"--out={study}/numbers.csv"],
        ["report", "claims", read, "--claims=config/claims.yaml", f"--out={study}/claims.csv"],
        ["report", "tables", read, claims, f"--out-dir={study}/tables"],
    ]


@pytest.fixture(scope="module")
def copy(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with the toy study and the toy baseline, in which both were measured and reported."""
    folder = with_sample(root, tmp_path_factory.mktemp("copy"), PEER_FILES | toy_study.FILES)
    arena = measured("arena", "crop.size=[20, 24]", "arena.counts=[3]", 'arena.workloads=["visdrone"]')
    figure = ["report", "figure", "toy", "--numbers=toy/numbers.csv", "--out=toy/toy.pdf"]
    commands(folder, *arena, *measured("toy", "toy.count=3"), figure)
    return folder


def test_a_baseline_is_measured_and_shown(copy: Path) -> None:
    rows = (copy / "arena/here/arena.csv").read_text().splitlines()
    timed = [row for row in rows if ",toy-crops,host,end_to_end,ms," in row]
    assert timed and all(",same," in row for row in timed)
    lines = (copy / "arena/tables/arena_cpu.md").read_text().splitlines()
    assert any(line.startswith("| Toy (crops) |") for line in lines)
    packages = json.loads((copy / "arena/here/arena.json").read_text())["machine"]["packages"]
    assert packages["toy-crops"] is None  # asked for, not installed


def test_a_study_has_a_row_a_claim_a_figure_and_a_text_that_fits(copy: Path) -> None:
    lines = (copy / "toy/tables/toy.md").read_text().splitlines()
    assert any(line.startswith("| 3 | ") and " µs" in line for line in lines)
    claims = (copy / "toy/claims.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in claims[1:]] == ["toy-faster"]
    shown = (copy / "toy/tables/claims_published.md").read_text().splitlines()
    assert any(line.startswith("| Adding up") for line in shown)
    assert (copy / "toy/toy.pdf").read_bytes().startswith(b"%PDF")
    assert unknown_ids(toy_study.SECTION, Frame.read(copy / "toy/numbers.csv")) == []


def test_the_test_of_a_study_passes(copy: Path) -> None:
    tests = ["tests/study/studies/test_toy.py", "-q", "-p", "no:cacheprovider"]
    assert "1 passed" in python(copy, "-m", "pytest", *tests)
