"""Reports over made-up runs, built once per session."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from synthetic_runs import CLAIMS, PUBLISHED, write_run

from octopus_study.report.build import build_numbers
from octopus_study.report.claims import build_claims
from octopus_study.report.frame import Frame
from octopus_study.report.outputs import build_tables


def build_report(folder: Path, results: Path | None, reference: Path | None) -> Path:
    """Build numbers, claims and tables into `folder` and return it."""
    build_numbers(results, reference, PUBLISHED, folder / "numbers.csv")
    build_claims(folder / "numbers.csv", CLAIMS, folder / "claims.csv")
    build_tables(folder / "numbers.csv", folder / "claims.csv", folder / "tables")
    return folder


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pretended GPU and a CPU as references, and a CPU with synthetic boxes as this machine."""
    root = tmp_path_factory.mktemp("runs")
    write_run(root / "reference", "pretended-gpu", "gpu")
    write_run(root / "reference", "pretended-cpu", "cpu")
    write_run(root / "results", "laptop", "cpu", "synthetic-visdrone")
    return root


@pytest.fixture(scope="session")
def full(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with this machine and both references."""
    return build_report(tmp_path_factory.mktemp("full"), runs / "results" / "laptop", runs / "reference")


@pytest.fixture(scope="session")
def alone(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with this machine only: a CPU with synthetic boxes, no references."""
    return build_report(tmp_path_factory.mktemp("alone"), runs / "results" / "laptop", None)


@pytest.fixture(scope="session")
def tensorrt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with one reference, a pretended GPU that has TensorRT."""
    root = tmp_path_factory.mktemp("tensorrt")
    write_run(root / "reference", "pretended-gpu", "gpu", tensorrt=True)
    return build_report(root / "report", None, root / "reference")


@pytest.fixture(scope="session")
def old(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report over references that are older than all studies but the first two."""
    root = tmp_path_factory.mktemp("old")
    later = shutil.ignore_patterns(
        "arena.*",
        "parity.*",
        "power.*",
        "mapping.*",
        "total_cost.*",
        "sequences.*",
        "concurrency.*",
        "image_shape.*",
        "satellite.*",
        "drone.*",
        "detector.*",
    )
    shutil.copytree(runs / "reference", root / "reference", ignore=later)
    return build_report(root / "report", None, root / "reference")


@pytest.fixture(scope="session")
def numbers(full: Path) -> Frame:
    """The numbers of the full report."""
    return Frame.read(full / "numbers.csv")


@pytest.fixture
def make_numbers(tmp_path: Path) -> Callable[..., Frame]:
    """Build the numbers of given folders."""

    def make(results: Path | None, reference: Path | None) -> Frame:
        return Frame.read(build_numbers(results, reference, PUBLISHED, tmp_path / "numbers.csv"))

    return make
