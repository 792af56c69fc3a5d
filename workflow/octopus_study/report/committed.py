"""What is committed for those who build nothing: the paper, its figures and what notebooks show, from the references
alone."""

import json
import os
import platform
from collections.abc import Iterator
from copy import deepcopy
from datetime import datetime
from pathlib import Path
from subprocess import DEVNULL
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from PIL import Image
from traitlets.config import Config

from octopus_study.measure._files import whole_files
from octopus_study.report.outputs import figures
from octopus_study.report.paper import build_paper

# Of a figure, so that all are small. By an octree: the median cut gives what is drawn in few pixels another colour.
COLORS = 96
FOLDER, PAPER = "reference", "octopus.pdf"  # below the folders of figures and of the paper
NOTEBOOKS = ("octopus_in_5_minutes.ipynb", "explore_results.ipynb")  # the third is about the reader's own machine
VARIES = "varies"  # the tag of a cell whose outputs are its machine's, and so are not committed
# It waits in zmq itself. The one that nbclient takes by itself, under asyncio, now and then sees a reply only when its
# timeout ends, minutes later.
_BLOCKING = "jupyter_client.KernelManager"
_STATE, _VIEW = (f"application/vnd.jupyter.widget-{part}+json" for part in ("state", "view"))


def write_committed(build: Path, drawn: Path, source: Path, reference: Path, out: Path) -> None:
    """Write the figures `drawn` of a build of the references, with few colours, and the paper into `out`. The PDF is
    dated by the newest run's end: a commit's date would change with the commit that adds it."""
    with whole_files(out) as folder:
        for name in figures():
            with Image.open(drawn / f"{name}.png") as picture:
                few = picture.convert("RGB").quantize(COLORS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
            few.save(folder / f"{name}.png", optimize=True)
    build_paper(source, build, drawn, out / PAPER, timestamp=max(_ends(reference)))


def _ends(reference: Path) -> Iterator[int]:
    for path in reference.glob("*/*.json"):
        yield int(datetime.fromisoformat(json.loads(path.read_text(encoding="utf-8"))["ended"]).timestamp())


def stored(figures_dir: Path, paper_dir: Path, notebooks_dir: Path) -> dict[str, Path]:
    """Return by name where each of these is committed, whether it is there or not, and what else lies among them."""
    there = sorted((figures_dir / FOLDER).glob("*.png"))
    places = [*(figures_dir / FOLDER / f"{name}.png" for name in figures()), *there, paper_dir / PAPER]
    return {path.name: path for path in [*places, *(notebooks_dir / name for name in NOTEBOOKS)]}


def comparable() -> bool:
    """Whether this machine writes the same bytes as those that are committed: other processors round otherwise."""
    return (platform.system(), platform.machine()) == ("Linux", "x86_64")


def with_outputs(source: Path, folder: Path) -> str:
    """Run a notebook in a folder; return its file with plain outputs: what its widgets show stands without them, as
    pages that only render a notebook leave widgets out."""
    notebook = nbformat.read(source, as_version=4)
    executed = run_notebook(notebook, folder)
    state = executed.metadata.get("widgets", {}).get(_STATE, {}).get("state", {})
    for cell in executed.cells:
        if cell.cell_type == "code":
            varies = VARIES in cell.metadata.get("tags", ())
            outputs = [output for output in cell.outputs if not varies and output.get("name") != "stderr"]  # warnings
            cell.outputs = [plain for output in outputs for plain in _plain(output, state)]
    executed.metadata = notebook.metadata
    return nbformat.writes(executed) + "\n"


def run_notebook(notebook: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    """Return a notebook after all its cells ran in a folder."""
    notebook = deepcopy(notebook)
    with TemporaryDirectory(prefix="octopus-") as own:
        # Not by ports: kernels find free ones and open them later, and another program may have taken one by then.
        kernel = {"transport": "ipc", "connection_file": str(Path(own, "kernel.json"))}
        NotebookClient(
            notebook,
            timeout=300,  # s, of a cell
            kernel_name="python3",
            kernel_manager_class=_BLOCKING,
            resources={"metadata": {"path": str(folder)}},
            record_timing=False,
            coalesce_streams=True,
            config=Config(KernelManager=kernel),
        ).execute(env=os.environ | {"IPYTHONDIR": own}, stderr=DEVNULL)  # errors of cells come by messages
    return notebook


def _plain(output: nbformat.NotebookNode, state: dict) -> Iterator[nbformat.NotebookNode]:
    """Yield an output, or those within the widget that it shows."""
    view = output.get("data", {}).get(_VIEW)
    yield from _within(view["model_id"], state) if view else [output]


def _within(widget: str, state: dict) -> Iterator[nbformat.NotebookNode]:
    model = state[widget]["state"]
    for child in model.get("children", ()):
        yield from _within(child.removeprefix("IPY_MODEL_"), state)
    yield from map(nbformat.from_dict, model.get("outputs", ()))
