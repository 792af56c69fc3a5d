"""How far the answers lie from those of other libraries."""

from __future__ import annotations

from collections.abc import Iterator

from octopus_study.report.captions import scope_title
from octopus_study.report.labels import PARITY_PEERS, SETTINGS, human
from octopus_study.report.numbers import Numbers
from octopus_study.report.tables import oldcells as cells
from octopus_study.report.tables.oldwriters import MISSING, Table
from octopus_study.report.text import significant

STUDY = "parity"
CAPTION = (
    "Absolute differences between the answers of Octopus and of other libraries under settings that agree: maximum / "
    "mean over all values, in levels of 0 to 255, before normalisation."
)
_QUANTITIES = ("max_abs_difference", "mean_abs_difference")


def parity(numbers: Numbers) -> Table:
    """One row per setting, one column per library."""
    scopes = numbers.scopes(STUDY)
    peers = _peers(numbers, scopes)
    reasons = cells.Reasons()
    rows: list[list[str] | str] = []
    for scope in scopes:
        rows += _section(numbers, scope, peers, reasons)
    header = ["Setting", *(human(PARITY_PEERS, peer) for peer in peers)]
    caption = f"{CAPTION}{reasons.note}" if rows else f"{CAPTION} No run of this study is shown."
    return Table("parity", caption, header, rows)


def _peers(numbers: Numbers, scopes: list[str]) -> list[str]:
    """Return the libraries that any run entered, in a fixed order."""
    found = {match[3] for scope in scopes for match, _ in _matching(numbers, scope)}
    known = [peer for peer in PARITY_PEERS if peer in found]
    return [*known, *sorted(found - set(known))]


def _matching(numbers: Numbers, scope: str) -> list:
    return numbers.matching(
        rf"{scope}\.{STUDY}\.([\w.-]+?)\.n(\d+)\.([\w-]+)\.max_abs_difference\.deterministic"
    )


def settings(numbers: Numbers, scope: str) -> list[tuple[str, str]]:
    """Return the settings of a run with their number of boxes; named ones first."""
    found = list(dict.fromkeys((match[1], match[2]) for match, _ in _matching(numbers, scope)))
    order = list(SETTINGS)
    return sorted(found, key=lambda one: (order.index(one[0]) if one[0] in order else len(order), one[0]))


def _section(
    numbers: Numbers, scope: str, peers: list[str], reasons: cells.Reasons
) -> Iterator[list[str] | str]:
    found = settings(numbers, scope)
    if found:
        yield f"{scope_title(numbers, scope, STUDY)}: {found[0][1]} boxes"
    for setting, n in found:
        prefix = f"{scope}.{STUDY}.{setting}.n{n}"
        yield [human(SETTINGS, setting), *(_cell(numbers, f"{prefix}.{peer}", reasons) for peer in peers)]


def _cell(numbers: Numbers, prefix: str, reasons: cells.Reasons) -> str:
    known = [numbers[key] for name in _QUANTITIES if (key := f"{prefix}.{name}.deterministic") in numbers]
    if not known:
        return MISSING
    if any(number.value != number.value for number in known):
        return reasons.cell(known[0].note)
    # Two digits say how far apart answers are; the third is noise of the sample.
    return " / ".join(significant(number.value, 2) for number in known)
