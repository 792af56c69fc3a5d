"""The notebooks run from top to bottom, on committed rows where they show results, and are kept without outputs."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import numpy as np
import papermill
import pytest
from traitlets.config import Config

from octopus_study.config import load_config

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

sys.path.insert(0, str(ROOT / "tests" / "study" / "report"))
from committed_runs import GPU, write_run  # noqa: E402

# Kernels find free ports and open them later, and another program may have taken one by then.
BY_FILES = Config(KernelManager={"transport": "ipc"})
FOLDERS = {"published_dir": str(ROOT / "data/published"), "claims_yaml": str(ROOT / "config/claims.yaml")}


def run_notebook(name: str, tmp_path: Path, **parameters: object) -> nbformat.NotebookNode:
    return papermill.execute_notebook(
        str(ROOT / "notebooks" / f"{name}.ipynb"),
        str(tmp_path / "executed.ipynb"),
        parameters=parameters,
        cwd=str(ROOT),
        kernel_name="python3",
        progress_bar=False,
        execution_timeout=120,  # of a cell
        config=BY_FILES,
    )


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


def test_octopus_in_5_minutes_shows_crops_ragged_images_and_patch_rows(tmp_path: Path) -> None:
    text, pictures = shown(run_notebook("octopus_in_5_minutes", tmp_path))
    assert pictures == 7
    assert "one thread each" in text and "Octopus on all threads" in text and "patches of each image" in text
    mapped = re.findall(r"box \[(.+)\] whole crop \[(.+)\]", text)
    assert len(mapped) == 3
    for box, back in (np.array([row[0].split(), row[1].split()], float) for row in mapped):
        assert (back[:2] <= box[:2] + 0.1).all() and (back[2:] >= box[2:] - 0.1).all()
        assert np.ptp(back[[0, 2]]) == pytest.approx(np.ptp(back[[1, 3]]), abs=0.2)


def test_explore_results_offers_machines_studies_layers_and_claims(tmp_path: Path) -> None:
    reference = write_run(tmp_path / "reference", GPU, "gpu", only=("arena",)).parent
    folders = FOLDERS | {"numbers_csv": "", "reference_dir": str(reference)}
    notebook = run_notebook("explore_results", tmp_path, **folders)
    text, pictures = shown(notebook)
    assert pictures >= 1
    offered = str(notebook.metadata.widgets)
    assert all(word in offered for word in (GPU, "stage_timing", "arena", "device", "not reproduced"))
    assert "faster" in text and f"{GPU}/" in text  # verdicts, and the way of a number


@pytest.mark.parametrize("config", ["config", "core"])
def test_add_your_gpu_vets_adds_and_compares(config: str, tmp_path: Path) -> None:
    """A core run, which lies elsewhere, is taken where there is no full one, and is refused as a reference."""
    reference = write_run(tmp_path / "reference", GPU, "gpu", only=("arena",)).parent
    place = "results/core" if config == "core" else "results"
    results = write_run(tmp_path / place, "mine", "gpu", only=("arena",))
    settings = load_config(ROOT / f"config/{config}.yaml").model_dump(mode="json")
    for path in results.glob("*.json"):
        record = json.loads(path.read_text())
        record["config"]["values"] = settings
        path.write_text(json.dumps(record))
    folders = {"results_dir": str(tmp_path / "results/mine"), "reference_dir": str(reference)}
    text, pictures = shown(run_notebook("add_your_gpu", tmp_path, **folders, reference_to=str(tmp_path / "new")))
    assert pictures == 1 and "intervals_overlap" in text and re.search(r"machine +CPU +ok ", text)
    assert "No run lies in" not in text
    if config == "core":
        assert "this is the core run of" in text
        assert "it was measured with other settings: measure.max_seconds is" in text
        assert "added to" not in text and not (tmp_path / "new").exists()
    else:
        assert "added to mine" in text and "core run" not in text and "other settings" not in text
        assert (tmp_path / "new/mine/arena.csv").read_bytes() == (results / "arena.csv").read_bytes()


def test_add_your_gpu_without_a_run_says_what_to_run(tmp_path: Path) -> None:
    folders = {"results_dir": str(tmp_path / "results/mine"), "reference_dir": str(tmp_path / "reference")}
    text, pictures = shown(run_notebook("add_your_gpu", tmp_path, **folders))
    assert pictures == 0 and text.count("<table") == 0
    assert "No run lies in" in text and "EFFORT=full" in text and "nothing to vet" in text


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_are_committed_without_outputs(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []
