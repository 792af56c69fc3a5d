"""Study `concurrency`: two models on one GPU."""

from pydantic import Field

from octopus_study.sections import Count, Seconds, Section, ends_after

DATASET = "visdrone-val"


class Concurrency(Section):
    """Two models on one GPU."""

    processes: bool = Field(True, description="whether models also run in processes of their own, with and without MPS")
    samples: Count = Field(100, description="iterations per arm from which the latencies come")
    max_seconds: Seconds = ends_after(60.0)
