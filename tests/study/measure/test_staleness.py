"""What a piece of code imports, and so which results a change of it makes stale."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from octopus_study.measure.digest import CODE, data_code, imported, report_code, study_code
from octopus_study.names import STUDIES

STUDY = "workflow/octopus_study"
FILES = {
    "octopus/__init__.py": "if TYPE_CHECKING:\n    from octopus.crop import crop_resize\n",
    "octopus/crop.py": "import octopus.errors\n",
    "octopus/errors.py": "",
    f"{STUDY}/__init__.py": "",
    f"{STUDY}/baselines/__init__.py": "",
    f"{STUDY}/baselines/cvcuda.py": "import cvcuda\n",
    f"{STUDY}/baselines/table.csv": "1",
    f"{STUDY}/start.py": "",
}
LOAD = """
import contextlib, importlib, sys
for name in sys.argv[1:]:
    with contextlib.suppress(ImportError):  # of a baseline that is not installed
        importlib.import_module(name)
own = [name for name in sys.modules if name.partition(".")[0] in ("octopus", "octopus_study")]
print(*(sys.modules[name].__file__ for name in own))
"""
CVCUDA = "__init__ baselines/__init__ baselines/cvcuda"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("source", "names"),
    [
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
    ],
)
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


@pytest.mark.parametrize(
    ("file", "stale"),
    [
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
    ],
)
def test_a_change_makes_stale_what_runs_it(checkout: Path, before: dict[str, str], file: str, stale: set[str]) -> None:
    assert changed(checkout, before, f"{STUDY}/{file}", "\nCHANGED = True\n") == stale


def test_a_change_of_the_library_makes_every_study_stale(checkout: Path, before: dict[str, str]) -> None:
    assert changed(checkout, before, "octopus/crop/transforms.py", "\nCHANGED = True\n") == set(STUDIES)


@pytest.mark.parametrize("part", ["report", *(f"studies/{study}" for study in STUDIES)])
def test_every_module_that_is_loaded_counts(root: Path, part: str) -> None:
    """Once the report showed a constant of a study's methods, and its digest didn't know."""
    files = (root / STUDY / part).rglob("*.py")
    names = [".".join(file.relative_to(root / "workflow").with_suffix("").parts) for file in files]
    done = subprocess.run([sys.executable, "-c", LOAD, *names], capture_output=True, text=True, check=True)
    assert set(map(Path, done.stdout.split())) - set(imported([f"{STUDY}/{part}"], root)) == set()
