"""The fastest of several methods that were measured together, and the speed-up of Octopus over it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from octopus_study import names
from octopus_study.names import ARENA_METHODS, SUBJECT, human
from octopus_study.report.frame import Number, make_text
from octopus_study.report.measured import floor_of, ratio_of, speedup
from octopus_study.report.runs import Run
from octopus_study.report.samples import Group, paired

if TYPE_CHECKING:
    import pandas as pd

BEST_OPENCV = "best_opencv"
# Which of Octopus' methods gives a method's answer, where it isn't the usual one.
LIKE = {row.name: row.like for row in names.CROP_METHODS if row.like != SUBJECT}


def subject_of(method: str) -> str:
    """Return the method of Octopus with which a method is compared."""
    return LIKE.get(method, SUBJECT)


def fastest(
    run: Run, group: Group, table: pd.DataFrame, names: Sequence[str], word: str, what: str
) -> Iterator[Number]:
    """Yield which of some methods is the fastest, and the speed-up over it of Octopus with the same answer.

    The fastest is the one over which the speed-up is least; `word` stands for it in keys.
    """
    own = {name: subject_of(name) for name in names if subject_of(name) in table}
    own = {name: subject for name, subject in own.items() if len(paired(table, subject, name)) > 1}
    if not own or SUBJECT not in table:
        return
    best = min(own, key=lambda name: ratio_of(table, own[name], name))
    note = f"fastest of {len(own)} {what}, by its speed-up: {best}"
    yield make_text(
        group.key(run, SUBJECT).derive(word), group.rows_of(run), human(ARENA_METHODS, best), note
    )
    for number in speedup(run, group, table, (own[best], best), floor_of(table)):
        key = number.key.but(method=SUBJECT, other=word)
        chosen = group.rows_of(run).selector  # which one is the fastest rests on all of them
        named = number._replace(id=key.id, method=SUBJECT, other=word, selector=chosen)
        yield named._replace(note=f"{number.note}; {note}")


def best_opencv(run: Run, group: Group, table: pd.DataFrame) -> Iterator[Number]:
    """Yield the fastest form of OpenCV, whatever its threads, and the speed-up over it."""
    forms = [name for name in table if name.partition("-")[0] == "opencv" and "uint8" not in name]
    yield from fastest(run, group, table, forms, BEST_OPENCV, "forms of OpenCV")
