"""``docs/power_checks.md``: the ways to misread a power sensor, and the check that stops each."""

from __future__ import annotations

from octopus_study.names import POWER_STAGES
from octopus_study.power.checks import CHECKS, STAGES
from octopus_study.power.misreadings import MISREADINGS

_HEAD = """\
# Checks between a sensor and an energy

<!-- Written by `octopus report power-checks` from checks.py and misreadings.py in octopus_study/power. Do not edit. -->

A published table once held the millivolts of a supply rail as milliwatts, so that the energy it saved was nothing but
the time, and no program objected. Here every number passes the checks below on its way from a sensor's file to a
table, and no option switches one off. Where a check fails, `unavailable: <reason>` stands in place of the energy. The
reason names the check, unless there is simply no such sensor or it can't be read.

`tests/study/power/test_mutations.py` plants every mis-reading of the second table in a healthy sensor and demands that
the named check refuses it. `tests/study/power/test_checks_needed.py` takes each check away in turn and demands that a
mis-reading then gets through, so that no check stands here for show.
"""


def power_checks_doc() -> str:
    """Return the page."""
    return "\n".join(
        [_HEAD, "## The checks", "", *_checks(), "", "## What they stop", "", *_misreadings(), ""]
    )


def _checks() -> list[str]:
    lines = ["| Check | Stage | What must hold | Stops |", "| :--- | :--- | :--- | :--- |"]
    ordered = sorted(CHECKS, key=lambda check: STAGES.index(check.stage))
    return lines + [
        f"| `{check.id}` | {POWER_STAGES[check.stage]} | {check.title} | {check.catches} |"
        for check in ordered
    ]


def _misreadings() -> list[str]:
    lines = ["| Mis-reading | Planted in | What is wrong | Stopped by |", "| :--- | :--- | :--- | :--- |"]
    return lines + [f"| `{each.id}` | {each.sensor} | {each.what} | `{each.check}` |" for each in MISREADINGS]
