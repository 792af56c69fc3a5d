"""Study `distribution`: what the distribution of box sizes costs."""

from typing import Literal

from pydantic import Field

from octopus_study.sections import Count, Section

DATASET = "visdrone-val"


class Distribution(Section):
    """How the distribution of box sizes changes the padding waste and the speed."""

    count: Count = Field(1000, description="boxes per workload")
    frame: tuple[Count, Count] = Field((3840, 2160), description="width and height of the generated frame")
    workloads: list[Literal["uniform", "long-tail", "bimodal", "temporal", "visdrone"]] = Field(
        ["uniform", "long-tail", "bimodal", "temporal", "visdrone"],
        min_length=1,
        description="distributions of box sizes",
    )
    times: bool = Field(True, description="whether crops are timed, or only what follows from the boxes alone")
