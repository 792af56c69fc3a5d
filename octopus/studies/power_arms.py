"""The arms of study `power`: for one number of objects its methods, checked, each making one synchronised frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from octopus.data.workload import sample_boxes
from octopus.peers.fused import Octopus
from octopus.peers.job import CropJob, make_job
from octopus.peers.published import WHY_DIFFERENT, NLaunches, Published
from octopus.studies.contest import BASE, Entry, ReferenceCrops, check
from octopus.studies.context import Context

METHODS = (BASE, "published", "n-launches")
AGAIN = f"{BASE}-again"
CHECKED = 500  # crops that are compared with the reference at most, spread over the batch


@dataclass(frozen=True)
class Arm:
    """One method on one number of objects.

    Attributes
    ----------
    name : str
    frame : callable
        From boxes on the host to the synchronised result.
    answer : str
        What the check against the reference said.
    """

    name: str
    frame: Callable[[], None]
    answer: str


def names(context: Context, count: int) -> list[str]:
    """Return the methods that a number of objects has."""
    again = count in context.config.power.again_counts
    return [*METHODS, *([AGAIN] if again else [])]


def make_arms(context: Context, count: int, expected: ReferenceCrops) -> list[Arm]:
    """Make and check the methods on `count` boxes of the pool."""
    crop = context.config.crop
    boxes = sample_boxes(context.workload.pool, count, context.seed)
    job = make_job(context.workload.frame, boxes, crop.size, crop.mean, crop.std, context.device)
    entries = _entries(job)
    answers = check(job, entries, *_right(job, expected))
    synchronize = context.host_clock().synchronize
    arms = [
        Arm(entry.name, partial(_frame, entry.run, synchronize), answers[entry.name]) for entry in entries
    ]
    if AGAIN in names(context, count):
        arms.append(Arm(AGAIN, arms[0].frame, arms[0].answer))
    return arms


def _entries(job: CropJob) -> list[Entry]:
    published, separate = Published(job), NLaunches(job)
    return [
        Entry(BASE, Octopus(job).run),
        Entry(published.name, published.run, why_different=WHY_DIFFERENT),
        Entry(separate.name, separate.run, why_different=WHY_DIFFERENT),
    ]


def _right(job: CropJob, expected: ReferenceCrops) -> tuple[object, int]:
    """Return the reference of each so-manieth crop, and how many that are."""
    every = -(-job.count // CHECKED)
    return expected.of(job.boxes[::every]), every


def _frame(run: Callable[[], object], synchronize: Callable[[], object]) -> None:
    run()
    synchronize()
