"""Study `power`: what a batch costs in energy."""

from typing import Annotated

from pydantic import Field

from octopus_study.sections import Counts, Section

DATASET = "visdrone-val"


class Power(Section):
    """Energy of a batch, by number of objects."""

    counts: Counts = Field([50, 100, 200, 500, 1000, 2000, 3000, 5000], min_length=1, description="objects per batch")
    again_counts: Counts = Field([1000], description="batches in which Octopus is entered twice, for the noise floor")
    paced_counts: Counts = Field(
        [100, 1000, 5000], description="batches that are also measured at a fixed rate of frames"
    )
    frame_rate: Annotated[float, Field(gt=0)] = Field(30.0, description="frames per second of that rate")
    windows: Annotated[int, Field(ge=5)] = Field(5, description="windows per method, one in each round")
    window_seconds: Annotated[float, Field(ge=5)] = Field(
        5.0, description="length of a window; never less than 50 updates of the sensor"
    )
    settle_seconds: Annotated[float, Field(ge=1)] = Field(
        1.0, description="work before each window, so that the sensor has followed"
    )
    idle_seconds: Annotated[float, Field(ge=5)] = Field(
        5.0, description="length of the idle windows before and behind each number of objects"
    )
