"""Blocks of numbers, times and verdicts in documents: from what is committed, so that a test can keep them true."""

import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from octopus_study.measure._files import atomic_text
from octopus_study.report.claims import Judgement
from octopus_study.report.frame import Frame
from octopus_study.report.studies.pipelines import BY_INPUT
from octopus_study.report.tables.sources import source_map
from octopus_study.report.tables.spec import build
from octopus_study.report.tables.writers import markdown
from octopus_study.timings import Timing

MARKS = "<!-- --8<-- [start:{0}] -->\n", "<!-- --8<-- [end:{0}] -->"
_KERNEL, _CALL = (f"arena.visdrone.n1000.octopus.{of}" for of in ("crop_resize_normalize.device", "end_to_end.host"))
# What the paper quotes of the study `stage_timing`.
_QUOTED, _QUOTED_CALL = (name.replace("arena", "stage_timing") for name in (_KERNEL, _CALL))
_FEW = "arena.visdrone.n28.octopus.end_to_end.host"
_ONE_THREAD = "arena.visdrone-1thread.n1000.octopus.end_to_end.host"
_COUNTS = 32, 4  # images of a batch on a GPU, and on a CPU
_IMAGES = [f"images.large.n{count}.octopus.end_to_end" for count in _COUNTS]
_PREPARED = "pipelines.model.octopus.prepare.host"
_FILES = [f"pipelines.model-ragged.n{count}.jpeg.octopus.prepare.host" for count in _COUNTS]
_STEP = "pipelines.model-ragged.n32.pillow.octopus.model_step.host"
_OVER = "over_transformers"
_CHOSEN = re.compile(rf"\.speedup_over_(best_\w+)$|\.(least|greatest)_{_OVER}$")  # and which one was chosen
DASH = "\u2013"
_NOTHING = "No reference machine has a run of these studies yet.\n"


class Row(NamedTuple):
    """A line of the block; an id without its machine is empty where a kind of machine has no such number."""

    label: str
    gpu: str = ""
    cpu: str = ""


ROWS = (
    Row("1000 boxes of VisDrone, from boxes to batch by a reused plan", _QUOTED_CALL, _QUOTED_CALL),
    Row("the kernel alone: its share of the rate at which memory can be filled", f"{_QUOTED}.share_of_write-bound"),
    Row("kernel, over the fastest library with the same answer", f"{_KERNEL}.speedup_over_best_baseline"),
    Row("the same, over CV-CUDA's operator alone: one scale for all channels", f"{_KERNEL}.speedup_over_cvcuda-scalar"),
    Row("from boxes to batch by a plan, over the fastest such library", f"{_CALL}.speedup_over_best_baseline"),
    Row("28 boxes, from boxes to batch by a call without a plan", _FEW.replace("octopus", "octopus-one-call")),
    Row("the same by a plan", _FEW),
    Row("that plan, over roiconvert, which is called from C and rounds its pixels", f"{_FEW}.speedup_over_roiconvert"),
    Row("one thread each, over OpenCV's fastest form", cpu=f"{_ONE_THREAD}.speedup_over_best_opencv"),
    Row(
        "{} images (on the CPU {}) of 512 to 2048 px into patch rows".format(*_COUNTS),
        *(f"{name}.host" for name in _IMAGES),
    ),
    Row(
        "the same, over transformers, whose time includes allocation",
        *(f"{name}.host.speedup_over_transformers" for name in _IMAGES),
    ),
    Row("Qwen2-VL's processor, replaced, images in memory: least speed-up", *[f"{_PREPARED}.least_{_OVER}"] * 2),
    Row("the same: greatest speed-up", *[f"{_PREPARED}.greatest_{_OVER}"] * 2),
    Row(
        "{} JPEG files (on the CPU {}) to rows, over one-thread Pillow plus that processor".format(*_COUNTS),
        *(f"{name}.speedup_{_OVER}" for name in _FILES),
    ),
    Row(
        "the same, over torchvision's decoder plus that processor",
        *(f"{name}.speedup_{_OVER}-torchvision" for name in _FILES),
    ),
    Row("32 Pillow images, processor and vision tower together", f"{_STEP}.speedup_{_OVER}"),
)
STUDIES = frozenset(id.partition(".")[0] for row in ROWS for id in row[1:] if id)


def block(frame: Frame) -> str:
    """Return the block as Markdown; a row or a kind of machine without any number is left out."""
    columns = {kind: [cell(frame, f"{kind}.{getattr(row, kind)}") for row in ROWS] for kind in ("gpu", "cpu")}
    kinds = [kind for kind, texts in columns.items() if {*texts} != {DASH}]
    found = zip((row.label for row in ROWS), *(columns[kind] for kind in kinds), strict=True)
    rows = [row for row in found if {*row[1:]} - {DASH}]
    if not rows:
        return _NOTHING
    names = ["number", *(frame.text(f"{kind}.machine.name") for kind in kinds)]
    lines = [names, [":---", *["---:"] * len(kinds)], *rows]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    shown = {part for study in STUDIES for part in frame.text(f"shown.{study}").split("; ")} - {""}
    by_place = groupby(sorted(part.rpartition(", ") for part in shown), lambda parts: parts[0])
    days = "; ".join(f"{place}, {' and '.join(day for *_, day in parts)}" for place, parts in by_place)
    return f"{table}\nBrackets: 95 % intervals. Measured on: {days}. Written by `octopus report readme`.\n"


def cell(frame: Frame, identifier: str) -> str:
    """Return a number with its interval; of one chosen among several which it is, the fastest library or the input; and
    whether its answer differs."""
    number = frame.get(identifier)
    if not number:
        return DASH
    of = _CHOSEN.search(identifier)
    chosen = of and frame.text(f"{identifier[: of.start()]}.{of[1] or of[2]}")
    median = frame.get(identifier.rpartition(".")[0])
    interval = number.interval and f" [{number.interval}]"
    parts = (chosen, "pixels differ" if median and median.differs else "")
    return ", ".join((f"{number.precise}{interval}", *filter(None, parts)))


def inputs_block(frame: Frame) -> str:
    """Return the table of what gains how much with one import changed, by what is passed, as Markdown."""
    return markdown(build(BY_INPUT, frame))


def sources_block(frame: Frame, judgements: list[Judgement]) -> str:
    """Return the map of the sources, with how each claim ended on the machines of the references, as Markdown."""
    return markdown(source_map(frame, judgements, by_id=True))


def times(rows: Iterable[Timing]) -> str:
    """Return what the commands take, as Markdown."""
    shown = [
        (f"`make {row.target}`", f"{row.seconds / 60:.0f} min", f"{row.where}; {row.day}, commit {row.commit}")
        for row in rows
        if row.step == "all"
    ]
    lines = [("command", "installation included", "timed on"), (":---", "---:", ":---"), *shown]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def write_block(name: str, text: str, document: Path) -> None:
    """Put a block between the marks of that name in a document."""
    begin, end = (mark.format(name) for mark in MARKS)
    head, _, rest = document.read_text(encoding="utf-8").partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        raise ValueError(f"{document} has no marks {begin.strip()} and {end}")
    with atomic_text(document) as stream:
        stream.write(head + begin + text + found + tail)
