"""Study `arena`: what users would pick instead."""

from typing import Literal

from pydantic import Field

from octopus_study.sections import Count, Counts, Seconds, Section, ends_after

DATASET = "visdrone-val"
CODE = ("baselines",)  # its methods are made by their names in `octopus_study.names`


class Arena(Section):
    """What users would pick instead, on the same boxes."""

    workloads: list[Literal["uniform", "visdrone", "large"]] = Field(
        ["uniform", "visdrone"], min_length=1, description="boxes of one size, those of the data set, large ones"
    )
    uniform_side: Count = Field(256, description="side of the boxes of one size, in pixels")
    counts: Counts = Field([28, 100, 1000], min_length=1, description="boxes per batch")
    counts_large_gpu: Counts = Field([], description="further batches on GPUs with memory for them")
    pipeline_max_count: Count = Field(
        1000, description="largest batch whose way through page-locked memory is measured"
    )
    max_seconds: Seconds = ends_after(2.0)
    least_blocks_seconds: Seconds = Field(
        60.0, description="seconds for a comparison's least number of blocks; the slowest methods are left out"
    )
    memory: bool = Field(True, description="whether each method's memory is measured in a fresh process")
