"""The notebook runs from top to bottom on made-up runs, shows every figure, and is committed without outputs."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import papermill
import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

sys.path.insert(0, str(ROOT / "tests" / "study" / "report"))
from synthetic_runs import write_run  # noqa: E402

SHOWN = ("arena", "parity", "power")  # by the notebook, beside what every report has


def run_notebook(tmp_path: Path, **parameters: str) -> nbformat.NotebookNode:
    folders = {"published_dir": str(ROOT / "data/published"), "claims_yaml": str(ROOT / "config/claims.yaml")}
    return papermill.execute_notebook(
        str(ROOT / "notebooks" / "explore_results.ipynb"),
        str(tmp_path / "executed.ipynb"),
        parameters=folders | parameters,
        cwd=str(ROOT),
        kernel_name="python3",
        progress_bar=False,
    )


def test_the_notebook_shows_own_reference_and_published_results(tmp_path: Path) -> None:
    reference = write_run(tmp_path / "reference", "pretended-gpu", "gpu", only=SHOWN)
    results = write_run(tmp_path / "results", "laptop", "cpu", "synthetic-visdrone", quick=True, only=SHOWN)
    executed = run_notebook(tmp_path, results_dir=str(results), reference_dir=str(reference.parent))
    outputs = [output for cell in executed.cells for output in cell.get("outputs", [])]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    text = "".join(str(output.get("data", {})) for output in outputs)
    assert len(pictures) == 15
    assert "Jetson Orin Nano, as published" in text and "Pretended GPU (reference)" in text
    assert not any(output["output_type"] == "error" for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_are_committed_without_outputs(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []
