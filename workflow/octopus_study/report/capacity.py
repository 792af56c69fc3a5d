"""What a GPU, a node and many nodes serve, from measured times: a few formulas, and intervals that follow them.

An interval of a result is from the least to the greatest value over all ends of its inputs' intervals. That is right
for what rises or falls with each input, and wider than an interval of 95 % of the result: all inputs are rarely at
their ends at once.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from operator import truediv
from typing import NamedTuple

import numpy as np

from octopus_study.measure.statistics import Interval

NOTHING, WHOLE = Interval(0, 0, 0, 1), Interval(1, 1, 1, 1)  # exact: both ends are the value
SECONDS_PER_HOUR, MILLION = 3600, 1e6


class Fleet(NamedTuple):
    """What nobody measured and a reader sets.

    Attributes
    ----------
    gpus, nodes : int
        GPUs of a node, and nodes.
    price : float
        Of a GPU for an hour, in any currency.
    """

    gpus: int = 8
    nodes: int = 1000
    price: float = 2.0


FLEET = Fleet()


class Stages(NamedTuple):
    """What a batch takes on one GPU.

    Attributes
    ----------
    items : int
        Images of the batch.
    work : Interval
        ms from the call to the synchronised result, data on the GPU: the host's part and the kernels in turn.
    kernel : Interval
        ms of the kernels alone.
    upload, upload_of_all : Interval
        ms of its bytes from page-locked memory, while no other GPU copies, and while all do.
    """

    items: int
    work: Interval
    kernel: Interval
    upload: Interval = NOTHING
    upload_of_all: Interval = NOTHING

    @property
    def rate(self) -> Interval:
        """Images a second of one GPU where nothing overlaps, as on one stream that is waited for: a sum of times."""
        return corners(lambda *ms: per_second(self.items, sum(ms)), self.work, self.upload)

    @property
    def overlapped(self) -> Interval:
        """The same where the host and the upload hide behind the kernels, or these behind the upload: the longest
        time. Nothing faster is possible with these parts."""
        return corners(lambda *ms: per_second(self.items, max(ms)), self.kernel, self.upload)

    @property
    def upload_share(self) -> Interval:
        """Which part of the time is the upload: so much of a change of the bandwidth the rate follows."""
        return corners(lambda work, upload: upload / (work + upload), self.work, self.upload)

    def of_gpus(self, gpus: int, linear: Interval) -> Interval:
        """Images a second of the GPUs of a node; `linear` is their share of linear with data on the GPUs."""
        return rate_of_gpus(self.items, gpus, (self.work, linear), (self.upload_of_all, WHOLE))


def rate_of_gpus(items: int, gpus: int, *parts: tuple[Interval, Interval]) -> Interval:
    """Return the images a second of some GPUs, each of which does `items` in turn through parts: ms on one GPU, and
    the share of linear that is left of this part where all GPUs work."""

    def rate(*ends: float) -> float:
        return gpus * per_second(items, sum(map(truediv, ends[::2], ends[1::2])))

    return corners(rate, *(one for part in parts for one in part))


def corners(function: Callable[..., float], *inputs: Interval) -> Interval:
    """Return a function of intervals; it rises or falls with each of them, whatever the others are.

    An input without an interval leaves the result without one. Of the numbers of blocks the least counts.
    """
    ends = [function(*chosen) for chosen in product(*(given[1:3] for given in inputs))]
    value = function(*(given.value for given in inputs))
    return Interval(value, float(np.min(ends)), float(np.max(ends)), min(given.count for given in inputs))


def per_second(items: float, milliseconds: float) -> float:
    """Return items a second."""
    return 1000 * items / milliseconds


def gpu_hours(rate: Interval) -> Interval:
    """Return the hours of one GPU that a million images take at its rate per second."""
    return corners(lambda images: MILLION / images / SECONDS_PER_HOUR, rate)


def saved(speedup: Interval, gpus: float) -> Interval:
    """Return how many of some GPUs the same work leaves free once each is so many times as fast."""
    return corners(lambda times: gpus * (1 - 1 / times), speedup)
