"""The arms of study `power`: for one number of objects its methods, checked, each making one synchronised frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
from numpy.typing import NDArray

from octopus.backends import cpu
from octopus.backends.cuda import memory
from octopus_study.data.workload import sample_boxes
from octopus_study.peers.fused import Octopus
from octopus_study.peers.job import CropJob, make_job
from octopus_study.peers.published import WHY_DIFFERENT, NLaunches, Published
from octopus_study.studies.contest import BASE, Entry, ReferenceCrops, check
from octopus_study.studies.context import Context

METHODS = (BASE, "published", "n-launches")
AGAIN = f"{BASE}-again"
CHECKED = 500  # crops that are compared with the reference at most, spread over the batch
# Per value of the result: its four bytes, and one in uint8 for each of the two methods with two passes.
BYTES_PER_VALUE = 6


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
    entries, every = _entries(job), _every(count)
    answers = check(_spread(job, every), entries, expected.of(boxes[::every]))
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


def _every(count: int) -> int:
    """Return which crops are compared: each so-manieth."""
    return -(-count // CHECKED)


@dataclass(frozen=True, eq=False)
class _Spread(CropJob):
    """A job of which only each `every`-th crop comes to the host: a copy of all of them may find no place there."""

    every: int = 1

    def result(self) -> NDArray[np.float32]:
        """The chosen crops on the host."""
        if not self.on_gpu:
            return self.out[:: self.every]
        chosen = range(0, self.count, self.every)
        crops = np.empty((len(chosen), *self.out.shape[1:]), np.float32)
        for crop, index in zip(crops, chosen, strict=True):
            where = self.out.pointer + index * crop.nbytes
            memory.DeviceArray(crop.shape, crop.dtype, buffer=self.out, pointer=where).copy_to_host(crop)
        return crops


def _spread(job: CropJob, every: int) -> CropJob:
    return _Spread(**{each.name: getattr(job, each.name) for each in fields(job)}, every=every)


def shortage(context: Context, count: int) -> str:
    """Return why a batch of `count` objects does not fit, or an empty text.

    The device holds the result and what the two-pass methods put between their passes. The host holds, of the crops
    that are compared, the reference with its store, which grows from count to count, and their copy.
    """
    height, width = context.config.crop.size
    crop = height * width * context.workload.frame.shape[2]
    work = BYTES_PER_VALUE * count * crop
    compared = len(range(0, count, _every(count)))
    checking = 4 * crop * (2 * compared + min(compared, len(context.workload.pool)))
    host = checking if context.device == "cuda" else checking + work
    if host > cpu.free_bytes():
        return f"{count} objects need {host:,} bytes on the host, {cpu.free_bytes():,} are free"
    if context.device == "cuda" and work > memory.free_bytes():
        return f"{count} objects need {work:,} bytes on the GPU, {memory.free_bytes():,} are free"
    return ""


def _frame(run: Callable[[], object], synchronize: Callable[[], object]) -> None:
    run()
    synchronize()
