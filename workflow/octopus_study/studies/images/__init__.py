"""Study `images`: images of any size on their way into a model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from octopus_study.sections import Count, Seconds, Section, ends_after

DATASET = "visdrone-val"
Name = Literal["large", "small", "thumbnails", "equal", "one"]


class Images(Section):
    """Images of any size on their way into a model, by one launch and by the processors that others have."""

    workloads: list[Name] = Field(
        ["large", "small", "thumbnails", "equal", "one"],
        min_length=1,
        description="images of 512 to 2048 px, 64 to 512 px, 256 to 1024 px, 1024 px, and one of 1920 x 1080 px",
    )
    embeddings: list[Literal["large", "small", "large-patch14"]] = Field(
        ["large", "small", "large-patch14"],
        description="images whose patches become embeddings on a GPU, as in Qwen3-VL, or of 14 px as in Qwen2-VL",
    )
    cpu_part: Count = Field(8, description="a CPU gets one of so many images of a batch, and one at least")
    max_seconds: Seconds = ends_after(3.0)
