"""Study `stage_timing`: where the time of one batch goes."""

from pydantic import Field

from octopus_study.sections import Counts, Section

DATASET = "visdrone-val"


class StageTiming(Section):
    """Where the time of one batch of crops goes, by number of objects."""

    counts: Counts = Field([100, 500, 1000, 2000], min_length=1, description="objects per batch")
    counts_large_gpu: Counts = Field([5000], description="further batches on GPUs with memory for them")
    launches: Counts = Field(
        [1, 2, 4, 8, 16, 32, 64, 128, 256],
        min_length=3,
        description="empty launches per sample; the overhead is the slope over them",
    )
