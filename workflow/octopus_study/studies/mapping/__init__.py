"""Study `mapping`: how a thread finds the item of its element."""

from typing import Literal

from pydantic import Field

from octopus_study.sections import Counts, Seconds, Section, ends_after

DATASET = "visdrone-val"
Operation = Literal["multiply", "normalize", "threshold", "gamma", "blur3x3", "blur5x5_sobel"]


class ItemMapping(Section):
    """How a thread finds the item of its element: strategies, operations, items and sizes."""

    distributions: list[Literal["tiny", "visdrone", "large", "even"]] = Field(
        ["tiny", "visdrone", "large", "even"],
        min_length=1,
        description="spreads of image sizes: sides of 4 to 16, of the data set's boxes, of 100 to 512, all of 64",
    )
    operations: list[Operation] = Field(
        ["multiply", "normalize", "threshold", "gamma", "blur3x3", "blur5x5_sobel"],
        min_length=1,
        description="what is done to float32 elements",
    )
    items: Counts = Field([10_000, 50_000, 100_000, 150_000, 500_000], min_length=1, description="items on a GPU")
    items_cpu: Counts = Field([1_000, 5_000], min_length=1, description="items on a CPU")
    uint8_operations: list[Operation] = Field(
        ["multiply", "normalize", "blur3x3"], description="what is done to bytes, with the fewest items"
    )
    max_seconds: Seconds = ends_after(1.0)
