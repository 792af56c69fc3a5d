"""One file of claims, charts, figures and numbers, as large as a mail may be."""

import base64
import gzip
import io
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
from PIL import Image

from octopus_study.measure._files import atomic_text
from octopus_study.names import SOURCES
from octopus_study.report.claims import load_claims, read_claims
from octopus_study.report.claims.tally import GOALS, MAJOR, VERDICTS, tally
from octopus_study.report.frame import Frame
from octopus_study.report.page import content
from octopus_study.report.page.headlines import headlines
from octopus_study.report.page.libraries import libraries, licences
from octopus_study.report.tables import overview
from octopus_study.report.trace import all_traces

LIMIT = 3_000_000  # bytes
# Widths of the figures, the first their own; more numbers leave less room for them.
_WIDTHS = (1440, 1000, 700, 400)
# Of a figure of its own size: lines and letters that are as drawn take less room than smaller ones.
_COLOURS = 64


def build_page(
    numbers: str | Path,
    claims: str | Path,
    claims_yaml: str | Path,
    paper_dir: str | Path,
    figures_dir: str | Path,
    out: str | Path,
) -> Path:
    """Write the results page from ``numbers.csv``, ``claims.csv`` and the claims' rules. Traces look for uses in the
    paper's sources; a figure whose PNG is missing is left out."""
    frame, rules = Frame.read(numbers), load_claims(claims_yaml)
    judged = read_claims(claims)
    traces = all_traces(frame, rules, Path(paper_dir), Path(claims_yaml))
    rows = content.claim_rows(rules, judged, frame)
    shown = {
        "headlines": headlines(frame),
        "claims": rows,
        "named": {row.id: row for row in rows},
        "judged": content.judged_machines(frame, [[one.scope for one in judged]]),
        "names": frame.machine_name,
        "counts": tally(judged),
        "groups": ("published", MAJOR, GOALS, "fact"),
        "verdicts": VERDICTS,
        "sections": content.sections(frame),
        "machines": overview.machines(frame),
        "sources": SOURCES,
        "packed": packed(content.all_numbers(frame, traces)),
        "licences": licences(),
    }
    with atomic_text(Path(out)) as stream:
        stream.write(_fitting(shown, Path(figures_dir)))
    return Path(out)


def packed(numbers: Mapping[str, Any]) -> dict[str, str]:
    """Return the libraries and the numbers, each compressed, as text that the page unpacks."""
    data = json.dumps(numbers, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    texts = libraries() | {"data": data}
    return {name: _base64(gzip.compress(text.encode(), 9, mtime=0)) for name, text in texts.items()}


def _fitting(shown: Mapping[str, Any], figures: Path) -> str:
    """Return the page with its figures as wide as its size allows; too many numbers are no reason to have none."""
    folder = Path(__file__).parent
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    for width in _WIDTHS:
        pictures = {path.stem: _picture(path, width) for path in sorted(figures.glob("*.png"))}
        page = environment.get_template("page.html").render(shown, pictures=pictures)
        if len(page.encode()) <= LIMIT:
            return page
    logging.getLogger(__name__).warning("The results page is larger than %d bytes: too many numbers.", LIMIT)
    return page


def _picture(path: Path, width: int) -> tuple[str, int, int]:
    """Return a figure as the address of its data, with its size on the page."""
    with Image.open(path) as figure:
        picture = figure.convert("RGB")
    stream = io.BytesIO()
    if picture.width <= width:
        few = picture.quantize(_COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        few.save(stream, "WEBP", lossless=True, method=6)
    else:
        picture.thumbnail((width, 4 * width))
        picture.save(stream, "WEBP", quality=60, method=4)
    return f"data:image/webp;base64,{_base64(stream.getvalue())}", *picture.size


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
