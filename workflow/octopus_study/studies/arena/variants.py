"""The kernel's variants, each beside what the memory allows: kinds of results, sizes of boxes and of results, few
boxes, and whole frames.

A variant's bound is measured in the same blocks: to write as many bytes as are read of the frame and written. Memory is
written at least as fast as it is read or copied, so nothing that moves these bytes takes less; copying them would be no
bound, since a crop writes far more than it reads.
"""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.fused import HALF_ULP, Octopus
from octopus_study.baselines.job import TOLERANCE_LEVELS, CropJob, make_job, plain
from octopus_study.measure import Method, Row
from octopus_study.measure.bandwidth import fill
from octopus_study.reference import crops as reference
from octopus_study.studies.arena.workloads import CHECKED, VISDRONE, arena_budget, boxes_of, shared_count, uniform_boxes
from octopus_study.studies.comparison import BASE, Comparison, Part
from octopus_study.studies.context import Context
from octopus_study.studies.crops import checked_rows, every_checked

QUANTITY, PREFIX = "kernel", "road"
FRAMES, FRAME_COUNTS = "frames", (1, 16)
BOUND = "write-bound"
# By dtype: as which the result's memory is allocated, and by how much of a value, and of a level, rounding moves it.
MEMORY = {"float32": (np.float32, 0.0, 0.0), "float16": (np.float16, HALF_ULP, 0.0), "uint8": (np.uint8, 0.0, 0.5)}


class Variant(NamedTuple):
    """A kind of results, and on which boxes."""

    dtype: str = "float32"  # uint8 is not normalised, which it could not hold
    boxes: str | int = VISDRONE  # the data set's, squares of so many pixels, or whole frames
    size: int | None = None  # side of the result; by default as the configuration has it
    options: Mapping[str, Any] = {}  # further ones of Octopus

    def counts(self, context: Context) -> tuple[int, ...]:
        """Items per batch: of the plainest variant all that the arena has, of others its largest."""
        if self.boxes == FRAMES:
            return FRAME_COUNTS
        return tuple(context.config.arena.counts) if self == Variant() else (shared_count(context),)


_ANTIALIAS, _LETTERBOX = {"antialias": True}, {"letterbox": True}
VARIANTS = {
    "float32": Variant(),
    "uint8": Variant("uint8"),
    "uint8-nhwc": Variant("uint8", options={"layout": "NHWC"}),
    "float32-320": Variant(boxes=320),
    "float16-320": Variant("float16", 320),
    "float16-256": Variant("float16", 256),
    "antialias-320": Variant(boxes=320, options=_ANTIALIAS),
    "antialias-48": Variant(boxes=48, options=_ANTIALIAS),
    "to-32": Variant(boxes=48, size=32),
    "to-64": Variant(boxes=48, size=64),
    "to-96": Variant(boxes=48, size=96),
    "frames": Variant(boxes=FRAMES, size=640, options=_LETTERBOX),
    "frames-antialias": Variant(boxes=FRAMES, size=640, options=_LETTERBOX | _ANTIALIAS),
}


def parts(context: Context) -> Iterator[Part]:
    """One part for each variant and number of items."""
    for name, variant in VARIANTS.items():
        for count in variant.counts(context):
            case = context.case(f"{PREFIX}-{name}", count)
            comparison = Comparison(case, QUANTITY, context.kernel_layer, (BASE, BOUND))
            yield Part(partial(_measure, variant=variant), (comparison,))


def _measure(context: Context, part: Part, variant: Variant) -> list[Row]:
    crop, count = math.prod(context.config.crop.size), part.case.n
    context.require_room(-(-count * (variant.size**2 if variant.size else crop) // crop))
    own, every = OfVariant(_job(context, variant, count), variant), every_checked(count, CHECKED)
    own.prepare()
    job = own.job
    methods = [
        own.timed(own.kernels, every),
        Method(BOUND, fill(_memory(own.bytes_read() + job.out.nbytes, job.on_gpu))),
    ]
    return checked_rows(context, part.comparisons, job, methods, own.right(every), budget=arena_budget(context))


def _job(context: Context, variant: Variant, count: int) -> CropJob:
    """A batch of a variant; whole frames differ, so that each is read from memory."""
    frame, crop = context.workload.frame, context.config.crop
    height, width, _ = frame.shape
    if variant.boxes == FRAMES:
        boxes = np.tile(np.array([0, 0, width, height], np.int32), (count, 1))
        frame = np.stack([np.roll(frame, shift, axis=1) for shift in range(count)])
    elif isinstance(variant.boxes, int):
        boxes = uniform_boxes(count, width, height, min(variant.boxes, width, height), context.seed)
    else:
        boxes = boxes_of(context, variant.boxes, count)
    size = (variant.size, variant.size) if variant.size else crop.size
    mean, std = plain(frame) if variant.dtype == "uint8" else (crop.mean, crop.std)
    layout, dtype = variant.options.get("layout", "NCHW"), MEMORY[variant.dtype][0]
    return make_job(frame, boxes, size, mean, std, context.device, dtype, layout)


def _memory(nbytes: int, on_gpu: bool) -> Any:
    words = (-(-nbytes // 4),)
    if not on_gpu:
        return np.zeros(words, np.float32)
    from octopus.backends.cuda.memory import DeviceArray

    return DeviceArray(words, np.float32)


class OfVariant(Octopus):
    """One launch; all that it reads is on the device."""

    def __init__(self, job: CropJob, variant: Variant) -> None:
        super().__init__(job, dtype=variant.dtype, **variant.options)
        self._variant, whole = variant, variant.boxes == FRAMES
        self._index: dict[str, Any] = {"frame_index": np.arange(job.count, dtype=np.int32)} if whole else {}
        _, relative, levels = MEMORY[variant.dtype]
        largest = np.abs((np.array([[0.0], [255.0]]) - job.mean) / job.std).max()
        self.tolerance = (TOLERANCE_LEVELS + levels) / max(job.std) + float(largest) * relative

    def prepare(self) -> None:
        super().prepare()
        self.asked = self._index
        if self.job.on_gpu:
            from octopus.backends.cuda.memory import upload

            self.asked = {name: upload(index) for name, index in self._index.items()}

    def right(self, every: int) -> NDArray[np.float32]:
        """Each `every`-th item as it should be."""
        job = self.job
        index = {name: index[::every] for name, index in self._index.items()}
        pad = {"pad_value": np.full(job.frame.shape[-1], 114.0)}
        return reference.crop_resize(
            job.frame, job.boxes[::every], job.size, np.array(job.mean), np.array(job.std),
            **pad, **self._variant.options, **index,
        ).astype(np.float32)  # fmt: skip

    def bytes_read(self) -> int:
        """Bytes of the frames that have to come from memory, each once: whole rows of a box, since a line of memory
        holds several pixels; without `antialias` the two between which a row of the result lies."""
        job, options = self.job, self._variant.options
        frames = job.frame.reshape(-1, *job.frame.shape[-3:])
        seen = np.zeros(frames.shape[:3], bool)
        numbers = self._index.get("frame_index", np.zeros(job.count, int))
        for number, box in zip(numbers, job.boxes, strict=True):
            height = reference.place(box, job.size).height if options.get("letterbox") else job.size[0]
            rows = _rows(box[1], box[3], None if options.get("antialias") else height)
            seen[number, rows, box[0] : box[2]] = True
        return int(seen.sum()) * frames.shape[3]


def _rows(low: int, high: int, count: int | None) -> NDArray[np.intp]:
    """Rows of the frame that `count` rows of a result are made of; None for all of a box."""
    if count is None:
        return np.arange(low, high)
    above = np.floor(low + (np.arange(count) + 0.5) * (high - low) / count - 0.5).astype(np.intp)
    return np.union1d(above, above + 1).clip(low, high - 1)
