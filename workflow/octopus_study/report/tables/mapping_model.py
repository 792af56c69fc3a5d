"""The table of the cost model: its one fitted parameter, its errors, and what it says of the published machines."""

from __future__ import annotations

from octopus_study.measure.costmodel import HARDWARE
from octopus_study.report.captions import scope_name
from octopus_study.report.derive.mapping_model import FITTED, PAIRS
from octopus_study.report.labels import PUBLISHED_MACHINES, STRATEGIES, human
from octopus_study.report.mapping import NO_RUN, STUDY
from octopus_study.report.numbers import Numbers
from octopus_study.report.tables import oldcells as cells
from octopus_study.report.tables.oldwriters import MISSING, Table

_FACTS = {
    "step": "One step of a search, fitted",
    "step_cycles": "The same in cycles of the clock",
    "fit_error": "Error of the fitted cases",
    "check_error": "Error of the cases kept for the check",
}


def model(numbers: Numbers) -> Table:
    """Errors of the model on each machine, and its predictions for the published ones."""
    scopes = numbers.scopes(STUDY)
    reasons = cells.Reasons()
    rows: list[list[str] | str] = [
        [name, *(_cell(numbers, scope, fact, reasons) for scope in scopes)] for fact, name in _FACTS.items()
    ]
    rows.append("Predicted ratios against measured ones")
    for method, other in PAIRS:
        name = f"{human(STRATEGIES, method)} over {human(STRATEGIES, other)}"
        texts = [_cell(numbers, scope, f"{method}.ratio_error_over_{other}", reasons) for scope in scopes]
        rows.append([name, *texts])
    rows.append("Block metadata over a search by every thread, one element, on the published machines")
    for machine in HARDWARE:
        key = f"published.block_metadata_gain.{machine}.memory-bound.speedup_over_thread_search"
        if key in numbers:
            texts = [_prediction(numbers, scope, machine) for scope in scopes]
            rows.append([f"{human(PUBLISHED_MACHINES, machine)}, published {numbers.text(key)}", *texts])
    caption = (
        "The cost model: launch + the longer of memory traffic and searches. One step of a search is fitted to every "
        f"second case of {human(STRATEGIES, FITTED)}, the other cases check it. Errors: medians of |predicted / "
        "measured - 1|, for memory-bound operations on float32. For the published machines a step takes as many "
        f"cycles as here.{reasons.note}{'' if scopes else ' ' + NO_RUN}"
    )
    header = ["", *(scope_name(numbers, scope) for scope in scopes)]
    widths = ("2.2fr", *("1.4fr" for _ in scopes))
    return Table("mapping_model", caption, header, rows, widths=widths)


def _cell(numbers: Numbers, scope: str, fact: str, reasons: cells.Reasons) -> str:
    text = numbers.text(f"{scope}.{STUDY}.costmodel.{fact}", MISSING)
    return reasons.cell(text) if text.startswith("unavailable") else text


def _prediction(numbers: Numbers, scope: str, machine: str) -> str:
    prefix = f"{scope}.{STUDY}.costmodel.{machine}"
    if f"{prefix}.predicted" not in numbers:
        return MISSING
    return f"{numbers.text(f'{prefix}.predicted')}, {numbers.text(f'{prefix}.verdict')}"
