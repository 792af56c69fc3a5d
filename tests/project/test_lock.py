"""pyproject.toml, environment.yml and the locks say the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

LOCKS = ("requirements.lock", "requirements-cuda12.lock")
LEFT_OUT = {
    "requirements.lock": {"cuda12"},
    "requirements-cuda12.lock": {"cuda13", "peers", "models", "arena-cuda13"},
}
CONDA_NAMES = {"matplotlib-base": "matplotlib"}
Ranges = dict[str, SpecifierSet]


@pytest.fixture(scope="module")
def project(root: Path) -> dict:
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]


def ranges(requirements: list[str]) -> Ranges:
    parsed = [Requirement(text) for text in requirements]
    return {canonicalize_name(item.name): item.specifier for item in parsed if item.name != "octopus"}


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
    found |= ranges([item for item in by_pip if not item.startswith("-")])
    return found, str(python)


def test_environment_has_the_names_and_ranges_of_the_project(root: Path, project: dict) -> None:
    found, python = conda_ranges(root)
    assert found == ranges(project["dependencies"])
    assert SpecifierSet(python) == SpecifierSet(project["requires-python"])


@pytest.mark.parametrize("lock", LOCKS)
def test_every_dependency_is_pinned_inside_its_range(root: Path, project: dict, lock: str) -> None:
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"]]
    for extra in extras.keys() - LEFT_OUT[lock]:
        wanted += extras[extra]
    pinned: dict[str, list[str]] = {}
    for pin in pins(root / lock):
        (clause,) = pin.specifier
        assert clause.operator == "==", f"{pin} is no exact pin"
        pinned.setdefault(canonicalize_name(pin.name), []).append(clause.version)
    for name, specifier in ranges(wanted).items():
        assert name in pinned, f"{name} is not in {lock}; run make lock"
        assert all(version in specifier for version in pinned[name]), f"{name} {pinned[name]} in {lock}"


def test_locks_agree_on_what_they_share(root: Path) -> None:
    main, cuda12 = ({str(pin) for pin in pins(root / lock)} for lock in LOCKS)
    differing = {Requirement(pin).name for pin in main ^ cuda12}
    shared = {Requirement(pin).name for pin in main} & {Requirement(pin).name for pin in cuda12}
    assert differing & shared <= {"cuda-bindings", "cuda-toolkit"}


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_names_no_index_host(root: Path, lock: str) -> None:
    text = (root / lock).read_text()
    assert not re.search(r"://|--|@ file", text)


def test_numpy_stays_below_the_version_that_breaks_numba_cuda(project: dict) -> None:
    assert "2.5.0" not in ranges(project["dependencies"])["numpy"]
