"""The notebooks run from top to bottom, on committed rows where they show results."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import numpy as np
import pytest
from committed_runs import GPU, write, write_run

from octopus_study.config import load_config
from octopus_study.measure.rows import read_rows
from octopus_study.report.committed import NOTEBOOKS, VARIES
from octopus_study.report.committed import run_notebook as run

ROOT = Path(__file__).resolve().parents[2]

FOLDERS = {"published_dir": str(ROOT / "data/published"), "claims_yaml": str(ROOT / "config/claims.yaml")}


def run_notebook(name: str, **parameters: object) -> nbformat.NotebookNode:
    """Run a notebook with values for its second cell, which is tagged as the one that has them."""
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    assert "parameters" in notebook.cells[1].metadata.tags
    notebook.cells[1].source += "".join(f"\n{key} = {value!r}" for key, value in parameters.items())
    return run(notebook, ROOT)


def few_cases(root: Path, machine: str) -> Path:
    """Write a run of three studies, of the arena what shows all that a table has: counts, methods and layers."""
    table = write_run(root, machine, "gpu", only=("arena",)) / "arena.csv"
    return write(table, read_rows(table).query("workload == 'visdrone' and n in (28, 1000)")).parent


def outputs(notebook: nbformat.NotebookNode) -> Iterator[nbformat.NotebookNode]:
    """Yield what cells and widgets show; an error within a widget would stop nothing."""
    for cell in notebook.cells:
        yield from cell.get("outputs", [])
    widgets = notebook.metadata.get("widgets", {}).get("application/vnd.jupyter.widget-state+json", {})
    for model in widgets.get("state", {}).values():
        yield from model["state"].get("outputs", [])


def shown(notebook: nbformat.NotebookNode) -> tuple[str, int]:
    """Return all text and the number of pictures that a notebook shows; it has no error anywhere."""
    everything = list(outputs(notebook))
    assert [output for output in everything if output["output_type"] == "error"] == []
    texts = (str(output.get("text", "")) + str(output.get("data", {}).get("text/html", "")) for output in everything)
    return "".join(texts), sum("image/png" in output.get("data", {}) for output in everything)


def test_octopus_in_5_minutes_shows_crops_ragged_images_and_patch_rows() -> None:
    text, pictures = shown(run_notebook("octopus_in_5_minutes"))
    assert pictures == 7
    assert "one thread each" in text and "Octopus on all threads" in text and "patches of each image" in text
    mapped = re.findall(r"box \[(.+)\] whole crop \[(.+)\]", text)
    assert len(mapped) == 3
    for box, back in (np.array([row[0].split(), row[1].split()], float) for row in mapped):
        assert (back[:2] <= box[:2] + 0.1).all() and (back[2:] >= box[2:] - 0.1).all()
        assert np.ptp(back[[0, 2]]) == pytest.approx(np.ptp(back[[1, 3]]), abs=0.2)


def test_explore_results_offers_machines_studies_layers_and_claims(tmp_path: Path) -> None:
    reference = few_cases(tmp_path / "reference", GPU).parent
    folders = FOLDERS | {"numbers_csv": "", "reference_dir": str(reference)}
    notebook = run_notebook("explore_results", **folders)
    text, pictures = shown(notebook)
    assert pictures >= 1
    offered = str(notebook.metadata.widgets)
    assert all(word in offered for word in ("NVIDIA H200", "Stage timing", "Arena", "Device", "not reproduced"))
    assert "faster" in text and f"{GPU}/" in text  # verdicts, and the way of a number
    assert "<td>VisDrone: Crop, resize, normalise</td>" in text and "<th>Published kernels, one launch</th>" in text


@pytest.mark.parametrize("config", ["config", "core"])
def test_add_your_gpu_vets_adds_and_compares(config: str, tmp_path: Path) -> None:
    """A core run, which lies elsewhere, is taken where there is no full one, and is refused as a reference."""
    reference = few_cases(tmp_path / "reference", GPU).parent
    place = "results/core" if config == "core" else "results"
    results = few_cases(tmp_path / place, "mine")
    settings = load_config(ROOT / f"config/{config}.yaml").model_dump(mode="json")
    for path in results.glob("*.json"):
        record = json.loads(path.read_text())
        record["config"]["values"] = settings
        path.write_text(json.dumps(record))
    folders = {"results_dir": str(tmp_path / "results/mine"), "reference_dir": str(reference)}
    text, pictures = shown(run_notebook("add_your_gpu", **folders, reference_to=str(tmp_path / "new")))
    assert pictures == 1 and "intervals_overlap" in text and re.search(r"machine +CPU +ok ", text)
    assert "No run lies in" not in text
    assert all(f">{name}</t" in text for name in ("Stage timing", "Published kernels, one launch", "VisDrone"))
    if config == "core":
        assert "this is the core run of" in text
        assert "it was measured with other settings: measure.max_seconds is" in text
        assert "added to" not in text and not (tmp_path / "new").exists()
    else:
        assert "added to mine" in text and "core run" not in text and "other settings" not in text
        assert (tmp_path / "new/mine/arena.csv").read_bytes() == (results / "arena.csv").read_bytes()


def test_add_your_gpu_without_a_run_says_what_to_run(tmp_path: Path) -> None:
    folders = {"results_dir": str(tmp_path / "results/mine"), "reference_dir": str(tmp_path / "reference")}
    text, pictures = shown(run_notebook("add_your_gpu", **folders))
    assert pictures == 0 and text.count("<table") == 0
    assert "No run lies in" in text and "EFFORT=full" in text and "nothing to vet" in text


def test_notebooks_carry_the_outputs_that_no_machine_changes(tmp_path: Path) -> None:
    """Bytes are compared by `octopus verify`, where a kernel ran again."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
        varies = [cell for cell in cells if path.name not in NOTEBOOKS or VARIES in cell.metadata.get("tags", ())]
        assert [cell.source for cell in varies if cell.outputs] == []
        assert "error" not in {output.output_type for cell in cells for output in cell.outputs}
        with_outputs = sum(bool(cell.outputs) for cell in cells)
        assert with_outputs >= 4 if path.name in NOTEBOOKS else with_outputs == 0
