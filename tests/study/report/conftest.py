"""Reports over few blocks of committed runs, built once per session."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from committed_runs import PUBLISHED
from frames import LATER, build_report, draw_watched, judged

from octopus_study.report import outputs
from octopus_study.report.build import build_numbers
from octopus_study.report.frame import Frame

Once = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def full(runs: Path, once: Once) -> Path:
    return once("full", lambda folder: build_report(folder, runs / "results" / "laptop", runs / "reference"))


@pytest.fixture(scope="session")
def alone(runs: Path, once: Once) -> Path:
    """A report with this machine only: a CPU with synthetic data, no references."""
    return once("alone", lambda folder: build_report(folder, runs / "results" / "laptop", None))


@pytest.fixture(scope="session")
def old(runs: Path, once: Once) -> Path:
    """A report over references that are older than all studies but the first two."""

    def fill(root: Path) -> None:
        shutil.copytree(runs / "reference", root / "reference", ignore=LATER)
        build_report(root / "report", None, root / "reference")

    return once("old", fill) / "report"


@pytest.fixture(scope="session")
def references(reference_numbers: Path, once: Once) -> Path:
    """A report over the committed references, as it is shipped."""
    return once("references", lambda to: judged(shutil.copytree(reference_numbers, to, dirs_exist_ok=True)))


@pytest.fixture(scope="session")
def drawn(once: Once, request: pytest.FixtureRequest) -> Callable[..., Path]:
    """Draw a figure of a report; give the stem of its PNG, of its PDF where the report is the full one, since one
    writer of PDFs embeds the same fonts for all, and of what `draw_watched` saw."""

    def draw(name: str, report: str = "full") -> Path:
        numbers, pdf = request.getfixturevalue(report) / "numbers.csv", report == "full"
        return once(f"{report}-{name}", lambda folder: draw_watched(name, numbers, folder / name, pdf)) / name

    return draw


@pytest.fixture(scope="session")
def all_figures(drawn: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("figures")
    for name in outputs.figures():
        shutil.copy(drawn(name).with_suffix(".pdf"), folder)
    return folder


@pytest.fixture(scope="session")
def numbers(full: Path) -> Frame:
    return Frame.read(full / "numbers.csv")


@pytest.fixture
def make_numbers(tmp_path: Path) -> Callable[..., Frame]:
    def make(results: Path | None, reference: Path | None) -> Frame:
        return Frame.read(build_numbers(results, reference, PUBLISHED, tmp_path / "numbers.csv"))

    return make
