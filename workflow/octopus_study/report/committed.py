"""What is committed for those who build nothing: the paper, and its figures, from the references alone."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from PIL import Image

from octopus_study.measure._files import whole_files
from octopus_study.report.outputs import figures
from octopus_study.report.paper import build_paper

COLORS = 96  # of a figure, so that all of them are small
FOLDER, PAPER = "reference", "octopus.pdf"  # below the folders of figures and of the paper


def write_committed(build: Path, drawn: Path, source: Path, reference: Path, out: Path) -> None:
    """Write the figures `drawn` of a build of the references, with few colours, and the paper into `out`. The PDF is
    dated by the newest run's end: a commit's date would change with the commit that adds it."""
    with whole_files(out) as folder:
        for name in figures():
            with Image.open(drawn / f"{name}.png") as picture:
                few = picture.convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
            few.save(folder / f"{name}.png", optimize=True)
    build_paper(source, build, drawn, out / PAPER, timestamp=max(_ends(reference)))


def _ends(reference: Path) -> Iterator[int]:
    for path in reference.glob("*/*.json"):
        yield int(datetime.fromisoformat(json.loads(path.read_text(encoding="utf-8"))["ended"]).timestamp())


def stored(figures_dir: Path, paper_dir: Path) -> dict[str, Path]:
    """Return by name where each of these is committed, whether it is there or not, and what else lies among them."""
    there = sorted((figures_dir / FOLDER).glob("*.png"))
    places = [*(figures_dir / FOLDER / f"{name}.png" for name in figures()), *there, paper_dir / PAPER]
    return {path.name: path for path in places}
