"""The sections of the configuration, one per study and a few shared ones; `octopus_study.config` puts them together."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Count = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(gt=0, lt=1)]
Triple = tuple[float, float, float]


def _ascending(counts: list[int]) -> list[int]:
    if counts != sorted(set(counts)):
        raise ValueError(f"must be in ascending order without repeats, not {counts}")
    return counts


Counts = Annotated[list[Count], AfterValidator(_ascending)]


class Section(BaseModel):
    """Keys that are all known, and don't change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Measure(Section):
    """How long and how precisely each comparison is measured."""

    min_blocks: Count = Field(20, description="paired blocks that every comparison has at least")
    max_blocks: Count = Field(200, description="paired blocks after which a comparison ends")
    min_seconds: Seconds = Field(
        0.5, description="seconds of measured work that every comparison has at least"
    )
    max_seconds: Seconds = Field(
        8.0, description="seconds after which a comparison with its least number of blocks ends"
    )
    give_up_seconds: Seconds = Field(120.0, description="seconds after which any comparison ends")
    target_halfwidth: Fraction = Field(
        0.02, description="stop when every ratio's 95 % interval is within this fraction of the ratio"
    )
    equal_within: Fraction = Field(0.02, description="two methods this close are called equal")


class Crop(Section):
    """What every study makes of a box."""

    size: tuple[Count, Count] = Field((224, 224), description="height and width of each crop in pixels")
    mean: Triple = Field((123.675, 116.28, 103.53), description="subtracted per channel, on the scale 0-255")
    std: Triple = Field((58.395, 57.12, 57.375), description="divisor per channel, on the scale 0-255")


class StageTiming(Section):
    """Where the time of one batch of crops goes, by number of objects."""

    counts: Counts = Field([100, 500, 1000, 2000], min_length=1, description="objects per batch")
    counts_large_gpu: Counts = Field([5000], description="further batches on GPUs with memory for them")
    launches: Counts = Field(
        [1, 2, 4, 8, 16, 32, 64, 128, 256],
        min_length=3,
        description="empty launches per sample; the overhead is the slope over them",
    )


class Distribution(Section):
    """How the distribution of box sizes changes the padding waste and the speed."""

    count: Count = Field(1000, description="boxes per workload")
    frame: tuple[Count, Count] = Field((3840, 2160), description="width and height of the generated frame")
    workloads: list[Literal["uniform", "long-tail", "bimodal", "temporal", "visdrone"]] = Field(
        ["uniform", "long-tail", "bimodal", "temporal", "visdrone"],
        min_length=1,
        description="distributions of box sizes",
    )
    frames: Count = Field(10, description="frames of the temporal workload")


class Arena(Section):
    """What users would pick instead, on the same boxes."""

    workloads: list[Literal["uniform", "visdrone"]] = Field(
        ["uniform", "visdrone"], min_length=1, description="boxes of one size, and those of the data set"
    )
    uniform_side: Count = Field(256, description="side of the boxes of one size, in pixels")
    counts: Counts = Field([28, 100, 1000], min_length=1, description="boxes per batch")
    counts_large_gpu: Counts = Field([5000], description="further batches on GPUs with memory for them")
    pipeline_max_count: Count = Field(
        1000, description="largest batch whose way through page-locked memory is measured"
    )
    max_seconds: Seconds = Field(
        3.0, description="seconds after which a comparison with its least number of blocks ends"
    )
    least_blocks_seconds: Seconds = Field(
        30.0,
        description="seconds for a comparison's least number of blocks; the slowest methods are left out",
    )
    memory: bool = Field(True, description="whether each method's memory is measured in a fresh process")


class Parity(Section):
    """How far the results lie from those of other libraries."""

    count: Count = Field(100, description="boxes that are compared")


class Power(Section):
    """Energy of a batch, by number of objects."""

    counts: Counts = Field(
        [50, 100, 200, 500, 1000, 2000, 3000, 5000], min_length=1, description="objects per batch"
    )
    again_counts: Counts = Field(
        [1000], description="batches in which Octopus is entered twice, for the noise floor"
    )
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


Operation = Literal["multiply", "normalize", "threshold", "gamma", "blur3x3", "blur5x5_sobel"]


class ItemMapping(Section):
    """How a thread finds the item of its element: strategies, operations, items and sizes."""

    distributions: list[Literal["tiny", "visdrone", "large"]] = Field(
        ["tiny", "visdrone", "large"],
        min_length=1,
        description="spreads of image sizes: sides of 4 to 16, of the data set's boxes, of 100 to 512 pixels",
    )
    operations: list[Operation] = Field(
        ["multiply", "normalize", "threshold", "gamma", "blur3x3", "blur5x5_sobel"],
        min_length=1,
        description="what is done to float32 elements",
    )
    items: Counts = Field([10_000, 50_000, 100_000, 500_000], min_length=1, description="items on a GPU")
    items_cpu: Counts = Field([1_000, 5_000], min_length=1, description="items on a CPU")
    uint8_operations: list[Operation] = Field(
        ["multiply", "normalize", "blur3x3"], description="what is done to bytes, with the fewest items"
    )
    elements_cpu: Count = Field(30_000_000, description="elements of the largest batch on a CPU")
    operations_large_cpu: list[Operation] = Field(
        ["multiply", "blur3x3"], description="what is done to a CPU's largest batches"
    )
    elements_cpu_all: Count = Field(6_000_000, description="elements up to which a CPU does every operation")
    max_seconds: Seconds = Field(
        2.0, description="seconds after which a comparison with its least number of blocks ends"
    )


class TotalCost(Section):
    """Setup, upload, kernel and download of one batch, and its reuse."""

    mixes: list[Literal["flickr-500", "flickr-500-4k", "flickr-500-8k", "flickr-1000", "flickr-1000-8k"]] = (
        Field(
            ["flickr-500", "flickr-500-4k", "flickr-500-8k", "flickr-1000", "flickr-1000-8k"],
            min_length=1,
            description="published mixes of images",
        )
    )
    mixes_cpu: list[Literal["flickr-500", "flickr-1000"]] = Field(
        ["flickr-500"], description="those of a CPU"
    )
    kernels: list[Literal["light", "heavy"]] = Field(
        ["light", "heavy"], min_length=1, description="3x3 mean, or 5x5 mean with Sobel's gradient"
    )
    kernels_cpu: list[Literal["light", "heavy"]] = Field(["light"], description="those of a CPU")
    ladder: bool = Field(True, description="whether the naive baselines are measured too")
    max_seconds: Seconds = Field(
        4.0, description="seconds after which a comparison with its least number of blocks ends"
    )


class Sequences(Section):
    """Ragged sequences and patches against padding, a lookup table and nested tensors."""

    mixes: list[
        Literal["nlp-1k", "nlp-10k", "nlp-extreme-1k", "vision-patches-500", "vision-extreme-500"]
    ] = Field(
        ["nlp-1k", "nlp-10k", "nlp-extreme-1k", "vision-patches-500", "vision-extreme-500"],
        min_length=1,
        description="published mixes of lengths",
    )


class Satellite(Section):
    """Which tiles of a scene are worth the downlink."""

    variants: list[Literal["uint16", "rgb8"]] = Field(
        ["uint16", "rgb8"],
        min_length=1,
        description="digital numbers as they are, or three channels of bytes",
    )
    threshold: Fraction = Field(
        0.535, description="mean brightness above which a tile of a real scene is kept"
    )
    threshold_synthetic: Fraction = Field(0.35, description="the same for generated scenes")
    byte_budget: Fraction = Field(
        0.45,
        description="share of the scene's bytes that the best tiles may take, for the rule of the byte budget",
    )
    downlink: Annotated[float, Field(gt=0)] = Field(2e6, description="bits per second to the ground")
    synthetic_side: int = Field(8192, ge=0, description="side of the generated scene in pixels; 0: none")
    max_seconds: Seconds = Field(
        4.0, description="seconds after which a comparison with its least number of blocks ends"
    )


class Drone(Section):
    """Crops of a video's detections, frame by frame."""

    seconds: Counts = Field([1, 5, 10], min_length=1, description="lengths of the clips")
    frame_rate: Count = Field(30, description="frames per second")
    detections: tuple[Count, Count] = Field((5, 50), description="fewest and most detections in a frame")
    paced: bool = Field(True, description="whether the longest clip is also played at its own rate")
    max_seconds: Seconds = Field(
        8.0, description="seconds after which a comparison with its least number of blocks ends"
    )


class Detector(Section):
    """Detection end to end, prepared on the CPU or by Octopus."""

    frames: Count = Field(200, description="frames")
    size: tuple[Count, Count] = Field(
        (640, 640), description="height and width of the detector's input in pixels"
    )


class Concurrency(Section):
    """Two models on one GPU, and crops beside a model."""

    processes: bool = Field(
        True, description="whether models also run in processes of their own, with and without MPS"
    )
    crops: Count = Field(1000, description="crops that are made beside a model")
    samples: Count = Field(100, description="iterations per arm from which the latencies come")
    max_seconds: Seconds = Field(
        60.0, description="seconds after which a comparison with its least number of blocks ends"
    )


class ImageShape(Section):
    """Memory and time of image models by the shape of their input."""

    models: list[Literal["drunet", "unet", "dncnn"]] = Field(
        ["drunet", "unet", "dncnn"], min_length=1, description="denoisers"
    )
    height: Count = Field(2048, description="rows of the image")
    widths: tuple[Count, Count] = Field((1024, 2048), description="least and largest columns of the image")
    steps: Counts = Field([64, 68], min_length=1, description="columns from one width to the next")
    patch_sides: Counts = Field([128, 256, 512], description="sides of the patches that cover the image")
    patch_batches: Counts = Field([1, 2, 4, 8, 16], min_length=1, description="patches per batch")
    max_seconds: Seconds = Field(
        30.0, description="seconds after which a comparison with its least number of blocks ends"
    )


class Sentinel2(Section):
    """Which part of the Sentinel-2 band is read."""

    window: tuple[int, int, Count, Count] | Literal["full"] = Field(
        (9760, 6930, 1000, 1000), description="column, row, width and height in pixels; or full"
    )
