"""Study `sequences`: ragged sequences against padding."""

from typing import Literal

from pydantic import Field

from octopus_study.sections import Section

DATASET = "visdrone-val"


class Sequences(Section):
    """Ragged sequences and patches against padding, a lookup table and nested tensors."""

    mixes: list[Literal["nlp-1k", "nlp-10k", "nlp-extreme-1k", "vision-patches-500", "vision-extreme-500"]] = Field(
        ["nlp-1k", "nlp-10k", "nlp-extreme-1k", "vision-patches-500", "vision-extreme-500"],
        min_length=1,
        description="published mixes of lengths",
    )
