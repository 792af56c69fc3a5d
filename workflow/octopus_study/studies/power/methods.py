"""The methods of study `power` on one number of objects: each makes one synchronised frame, and is checked before."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from octopus_study.baselines.availability import require_room
from octopus_study.baselines.fused import Octopus
from octopus_study.baselines.published import NLaunches, Published
from octopus_study.data.workload import sample_boxes
from octopus_study.measure import Method, again
from octopus_study.studies.comparison import BASE
from octopus_study.studies.context import Context
from octopus_study.studies.crops import ReferenceCrops, check, crop_job, every_checked

NAMES = (BASE, "published", "n-launches")
AGAIN = f"{BASE}-again"
CHECKED = 500  # crops that are compared with the reference at most, spread over the batch
# Per value of the result: its four bytes, and one in uint8 for each of the two methods with two passes.
BYTES_PER_VALUE = 6


def make_methods(context: Context, count: int, reference: ReferenceCrops) -> tuple[list[Method], dict[str, str]]:
    """Make the methods on `count` boxes of the pool, Octopus first, and check them.

    Returns
    -------
    list of Method
        A run goes from boxes on the host to the synchronised result.
    dict
        The answers, by name.

    Raises
    ------
    Unavailable
        There is too little memory.
    """
    check_room(context, count)
    boxes = sample_boxes(context.workload.pool, count, context.seed)
    job, every = crop_job(context, boxes), every_checked(count, CHECKED)
    kinds = [kind(job) for kind in (Octopus, Published, NLaunches)]
    answers = check(job, [made.timed(every=every) for made in kinds], reference.of(boxes[::every]))
    synchronize = context.host_clock().synchronize
    methods = [Method(made.name, partial(_frame, made.run, synchronize)) for made in kinds]
    if count in context.config.power.again_counts:
        methods.append(again(methods[0]))
        answers[AGAIN] = answers[BASE]
    return methods, answers


def _frame(run: Callable[[], object], synchronize: Callable[[], object]) -> None:
    run()
    synchronize()


def check_room(context: Context, count: int) -> None:
    """Raise `Unavailable` if a batch of `count` objects does not fit.

    The device holds the result and what the two-pass methods put between their passes. The host holds, of the crops
    that are compared, the reference with its store, which grows from count to count, and their copy.
    """
    height, width = context.config.crop.size
    crop = height * width * context.workload.frame.shape[2]
    compared, work = -(-count // every_checked(count, CHECKED)), BYTES_PER_VALUE * count * crop
    checking = 4 * crop * (2 * compared + min(compared, len(context.workload.pool)))
    require_room(f"a check of {count} objects", "cpu", checking + (0 if context.device == "cuda" else work))
    require_room(f"a result of {count} objects", context.device, work)
