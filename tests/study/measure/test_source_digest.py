"""Digests of code: what changes them, what a piece imports, and so which results a change makes stale."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from octopus_study.measure import config_digest, digest, source_digest
from octopus_study.measure.digest import CODE, data_code, imported, report_code, study_code
from octopus_study.names import STUDIES

AREA = '''"""Module."""
import math


class Area:
    """Of a circle."""

    factor: float = math.pi

    def of(self, radius: float) -> float:
        """Return it."""
        # squared
        return self.factor * radius**2
'''


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "octopus" / "kernels").mkdir(parents=True)
    (tmp_path / "octopus" / "crop.py").write_text(AREA)
    (tmp_path / "octopus" / "kernels" / "store.cu").write_text("// store\nst.global.cs;")
    (tmp_path / "octopus" / "kernels" / "fill.py").write_text("def fill(out):\n    out[:] = 1\n")
    return tmp_path


def digest_of(package: Path, code: str) -> str:
    (package / "octopus" / "crop.py").write_text(code)
    return source_digest(["octopus"], root=package)


@pytest.mark.parametrize(("old", "new"), [
    ("# squared", "# the radius, squared"),
    ('"""Return it."""', '"""Return the area."""'),
    ('        """Return it."""\n', ""),
    ("self.factor * radius**2", "(self.factor\n                * radius ** 2)"),
    ("\n\n\nclass", "\n\nclass"),
    ("factor: float = math.pi", 'factor: float = math.pi\n    """Of proportion."""'),
    ('"""Module."""', "'Another'"),
])  # fmt: skip
def test_comments_docstrings_and_formatting_do_not_count(package, old, new):
    before = digest_of(package, AREA)
    assert old in AREA
    assert digest_of(package, AREA.replace(old, new)) == before


@pytest.mark.parametrize(("old", "new"), [
    ("radius**2", "radius**3"), ("radius**2", "radius*2"), ("radius**2", "-radius**2"), ("radius**2", "radius**2.0"),
    ("math.pi", "math.e"), ("radius: float", "r: float"), ("math.pi", "None"), ("import math", "from math import *"),
    ("return self", "yield self"),
    ("import math\n", "import math\nimport os\n"),
    ("    def of", "    @staticmethod\n    def of"),
])  # fmt: skip
def test_code_counts(package, old, new):
    before = digest_of(package, AREA)
    assert old in AREA
    assert digest_of(package, AREA.replace(old, new)) != before


@pytest.mark.parametrize("damage", ["", "{", "{}", "[1]", "null"])
def test_what_a_source_says_is_kept_and_made_anew_where_it_is_damaged(damage, tmp_path, monkeypatch):
    monkeypatch.setenv("OCTOPUS_CACHE_DIR", str(tmp_path))
    content = AREA.encode()
    made = digest.source.__wrapped__(content)
    (kept,) = tmp_path.rglob("*.json")
    with monkeypatch.context() as patch:
        patch.setattr(digest, "_read", None)
        assert digest.source.__wrapped__(content) == made
    kept.write_text(damage)
    assert digest.source.__wrapped__(content) == made
    assert digest.source.__wrapped__(content + b"x = 1\n").meaning != made.meaning


def test_defaults_keep_their_places(package):
    """A keyword without a default is not the same as one whose neighbour has it."""
    assert digest_of(package, "def f(*, a, b=1): 0") != digest_of(package, "def f(*, a=1, b): 0")
    assert digest_of(package, "x = {**a, 1: 2}") != digest_of(package, "x = {1: 2, **a}")


def test_other_files_count_by_their_bytes(package):
    before = source_digest(["octopus"], root=package)
    (package / "octopus" / "kernels" / "store.cu").write_text("// write\nst.global.cs;")
    assert source_digest(["octopus"], root=package) != before


def test_what_is_generated_does_not_count(package):
    before = source_digest(["octopus"], root=package)
    for name in ("__pycache__/crop.cpython-311.pyc", ".hidden/x.py", "kernels/__pycache__/fill.1.nbi", "crop.py~"):
        (package / "octopus" / name).parent.mkdir(exist_ok=True)
        (package / "octopus" / name).write_text("x")
    assert source_digest(["octopus"], root=package) == before


def test_the_config_digest_knows_science_only():
    config = {"seed": 42, "measure": {"min_blocks": 20, "max_blocks": 200}, "mirror": None, "raw_dir": "data/raw"}
    turned = {"raw_dir": "/big", "mirror": "/mnt", "measure": {"max_blocks": 200, "min_blocks": 20}, "seed": 42}
    assert config_digest(config) == config_digest(turned)
    for other in ({"seed": 43}, {"measure": {"min_blocks": 21, "max_blocks": 200}}):
        assert config_digest(config) != config_digest(config | other)


STUDY = "workflow/octopus_study"
FILES = {
    "octopus/__init__.py": "if TYPE_CHECKING:\n    from octopus.crop import crop_resize\n",
    "octopus/crop.py": "import octopus.errors\n", "octopus/errors.py": "", f"{STUDY}/__init__.py": "",
    f"{STUDY}/baselines/__init__.py": "",
    f"{STUDY}/baselines/cvcuda.py": "import cvcuda\n",
    f"{STUDY}/baselines/table.csv": "1", f"{STUDY}/start.py": "",
}  # fmt: skip
# Each line of its input names modules; a fork loads them, and prints the files of all that came with them.
LOAD = """
import contextlib, importlib, os, sys
import cv2, matplotlib.pyplot, numba, pandas, psutil, pydantic.main, rasterio, requests, tqdm  # what most import
for line in sys.stdin:
    if os.fork():
        os.wait()
        continue
    for name in line.split():
        with contextlib.suppress(ImportError):  # of a baseline that is not installed
            importlib.import_module(name)
    own = [name for name in sys.modules if name.partition(".")[0] in ("octopus", "octopus_study")]
    print(*(sys.modules[name].__file__ for name in own), flush=True)
    os._exit(0)
"""
CVCUDA = "__init__ baselines/__init__ baselines/cvcuda"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(("source", "names"), [
    ("import numpy, os.path", ""),
    ("import octopus_study.baselines.cvcuda", CVCUDA),
    ("from octopus_study.baselines import cvcuda", CVCUDA),
    ("def late():\n    from octopus_study.baselines.cvcuda import CvCuda", CVCUDA),
    ("PLACE = 'octopus_study.baselines.cvcuda:CvCuda'", CVCUDA),
    ("import_module(f'octopus_study.baselines.{name}')", CVCUDA),
    ("run(['-c', 'from octopus_study.baselines.cvcuda import main; main()'])", CVCUDA),
    ("'''See octopus_study.baselines.cvcuda.'''\ndef f():\n    '''octopus_study.baselines.cvcuda'''", ""),
    ("if TYPE_CHECKING:\n    from octopus_study.baselines import cvcuda", ""),
    ("from octopus_study.baselines.absent import x", "__init__ baselines/__init__"),
])  # fmt: skip
def test_what_a_source_imports_of_the_artifact(tree: Path, source: str, names: str) -> None:
    (tree / STUDY / "start.py").write_text(source)
    files = {file.relative_to(tree / STUDY).as_posix() for file in imported([f"{STUDY}/start.py"], tree)}
    assert files == {"start.py", *(f"{name}.py" for name in names.split())}


def test_data_beside_a_module_count_where_it_names_them(tree: Path) -> None:
    start = f"{STUDY}/baselines/cvcuda.py"
    assert [file.name for file in imported([start], tree)] == ["cvcuda.py"]
    (tree / start).write_text("TABLE = Path(__file__).with_name('table.csv')")
    assert [file.name for file in imported([start], tree)] == ["cvcuda.py", "table.csv"]


@pytest.fixture(scope="module")
def checkout(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkout")
    for place in CODE:
        shutil.copytree(root / place, folder / place, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def before(checkout: Path) -> dict[str, str]:
    return digests(checkout)


def digests(checkout: Path) -> dict[str, str]:
    packages = {study: import_module(f"octopus_study.studies.{study}") for study in STUDIES}
    codes = {study: study_code(study, getattr(packages[study], "CODE", ()), checkout) for study in STUDIES}
    return {**codes, "report": report_code(checkout), "data": data_code(checkout)}


def changed(checkout: Path, before: dict[str, str], name: str, text: str) -> set[str]:
    """What gets another digest while `text` stands at the end of a file."""
    file = checkout / name
    content = file.read_bytes()
    file.write_bytes(content + text.encode())
    after = digests(checkout)
    file.write_bytes(content)
    return {result for result, digest in after.items() if digest != before[result]}


@pytest.mark.parametrize(("file", "stale"), [
    ("baselines/cvcuda.py", {"arena", "power"}),
    ("studies/distribution/study.py", {"distribution"}),
    ("studies/concurrency/processes.py", {"concurrency"}),  # started by its name
    ("studies/pictures.py", {"images", "pipelines"}),
    ("names.py", {"report"}),
    ("names.toml", {"report"}),
    ("studies/__init__.py", set()),
    ("power/nvml.py", {"power", "report"}),
    ("report/text.py", {"report"}),
    ("data/visdrone_sizes.csv", {"data", "satellite"}),
])  # fmt: skip
def test_a_change_makes_stale_what_runs_it(checkout: Path, before: dict[str, str], file: str, stale: set[str]) -> None:
    assert changed(checkout, before, f"{STUDY}/{file}", "\nCHANGED = True\n") == stale


def test_a_change_of_the_library_makes_every_study_stale(checkout: Path, before: dict[str, str]) -> None:
    assert changed(checkout, before, "octopus/crop/transforms.py", "\nCHANGED = True\n") == set(STUDIES)


def test_every_module_that_is_loaded_counts(root: Path) -> None:
    """Once the report showed a constant of a study's methods, and its digest didn't know."""
    parts = ["report", *(f"studies/{study}" for study in STUDIES)]
    modules = [
        " ".join(".".join(file.relative_to(root / "workflow").with_suffix("").parts) for file in files)
        for files in ((root / STUDY / part).rglob("*.py") for part in parts)
    ]
    command = [sys.executable, "-c", LOAD]
    done = subprocess.run(command, input="\n".join(modules), capture_output=True, text=True, check=True)
    for part, loaded in zip(parts, done.stdout.splitlines(), strict=True):
        assert set(map(Path, loaded.split())) - set(imported([f"{STUDY}/{part}"], root)) == set(), part
