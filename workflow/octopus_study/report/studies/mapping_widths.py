"""The table of like for like: block metadata against a search of its width, and what several elements per
thread add."""

from __future__ import annotations

from octopus_study.names import DISTRIBUTIONS
from octopus_study.report.frame import Key
from octopus_study.report.missing import no_run
from octopus_study.report.studies.mapping_numbers import CLASSES, PAIRS, WIDENED, pair_of
from octopus_study.report.tables import cells
from octopus_study.report.tables.cells import Cell
from octopus_study.report.tables.spec import Spec
from octopus_study.report.view import View

STUDY = "mapping"
EACH = {"scalar": "one element", "vector": "several elements"}
_LETTERS = {"lookup": "A", "thread-search": "B", "block-metadata": "C"}


def _classes(view: View) -> list[Key]:
    """Return each class of operations on each distribution in which some pair was measured."""
    keys = [view.key(f"{name}.{batch}") for name in CLASSES for batch in (*DISTRIBUTIONS, "all")]
    pairs = [*(pair_of(width, view.is_gpu) for width in PAIRS), *WIDENED]
    return [key for key in keys if any(view.get(_range(key, pair)) for pair in pairs)]


def _range(key: Key, pair: tuple[str, str]) -> Key:
    return key.but(method=pair[0], derived="range", other=pair[1])


def _name(view: View, key: Key) -> str:
    name, _, batch = key.workload.partition(".")
    return f"{name.capitalize()}, {DISTRIBUTIONS.get(batch, batch)}"


def _of_width(width: str) -> Cell:
    return lambda view, key: cells.number_text(view.frame, _range(key, pair_of(width, view.is_gpu)))


def _widened(pair: tuple[str, str]) -> Cell:
    return lambda view, key: cells.number_text(view.frame, _range(key, pair))


WIDTHS = Spec(
    study=STUDY,
    first="Operations, items",
    label=_name,
    cases=_classes,
    columns={
        **{f"C over B, {each}": _of_width(width) for width, each in EACH.items()},
        **{f"{_LETTERS[pair[0]]}: several over one": _widened(pair) for pair in WIDENED},
    },
    caption="Block metadata (C) over a search by every thread (B), like for like: both with one element per thread, as "
    "published, or both with several. Beside it, what several elements per thread instead of one add to the lookup "
    "table (A), to B and to C. Least and greatest ratio over operations and numbers of items, float32. Memory-bound: "
    "multiply, normalise, threshold; compute-bound: gamma, and two blurs that take tiny items one element at a time in "
    "every form. A dash: not measured in these rows; on a CPU, A and C read owners one by one.",
    absent=f"Elements per thread. {no_run(STUDY)}",
)
