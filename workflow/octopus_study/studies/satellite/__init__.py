"""Study `satellite`: which tiles of a scene are worth the downlink."""

from pydantic import Field

from octopus_study.sections import Seconds, Section, ends_after

DATASET = "sentinel2-b04"


class Satellite(Section):
    """Which tiles of a scene are worth the downlink."""

    synthetic_side: int = Field(8192, ge=0, description="side of the generated scene in pixels; 0: none")
    max_seconds: Seconds = ends_after(3.0)
