"""The tables, written as Typst, LaTeX and Markdown; ``NAMES`` lists them."""

from __future__ import annotations

NAMES = (
    "machines",
    "stage_timing",
    "padding_waste",
    "distribution_speed",
    "limits",
    "memory",
    "launch_overhead",
    "claims",
)
