"""Both pyproject.toml, environment.yml and the locks say the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

LOCKS = ("requirements.lock", "requirements-cuda12.lock")
LEFT_OUT = {
    "requirements.lock": {"cuda12"},
    "requirements-cuda12.lock": {"cuda13", "torch", "peers", "models", "arena-cuda13"},
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
        tomllib.loads((root / folder / "pyproject.toml").read_text())["project"]
        for folder in (".", "workflow")
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


def pins(lock: Path) -> list[Requirement]:
    lines = [line.strip() for line in lock.read_text().splitlines()]
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


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


def test_environment_has_the_names_and_ranges_of_the_projects_and_the_notebooks(
    root: Path, project: Project
) -> None:
    found, python = conda_ranges(root)
    assert found == project.dependencies | project.extras["notebooks"]
    assert SpecifierSet(python) == project.python


def test_the_library_has_no_upper_limit_of_its_own_for_python(root: Path) -> None:
    library = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert "3.99" in SpecifierSet(library["requires-python"])


@pytest.mark.parametrize("lock", LOCKS)
def test_every_dependency_is_pinned_inside_its_range(root: Path, project: Project, lock: str) -> None:
    extras = project.extras.keys() - LEFT_OUT[lock]
    wanted = [project.dependencies, *(project.extras[extra] for extra in extras)]
    pinned: dict[str, list[str]] = {}
    for pin in pins(root / lock):
        (clause,) = pin.specifier
        assert clause.operator == "==", f"{pin} is no exact pin"
        pinned.setdefault(canonicalize_name(pin.name), []).append(clause.version)
    for name, specifier in (item for group in wanted for item in group.items()):
        assert name in pinned, f"{name} is not in {lock}; run make lock"
        assert all(version in specifier for version in pinned[name]), f"{name} {pinned[name]} in {lock}"


def test_locks_agree_on_what_they_share(root: Path) -> None:
    main, cuda12 = ({str(pin) for pin in pins(root / lock)} for lock in LOCKS)
    differing = {Requirement(pin).name for pin in main ^ cuda12}
    shared = {Requirement(pin).name for pin in main} & {Requirement(pin).name for pin in cuda12}
    assert differing & shared <= {"cuda-bindings", "cuda-toolkit"}


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_names_no_index_host_and_no_folder(root: Path, lock: str) -> None:
    text = (root / lock).read_text()
    assert not re.search(r"://|--|@ file|^-e|^octopus", text, re.MULTILINE)


def test_numpy_stays_below_the_version_that_breaks_numba_cuda(project: Project) -> None:
    assert "2.5.0" not in project.dependencies["numpy"]
