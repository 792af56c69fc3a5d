"""Each version of the kernel from the published passes to it, on GPUs alone, by events with a cold L2.

`kernels.cuda.stream` lists the versions; each is a method.
"""

from collections.abc import Iterator
from functools import partial

from octopus.arrays.launch import launch
from octopus.arrays.views import ArrayView, view
from octopus.backends.cuda import stream_of
from octopus.backends.cuda.device import current
from octopus.backends.cuda.memory import upload
from octopus.crop.check import Call
from octopus.crop.cuda import PlainLauncher, StreamLauncher, Variant
from octopus.crop.spec import CropOptions, CropSpec, make_spec
from octopus.kernels.cuda.tiles import Shape
from octopus_study.baselines.fused import Octopus, OctopusOnGpu
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.method import CropMethod
from octopus_study.baselines.published import Published
from octopus_study.measure import Method, Row
from octopus_study.measure.bandwidth import fill
from octopus_study.studies.arena.workloads import CHECKED, VISDRONE, arena_budget, boxes_of, shared_count, uniform_boxes
from octopus_study.studies.comparison import Comparison, Part
from octopus_study.studies.context import Context
from octopus_study.studies.crops import ReferenceCrops, checked_rows, crop_job, every_checked


class _VersionLauncher(StreamLauncher):
    """The streaming kernel with some of its means left out."""

    def __init__(
        self, spec: CropSpec, processors: int, l2_bytes: int, values: int, words: bool, prefetch: bool
    ) -> None:
        super().__init__(spec, processors, l2_bytes if prefetch else 0)
        self._shape = Shape(values, self._shape.rows, self._shape.threads)
        self._may_read_words = words

    def _variant(self, frame: ArrayView, out: int, asked: Variant) -> Variant:
        variant = super()._variant(frame, out, asked)
        return variant._replace(words=variant.words and self._may_read_words)


class KernelVersion(CropMethod):
    """One version of the kernel on a job's boxes, in device memory. `means` are its values per store, whether pixels
    are read as words, and whether the frame is prefetched; None is the plain kernel."""

    def __init__(self, job: CropJob, name: str, means: tuple[int, bool, bool] | None) -> None:
        super().__init__(job)
        self.name = name
        self._frame = view(job.device_frame, "frame")
        self._boxes = upload(Octopus(job).build())
        self._stream = stream_of(None)
        spec = make_spec(self._frame, CropOptions(job.size, job.mean, job.std))
        properties = current().properties
        limits = properties.multiprocessor_count, properties.l2_cache_size
        launcher = PlainLauncher(spec) if means is None else _VersionLauncher(spec, *limits, *means)
        call = Call(self._frame, view(self._boxes, "boxes"), view(job.out, "out"))
        self._prepared, self._addresses = launcher.prepare(call), call.addresses

    def kernels(self) -> None:
        launch(self._prepared, self._addresses, self._stream)


QUANTITY = "crop_resize_normalize"
LARGE_SIDE = 320  # boxes that are shrunk: every source row is read, and two results share none
# Each version's means, as `KernelVersion` takes them.
VERSIONS: dict[str, tuple[int, bool, bool] | None] = {
    "one-pass": None,
    "streamed": (1, False, False),
    "prefetched": (1, False, True),
    "paired": (2, False, True),
}


def parts(context: Context, crops: ReferenceCrops) -> Iterator[Part]:
    """The versions on boxes of the data set and on large ones."""
    methods, count = ("two-passes", *VERSIONS, "octopus", "write-bound"), shared_count(context)
    for workload in ("ladder", "ladder-large"):
        comparison = Comparison(context.case(workload, count), QUANTITY, "device", methods)
        yield Part(partial(_versions, crops=crops), (comparison,))


def _versions(context: Context, part: Part, crops: ReferenceCrops) -> list[Row]:
    context.require_room(part.case.n)
    boxes = boxes_of(context, VISDRONE, part.case.n)
    if part.case.workload == "ladder-large":
        height, width, _ = context.workload.frame.shape
        side = min(LARGE_SIDE, width, height)
        boxes = uniform_boxes(part.case.n, width, height, side, context.seed)
    job, every = crop_job(context, boxes), every_checked(len(boxes), CHECKED)
    published = Published(job)
    versions = [KernelVersion(job, name, means) for name, means in VERSIONS.items()]
    methods = [
        job.method("two-passes", published.kernels, published.why_different),
        *(version.timed(version.kernels) for version in (*versions, OctopusOnGpu(job))),
        Method("write-bound", fill(job.out)),
    ]
    right, budget = crops.of(boxes[::every]), arena_budget(context)
    return checked_rows(context, part.comparisons, job, methods, right, every=every, budget=budget)
