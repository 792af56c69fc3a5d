"""Study `total_cost`: what a batch costs from setup to download."""

from typing import Literal

from pydantic import Field

from octopus_study.sections import Count, Seconds, Section, ends_after

DATASET = "visdrone-val"


class TotalCost(Section):
    """Setup, upload, kernel and download of one batch, and its reuse."""

    mixes: list[Literal["photos-500", "photos-500-4k", "photos-500-8k", "photos-1000", "photos-1000-8k"]] = Field(
        ["photos-500", "photos-500-4k", "photos-500-8k", "photos-1000", "photos-1000-8k"],
        min_length=1,
        description="published mixes of images",
    )
    kernels: list[Literal["light", "heavy"]] = Field(
        ["light", "heavy"], min_length=1, description="3x3 mean, or 5x5 mean with Sobel's gradient"
    )
    long_side: Count = Field(500, description="pixels of the usual images' longer side, as published 500")
    ladder: bool = Field(True, description="whether the naive baselines are measured too")
    max_seconds: Seconds = ends_after(2.0)
