"""What a run lacks: numbers that say why there is none, and which runs of a study measured something."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from octopus_study.report.frame import Frame, Key, Number
from octopus_study.report.machines import place_name, run_list, shown
from octopus_study.report.runs import Run
from octopus_study.report.selector import ALL_ROWS

if TYPE_CHECKING:
    import pandas as pd

NOT_THERE = "not measured there"
# Layers whose rows need a device; what is counted without one is no measurement.
_LAYERS = ("host", "memory", "device")


def no_run(study: str) -> str:
    """Say that no run of a study is shown, in place of a figure or a table."""
    return f"No run of the study {study} is at hand: older results lack it."


def absent(study: str, what: str) -> Callable[[Frame], str]:
    """Return what a table without rows says: that no run has any of it, or that there is no run of the study."""
    return lambda frame: f"{what}: no run at hand has it." if frame.shown(study) else no_run(study)


def by_reason(said: Iterable[tuple[str, str]]) -> str:
    """Return names with their reasons, each reason once: ``A, B: why; C: another``."""
    reasons: dict[str, list[str]] = {}
    for name, reason in said:
        reasons.setdefault(reason, []).append(name)
    return "; ".join(f"{', '.join(dict.fromkeys(names))}: {why}" for why, names in reasons.items())


def measured_runs(runs: list[Run]) -> Iterator[Number]:
    """Yield ``shown.<study>.measured`` and ``shown.<study>.missing``: machines, data and days, and why others have no
    numbers."""
    measured = run_list([run for run in runs if _measured_something(run)], runs)
    lacking = [f"{place_name(run, runs)}: {most_say(run.rows)}" for run in runs if not _measured_something(run)]
    for name, text in (("measured", measured), ("missing", "; ".join(lacking))):
        if text:
            yield shown(runs, name, text, ALL_ROWS)


def _measured_something(run: Run) -> bool:
    rows = run.rows[run.rows["layer"].isin(_LAYERS) & (run.rows["quantity"] != "discarded_blocks")]
    return bool(rows["value"].notna().any())


def most_say(rows: pd.DataFrame) -> str:
    """Return the reason that most rows without a number give."""
    reasons = rows.loc[rows["value"].isna(), "reason"].value_counts()
    return str(reasons.index[0]) if len(reasons) else "no row says why"


def with_reasons(frame: Frame, study: str, sentence: str) -> str:
    """Say `sentence`, that nothing was measured, and why on each machine."""
    missing = frame.text(Key("shown", study, quantity="missing"))
    return f"{sentence} {missing}." if missing else sentence


def footer(study: str, runs: str = "", nothing: str = "Nothing was measured.") -> Callable[[Frame], str]:
    """Return the footer of a figure that rests on the runs of a fact `shown.<study>.<runs>`, all runs of the study
    unless one is named."""

    def text(frame: Frame) -> str:
        names = frame.text(Key("shown", study, quantity=runs))
        return f"Measured on: {names}." if names else nothing

    return text
