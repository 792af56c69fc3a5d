"""Study `concurrency`: two models on one GPU."""

from __future__ import annotations

from pydantic import Field

from octopus_study.sections import Count, Seconds, Section

DATASET = "visdrone-val"


class Concurrency(Section):
    """Two models on one GPU."""

    processes: bool = Field(True, description="whether models also run in processes of their own, with and without MPS")
    samples: Count = Field(100, description="iterations per arm from which the latencies come")
    max_seconds: Seconds = Field(
        60.0, description="seconds after which a comparison with its least number of blocks ends"
    )
