"""Study `detector`: detection end to end, prepared on the CPU or by Octopus."""

from __future__ import annotations

from pydantic import Field

from octopus_study.sections import Count, Section

DATASET = "visdrone-val"


class Detector(Section):
    """Detection end to end, prepared on the CPU or by Octopus."""

    frames: Count = Field(200, description="frames")
    size: tuple[Count, Count] = Field((640, 640), description="height and width of the detector's input in pixels")
