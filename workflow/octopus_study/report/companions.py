"""What reports of the companion studies share: what a figure rests on, and why there is nothing to show."""

from __future__ import annotations

from octopus_study.report.numbers import Numbers


def nothing(numbers: Numbers, study: str, sentence: str) -> str:
    """Say `sentence`, that nothing was measured, and why on each machine."""
    missing = numbers.text(f"shown.{study}.missing")
    return f"{sentence} {missing}." if missing else sentence


def footer(numbers: Numbers, study: str) -> str:
    """Say what a figure rests on: machines that only said what they lack don't count."""
    shown = numbers.text(f"shown.{study}.measured")
    return f"Measured on: {shown}." if shown else "Nothing was measured."
