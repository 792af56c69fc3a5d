"""Parity: how far the answers lie from those of other libraries."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from octopus_study.names import PARITY_PEERS, SETTINGS, human, place
from octopus_study.report.frame import Frame, Key, Number, make_number, make_text
from octopus_study.report.runs import Run
from octopus_study.report.samples import groups
from octopus_study.report.study import StudyReport
from octopus_study.report.tables.cells import Cell
from octopus_study.report.tables.spec import Spec
from octopus_study.report.tables.writers import MISSING
from octopus_study.report.text import significant
from octopus_study.report.view import View, views

CAPTION = (
    "Absolute differences between the answers of Octopus and of other libraries under settings that agree: maximum / "
    "mean over all values, in levels of 0 to 255, before normalisation."
)
QUANTITIES = ("max_abs_difference", "mean_abs_difference")


def largest(run: Run) -> Iterator[Number]:
    """Yield, for each setting, the largest difference to any library and the library that it is from."""
    for group, rows in groups(run, quantity=QUANTITIES[0]):
        known = rows[rows["value"].notna()]
        if known.empty:
            continue
        worst = known.loc[known["value"].idxmax()]
        key, source = run.key(group.workload, group.n), group.rows_of(run)
        note = f"largest over {len(known)} libraries, {worst['method']}"
        where = (key.but(quantity="largest_difference"), source, worst["unit"])
        yield make_number(*where, float(worst["value"]), note=note)
        name = human(PARITY_PEERS, str(worst["method"]))
        yield make_text(key.but(quantity="farthest_library"), source, name, note)


def settings(view: View) -> list[Key]:
    """Return the settings of a run with their number of boxes; named ones first."""
    numbers = view.select(quantity=QUANTITIES[0], layer="deterministic")
    keys = dict.fromkeys(number.key.but(method="") for number in numbers)
    return sorted(keys, key=lambda key: place(SETTINGS, key.workload))


def _peers(frame: Frame) -> list[tuple[str, Cell]]:
    """Return a column for each library that any run entered."""
    compared = (view.select(quantity=QUANTITIES[0], layer="deterministic") for view in views(frame, "parity"))
    peers = {number.method for numbers in compared for number in numbers}
    names = sorted(peers, key=partial(place, PARITY_PEERS))
    return [(human(PARITY_PEERS, name), _differences(name)) for name in names]


def _differences(peer: str) -> Cell:
    def cell(view: View, key: Key) -> str:
        numbers = [view.frame.find(key.but(method=peer, quantity=quantity)) for quantity in QUANTITIES]
        entered = [number for number in numbers if number]
        if not all(number.known for number in entered):
            return view.reasons.cell(entered[0].note)
        # Two digits say how far apart answers are; the third is noise of the sample.
        return " / ".join(significant(number.value, 2) for number in entered) or MISSING

    return cell


PARITY = Spec(
    study="parity",
    first="Setting",
    label=lambda view, key: human(SETTINGS, key.workload),
    cases=settings,
    columns=_peers,
    caption=CAPTION,
    absent=f"{CAPTION} No run of this study is shown.",
    title=lambda view: f"{view.title}: {settings(view)[0].n} boxes",
)
REPORT = StudyReport(numbers=(largest,), tables={"parity": PARITY})
