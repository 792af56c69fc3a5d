"""The methods of study `power` on one number of objects: each makes one synchronised frame, and is checked before."""

from collections.abc import Callable
from functools import partial

from octopus_study.baselines.availability import make_all, require_room
from octopus_study.baselines.fused import Octopus
from octopus_study.baselines.job import CropJob
from octopus_study.baselines.method import CropMethod
from octopus_study.baselines.published import NLaunches, Published
from octopus_study.baselines.registry import make
from octopus_study.data.workload import sample_boxes
from octopus_study.measure import Method, again
from octopus_study.status import Answer, unavailable
from octopus_study.studies.comparison import BASE
from octopus_study.studies.context import Context
from octopus_study.studies.crops import ReferenceCrops, check, crop_job, every_checked

NAMES = (BASE, "published", "n-launches")
# Of the libraries with the same answer those that take the least time from the host, where there is a noise floor too.
# Compiled and in a CUDA graph `grid_sample` took no less, and its kernels 1.7 times as long (H200).
LIBRARIES = ("cvcuda-views", "grid-sample")
AGAIN = f"{BASE}-again"
CHECKED = 500  # crops that are compared with the reference at most, spread over the batch
# Per value of the result: its four bytes, and one in uint8 for each of the two methods with two passes.
BYTES_PER_VALUE = 6


def make_methods(context: Context, count: int, reference: ReferenceCrops) -> tuple[list[Method], dict[str, Answer]]:
    """Make the methods that are available on `count` boxes of the pool, Octopus first, and check them: also gives the
    answers by name, for a library that is missing the reason. A run goes from boxes on the host to the synchronised
    result."""
    check_room(context, count)
    boxes = sample_boxes(context.workload.pool, count, context.seed)
    job, every = crop_job(context, boxes), every_checked(count, CHECKED)
    kinds: list[CropMethod] = [kind(job) for kind in (Octopus, Published, NLaunches)]
    names = LIBRARIES if count in context.config.power.again_counts else ()
    made, missing = make_all({name: partial(_library, name, job) for name in names})
    kinds += made.values()
    answers = check(job, [kind.timed(every=every) for kind in kinds], reference.of(boxes[::every]))
    answers |= {name: unavailable(why) for name, why in missing.items()}
    synchronize = context.host_clock().synchronize
    methods = [Method(kind.name, partial(_frame, kind.run, synchronize)) for kind in kinds]
    if count in context.config.power.again_counts:
        methods.append(again(methods[0]))
        answers[AGAIN] = answers[BASE]
    return methods, answers


def _library(name: str, job: CropJob) -> CropMethod:
    require_room(name, job.device, 2 * job.out.nbytes)  # a result of its own, and about as much beside it
    return make(name, job)


def _frame(run: Callable[[], object], synchronize: Callable[[], object]) -> None:
    run()
    synchronize()


def check_room(context: Context, count: int) -> None:
    """Raise `Unavailable` if a batch of `count` objects does not fit. The device holds the result and what the two-pass
    methods put between their passes. The host holds, of the crops that are compared, the reference with its store,
    which grows from count to count, and their copy."""
    height, width = context.config.crop.size
    crop = height * width * context.workload.frame.shape[2]
    compared, work = -(-count // every_checked(count, CHECKED)), BYTES_PER_VALUE * count * crop
    checking = 4 * crop * (2 * compared + min(compared, len(context.workload.pool)))
    require_room(f"a check of {count} objects", "cpu", checking + (0 if context.device == "cuda" else work))
    require_room(f"a result of {count} objects", context.device, work)
