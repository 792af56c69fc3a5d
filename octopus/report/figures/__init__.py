"""The figures, one file each; ``NAMES`` lists them and ``draw`` writes one as PDF and PNG."""

from __future__ import annotations

NAMES = (
    "stage_breakdown",
    "scaling",
    "size_distributions",
    "published_comparison",
    "launch_overhead",
    "temporal_jitter",
)
