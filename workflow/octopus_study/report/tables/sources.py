"""The map of the sources: each of their scripts, tables and figures, what stands for it here, and how its claims ended.

``sources.tsv`` has the facts, typed by hand; verdicts follow from the claims.
"""

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from octopus_study.names import SOURCES
from octopus_study.report import captions
from octopus_study.report.claims import Judgement
from octopus_study.report.claims.outcome import NOT_HERE
from octopus_study.report.claims.rules import OWN
from octopus_study.report.claims.tally import VERDICTS
from octopus_study.report.frame import Frame
from octopus_study.report.tables.overview import by_machine
from octopus_study.report.tables.writers import MISSING, Table

LIST = Path(__file__).with_suffix(".tsv")
NEEDS_GPU = "needs a GPU"
BOARD = "board: "  # before the reason why an item of published hardware has no claim
_WORDS = dict(zip(VERDICTS, ("yes", "no", "unsure", MISSING), strict=True))


class Item(NamedTuple):
    """A script, table or figure of a source; `published`, `shown` and `claims` are names with spaces between them, and
    `why` says why it has no claim."""

    source: str
    item: str
    study: str
    published: str
    shown: str
    claims: str
    why: str


def items() -> list[Item]:
    """Return the list, in the order of the sources."""
    with open(LIST, newline="", encoding="utf-8") as stream:
        return [Item(*row) for row in list(csv.reader(stream, delimiter="\t"))[1:]]


def source_map(frame: Frame, judgements: Sequence[Judgement], *, by_id: bool = False) -> Table:
    """Return the map with a column per machine that decides a published claim: how many claims ended how, or which."""
    names = [
        name
        for name in frame.machines()
        if any(one.scope == name and one.verdict != NOT_HERE and one.source != OWN for one in judgements)
    ]
    rows: list[list[str] | str] = []
    for source, title in SOURCES.items():
        rows.append(f"{source}: {title}")
        for item in (one for one in items() if one.source == source):
            cells = (_cell(item, [one for one in judgements if one.scope == name], by_id) for name in names)
            about = item.item + (f" ({item.why.removeprefix(BOARD)})" if item.why else "")
            rows.append([about, item.study, *(", ".join(x.split()) for x in (item.published, item.shown)), *cells])
    header = ["Item of the source", "Study", "Published", "Shown by"]
    caption = captions.TABLES["claims_map"].format(missing=MISSING)
    return by_machine(frame, caption, header, rows, names, ("2.4fr", "auto", "auto", "1.5fr"))


def _cell(item: Item, judged: Sequence[Judgement], by_id: bool) -> str:
    """Return how an item's claims ended on a machine; why, where it decides none of them."""
    nowhere = NOT_HERE if by_id else MISSING
    if item.why:
        return nowhere if item.why.startswith(BOARD) else "no claim"
    found = [one for one in judged if one.claim_id in item.claims.split()]
    if not found:
        return "no run of this study" if by_id else "no run"
    if all(one.verdict == NOT_HERE for one in found):
        reasons = dict.fromkeys(short_reason(one) for one in found)
        return f"{nowhere}: {NEEDS_GPU if NEEDS_GPU in reasons else '; '.join(reasons)}"
    ended = {word: [one.claim_id for one in found if one.verdict == verdict] for verdict, word in _WORDS.items()}
    parts = [f"{word}: {', '.join(ids)}" if by_id else f"{len(ids)} {word}" for word, ids in ended.items() if ids]
    return ("; " if by_id else ", ").join(parts)


def short_reason(judgement: Judgement) -> str:
    """Return why a machine can't decide, as short as a cell: what comes first says it."""
    return re.split("[,;] ", judgement.reason.removesuffix(" Orin Nano"))[0]
