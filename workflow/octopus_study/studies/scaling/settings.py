"""Settings of the study `scaling`."""

from __future__ import annotations

from pydantic import Field

from octopus_study.sections import Count, Counts, Seconds, Section


class Scaling(Section):
    """The same work on several GPUs of one host."""

    gpus: Counts = Field(
        [1, 2, 4, 8],
        min_length=1,
        description="GPUs that work together; the number that is visible comes by itself",
    )
    frames: Count = Field(1024, description="frames of a block: of each GPU, or of all together")
    boxes: Count = Field(100, description="boxes of a frame")
    batches: Count = Field(
        256, description="batches of ragged images of a block: of each GPU, or of all together"
    )
    images: Count = Field(32, description="images of a batch, of 256 to 1024 px")
    copies: Count = Field(16, description="page-locked copies to each GPU in a block, of 64 MiB each")
    held_mib: Count = Field(
        256, description="MiB of pixels that a GPU and the host have for it; a block takes them in turn"
    )
    max_seconds: Seconds = Field(
        6.0, description="seconds after which a comparison with its least number of blocks ends"
    )
