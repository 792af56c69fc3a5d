"""The machines that results come from, and the verdicts on the published claims."""

from __future__ import annotations

from octopus.report.captions import scope_name
from octopus.report.claims import Judgement
from octopus.report.numbers import Numbers
from octopus.report.tables.writers import MISSING, Table

_FACTS = {
    "machine.gpu": "GPU",
    "machine.driver": "Driver",
    "machine.cuda": "CUDA",
    "machine.power_limit": "Power limit (W)",
    "machine.cpu": "CPU",
    "machine.cores": "Cores",
    "machine.threads": "Threads",
    "machine.os": "System",
    "machine.python": "Python",
    "machine.numba": "Numba",
    "machine.numba_cuda": "numba-cuda",
    "stage_timing.dataset": "Data set",
    "stage_timing.measured_on": "Measured on",
    "stage_timing.commit": "Commit",
}


def machines(numbers: Numbers) -> Table:
    """One column per machine, one row per fact."""
    scopes = _all_scopes(numbers)
    rows = [
        [name, *(numbers.text(f"{scope}.{key}", MISSING) for scope in scopes)] for key, name in _FACTS.items()
    ]
    known = [row for row in rows if any(cell != MISSING for cell in row[1:])]
    header = ["", *(scope_name(numbers, scope) for scope in scopes)]
    caption = "Machines, data and commits of the runs shown."
    columns = tuple(range(len(header)))
    widths = ("auto", *("1fr" for _ in scopes))
    return Table("machines", caption, header, known, text_columns=columns, widths=widths)


def claims(numbers: Numbers, judgements: list[Judgement]) -> Table:
    """One row per claim, one column per machine with the measured value and the verdict."""
    scopes = _all_scopes(numbers)
    by_claim: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        by_claim.setdefault(judgement.claim_id, []).append(judgement)
    rows = []
    for group in by_claim.values():
        cells = {judgement.scope: _cell(judgement) for judgement in group}
        rows.append([group[0].claim, group[0].rule, *(cells.get(scope, MISSING) for scope in scopes)])
    header = ["Published claim", "Rule", *(scope_name(numbers, scope) for scope in scopes)]
    caption = (
        "Published claims of the two studies and the verdict of a fixed rule. The whole 95 % interval must "
        f"satisfy the rule. {MISSING}: not measurable on this machine, with what it would need."
    )
    columns = tuple(range(len(header)))
    widths = ("2fr", "auto", *("1fr" for _ in scopes))
    return Table("claims", caption, header, rows, text_columns=columns, widths=widths)


def _cell(judgement: Judgement) -> str:
    if judgement.verdict == "not measurable here":
        return f"{MISSING} ({judgement.reason.removeprefix('unavailable: ')})"
    mark = f"{judgement.verdict}, {judgement.measured}"
    return f"{mark} (synthetic)" if "synthetic-" in judgement.dataset else mark


def _all_scopes(numbers: Numbers) -> list[str]:
    return list(dict.fromkeys([*numbers.scopes("stage_timing"), *numbers.scopes("distribution")]))
