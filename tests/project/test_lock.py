"""Both pyproject.toml, environment.yml and the locks say the same, and only files that a lock knows are installed."""

import hashlib
import importlib
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

LOCKS = ("requirements.lock", "requirements-cuda12.lock")
NEVER = {"ultralytics", "sahi", "supervision"}
LEFT_OUT = {
    "requirements.lock": {"cuda12", "compile12"} | NEVER,
    "requirements-cuda12.lock": NEVER
    | {"cuda13", "compile", "torch", "transformers", "rapidocr", "baselines", "models", "arena-cuda13"},
}
CONDA_NAMES = {"matplotlib-base": "matplotlib"}
Ranges = dict[str, SpecifierSet]


class Project(NamedTuple):
    """The library's and the artifact's pyproject.toml together, since one environment holds both."""

    python: SpecifierSet
    dependencies: Ranges
    extras: dict[str, Ranges]


@pytest.fixture(scope="module")
def project(root: Path) -> Project:
    library, artifact = (
        tomllib.loads((root / folder / "pyproject.toml").read_text())["project"] for folder in (".", "workflow")
    )
    extras = library["optional-dependencies"] | artifact["optional-dependencies"]
    assert len(extras) == len(library["optional-dependencies"]) + len(artifact["optional-dependencies"])
    return Project(
        SpecifierSet(library["requires-python"]) & SpecifierSet(artifact["requires-python"]),
        ranges(library["dependencies"] + artifact["dependencies"]),
        {name: ranges(requirements) for name, requirements in extras.items()},
    )


def ranges(requirements: list[str]) -> Ranges:
    """The range of each package; where two ask for one, what both allow."""
    found: Ranges = {}
    for item in map(Requirement, requirements):
        if not item.name.startswith("octopus-"):
            name = canonicalize_name(item.name)
            found[name] = found.get(name, SpecifierSet()) & item.specifier
    return found


def load(root: Path, name: str) -> ModuleType:
    """A script of workflow/scripts as a module; scripts find each other there."""
    sys.path.insert(0, str(root / "workflow" / "scripts"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def script(root: Path) -> ModuleType:
    return load(root, "install")


def pins(lock: str) -> list[Requirement]:
    """What a lock, or a part of one, pins."""
    return [Requirement(line.rstrip(" \\")) for line in lock.splitlines() if re.match(r"\w", line)]


def names(lock: str) -> set[str]:
    return {canonicalize_name(pin.name) for pin in pins(lock)}


def conda_ranges(root: Path) -> tuple[Ranges, str]:
    """Ranges of environment.yml under the package index's names, and the range of Python."""
    items = yaml.safe_load((root / "environment.yml").read_text())["dependencies"]
    plain = [item.partition(" ") for item in items if isinstance(item, str) and item != "pip"]
    found = {CONDA_NAMES.get(name, name): SpecifierSet(specifier) for name, _, specifier in plain}
    python = found.pop("python")
    by_pip = next(item["pip"] for item in items if isinstance(item, dict))
    assert [item for item in by_pip if item.startswith("-")] == ["--editable .", "--editable ./workflow"]
    found |= ranges([item for item in by_pip if not item.startswith("-")])
    return found, str(python)


def test_environment_has_the_names_and_ranges_of_the_projects_and_the_notebooks(root: Path, project: Project) -> None:
    found, python = conda_ranges(root)
    assert found == project.dependencies | project.extras["notebooks"]
    assert SpecifierSet(python) == project.python


@pytest.mark.parametrize("lock", LOCKS)
def test_every_dependency_is_pinned_inside_its_range(root: Path, project: Project, lock: str) -> None:
    extras = project.extras.keys() - LEFT_OUT[lock]
    wanted = [project.dependencies, *(project.extras[extra] for extra in extras)]
    pinned: dict[str, list[str]] = {}
    for pin in pins((root / lock).read_text()):
        (clause,) = pin.specifier
        assert clause.operator == "==", f"{pin} is no exact pin"
        pinned.setdefault(canonicalize_name(pin.name), []).append(clause.version)
    for name, specifier in (item for group in wanted for item in group.items()):
        assert name in pinned, f"{name} is not in {lock}; run make lock"
        assert all(version in specifier for version in pinned[name]), f"{name} {pinned[name]} in {lock}"


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_has_hashes_and_somebody_who_needs_it(root, project, script, lock):
    text, known = (root / lock).read_text(), {script.EVERY, script.BUILD} | project.extras.keys() - LEFT_OUT[lock]
    assert not re.search(r"://|--(?!hash=)|@ file|^-e|^octopus", text, re.MULTILINE), "an index's host or a folder"
    for entry in script.entries(text):
        pin, *hashes = entry.partition("\n    #")[0].replace(" \\\n", "\n").splitlines()
        assert hashes and all(re.fullmatch(r" +--hash=sha256:[0-9a-f]{64}", line) for line in hashes), pin
        assert script.marks(entry) and script.marks(entry) <= known, f"{pin} in {lock}; run make lock"


@pytest.mark.parametrize("lock", LOCKS)
def test_an_install_has_what_its_extra_asks_for(root: Path, project: Project, script: ModuleType, lock: str) -> None:
    text = (root / lock).read_text()
    for extra in project.extras.keys() - LEFT_OUT[lock]:
        found = names(script.chosen(text, {script.EVERY, extra}))
        assert project.dependencies.keys() | project.extras[extra].keys() <= found, f"{extra}; run make lock"
    backends = tomllib.loads((root / "pyproject.toml").read_text())["build-system"]["requires"]
    assert names(script.chosen(text, {script.BUILD})) == set(ranges(backends))


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "toy_locked-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        folder = "toy_locked-1.0.dist-info"
        archive.writestr(f"{folder}/METADATA", "Metadata-Version: 2.1\nName: toy-locked\nVersion: 1.0\n")
        archive.writestr(f"{folder}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{folder}/RECORD", "")
    return path


@pytest.mark.parametrize(("hashed", "refused"), [
    (lambda digest: f" --hash=sha256:{digest}", ""),
    (lambda digest: f" --hash=sha256:{digest[::-1]}", "DO NOT MATCH THE HASHES"),
    (lambda digest: "", "Hashes are required"),
], ids=["its hash", "another hash", "no hash"])  # fmt: skip
def test_pip_takes_a_file_by_its_hash_alone(script, wheel, capfd, hashed, refused):
    target = wheel.parent / "target"
    line = "toy-locked==1.0" + hashed(hashlib.sha256(wheel.read_bytes()).hexdigest())
    options = ("--no-index", "-f", wheel.parent, "--target", target)
    if refused:
        with pytest.raises(subprocess.CalledProcessError):
            script.install_checked(line, *options)
    else:
        script.install_checked(line, *options)
    assert refused in capfd.readouterr().err
    assert target.exists() == (not refused)
