"""Study `satellite`: which tiles of a scene are worth the downlink."""

from typing import Annotated, Literal

from pydantic import Field

from octopus_study.sections import Fraction, Seconds, Section, ends_after

DATASET = "sentinel2-b04"


class Satellite(Section):
    """Which tiles of a scene are worth the downlink."""

    variants: list[Literal["uint16", "rgb8"]] = Field(
        ["uint16", "rgb8"], min_length=1, description="digital numbers as they are, or three channels of bytes"
    )
    threshold: Fraction = Field(0.535, description="mean brightness above which a tile of a real scene is kept")
    threshold_synthetic: Fraction = Field(0.35, description="the same for generated scenes")
    byte_budget: Fraction = Field(
        0.45, description="share of the scene's bytes that the best tiles may take, for the rule of the byte budget"
    )
    downlink: Annotated[float, Field(gt=0)] = Field(2e6, description="bits per second to the ground")
    synthetic_side: int = Field(8192, ge=0, description="side of the generated scene in pixels; 0: none")
    max_seconds: Seconds = ends_after(3.0)
