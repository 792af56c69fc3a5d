"""Study `pipelines`: whole pipelines before and after one import is changed."""

from typing import Literal

from pydantic import Field

from octopus_study.sections import Count, Seconds, Section, ends_after

DATASET = "visdrone-val"
Batch = Literal["one", "ragged", "small", "documents", "photos"]
Input = Literal["pillow", "numpy", "torch", "torch-gpu", "jpeg"]


class Pipelines(Section):
    """Pipelines that people have, with their own package and with Octopus in its place."""

    batches: list[Batch] = Field(
        ["one", "ragged", "small", "documents", "photos"],
        min_length=1,
        description="images: one of 1080p, 32 of 512 to 2048 px, 256 of 64 to 512 px, 8 pages of 2200 x 1700 px, 8 "
        "photographs of 4032 x 3024 px",
    )
    inputs: list[Input] = Field(
        ["pillow", "numpy", "torch", "torch-gpu", "jpeg"],
        min_length=1,
        description="what is handed over: images of Pillow, arrays (H, W, C), tensors (C, H, W) on the host and on the "
        "GPU, contents of JPEG files",
    )
    cpu_part: Count = Field(8, description="a CPU gets one of so many images of a batch, and one at least")
    tower: bool = Field(True, description="whether the model's vision tower works on the rows, on a GPU")
    detections: list[Count] = Field(
        [28, 100], min_length=1, description="boxes of a frame that count, of `most_detections`"
    )
    most_detections: Count = Field(300, description="boxes that a detector gives at most")
    loader_images: Count = Field(128, description="JPEG images of a folder that a DataLoader reads")
    loader_workers: list[Count] = Field(
        [4], min_length=1, description="processes that decode them, no more than there are cores"
    )
    max_seconds: Seconds = ends_after(3.0)
