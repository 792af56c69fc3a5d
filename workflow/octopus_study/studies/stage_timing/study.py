"""Study `stage_timing`: where the time of a batch of crops goes, by stage, method and number of objects.

The workload is the published one: boxes of VisDrone-DET val on its first frame, to 224 x 224 float32 NCHW with mean and
standard deviation. The boxes start on the host, the frame lies where it is processed.
"""

from collections.abc import Iterator
from functools import partial

from octopus_study.baselines.fused import NLaunchesFused, Octopus, OctopusOnGpu
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.published import NLaunches, Published
from octopus_study.data.workload import sample_boxes
from octopus_study.measure import Case, Method, Row
from octopus_study.measure.bandwidth import fill
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.context import Context
from octopus_study.studies.crops import (
    ReferenceCrops,
    checked_rows,
    crop_job,
    every_checked,
    one_thread_part,
    reference_of,
)
from octopus_study.studies.stage_timing import machine

WORKLOAD = "visdrone"
WHOLE, KERNELS, BUILD, UPLOAD = "end_to_end", "crop_resize_normalize", "build_metadata", "upload_metadata"
PASSES = ("crop_resize", "normalize")
IN_PLACE = "the CPU reads the boxes where they are"
NO_UPLOAD = "few boxes are an argument of the launch and need no copy"


def plan(context: Context) -> Iterator[Part]:
    """Each number of objects, on a CPU OpenCV's thread, and what the machine itself costs and allows."""
    crops, shared = reference_of(context), machine.shared_count(context)
    for count in context.counts(context.config.stage_timing):
        yield Part(partial(_measure, crops=crops), _comparisons(context, context.case(WORKLOAD, count)))
    if context.device == "cpu":
        yield one_thread_part(context.case(f"{WORKLOAD}-1thread", shared), crops)
    yield from machine.launch_parts(context)
    yield Part(lambda context, _: machine.bandwidth(context))


def _comparisons(context: Context, case: Case) -> tuple[Comparison, ...]:
    both, layer = ("octopus", "published"), context.kernel_layer
    return (
        Comparison(case, WHOLE, "host", (*both, "n-launches", "n-launches-fused")),
        Comparison(case, KERNELS, layer, (*both, "write-bound")),
        Comparison(case, BUILD, "host", both),
        Comparison(case, UPLOAD, "host", both),
        *(Comparison(case, quantity, layer, ("published",)) for quantity in PASSES),
    )


def _measure(context: Context, part: Part, crops: ReferenceCrops) -> Iterator[Row]:
    context.require_room(part.case.n)
    job = crop_job(context, sample_boxes(context.workload.pool, part.case.n, context.seed))
    fused = (OctopusOnGpu if job.on_gpu else Octopus)(job)
    published = Published(job)
    yield from _whole(context, part, job, fused, published, crops)
    yield from _stages(context, part, fused, published)


def _whole(
    context: Context, part: Part, job: CropJob, fused: Octopus, published: Published, crops: ReferenceCrops
) -> Iterator[Row]:
    """From boxes on the host to the synchronised result; and the device alone, beside the time to write as much."""
    every = every_checked(part.case.n)
    right = crops.of(job.boxes[::every])
    whole = [method.timed() for method in (fused, published, NLaunches(job), NLaunchesFused(job))]
    yield from checked_rows(context, part.of(WHOLE), job, whole, right, every=every)
    kernels = [method.timed(method.kernels) for method in (fused, published)]
    kernels.append(Method("write-bound", fill(job.out)))
    yield from checked_rows(context, part.of(KERNELS), job, kernels, right, every=every)


def _stages(context: Context, part: Part, fused: Octopus, published: Published) -> Iterator[Row]:
    """Each stage by itself: metadata, its upload, and the published passes."""
    stages = {
        BUILD: [Method(fused.name, fused.build), Method(published.name, published.build)],
        UPLOAD: [],
        **{name: [Method(published.name, getattr(published, name))] for name in PASSES},
    }
    missing = dict.fromkeys((fused.name, published.name), IN_PLACE)
    if isinstance(fused, OctopusOnGpu):
        stages[UPLOAD] = [Method(published.name, published.upload)]
        if fused.uploads:
            stages[UPLOAD].insert(0, Method(fused.name, fused.upload))
        missing[fused.name] = NO_UPLOAD
    for comparison in part.of(*stages):
        yield from compare(context, comparison, stages[comparison.quantity], missing=missing)
