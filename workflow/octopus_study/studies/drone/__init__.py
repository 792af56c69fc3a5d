"""Study `drone`: the crops of a video's detections, frame by frame."""

from pydantic import Field

from octopus_study.sections import Count, Counts, Section

DATASET = "visdrone-val"


class Drone(Section):
    """Crops of a video's detections, frame by frame."""

    seconds: Counts = Field([1, 5, 10], min_length=1, description="lengths of the clips")
    frame_rate: Count = Field(30, description="frames per second")
    detections: tuple[Count, Count] = Field((5, 50), description="fewest and most detections in a frame")
    paced: bool = Field(True, description="whether the longest clip is also played at its own rate")
