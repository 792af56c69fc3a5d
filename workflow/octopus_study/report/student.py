"""Student's t, for the means of a few long windows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from octopus_study.measure.statistics import Interval
from octopus_study.measure.student import t_quantile


def mean_interval(values: Sequence[float] | np.ndarray) -> Interval:
    """Return the mean and its interval of 95 % by Student's t; the ends are NaN for a single value."""
    array = np.asarray(values, dtype=np.float64)
    mean = float(array.mean())
    if array.size < 2:
        return Interval(mean, math.nan, math.nan, int(array.size))
    reach = t_quantile(0.95, array.size - 1) * float(array.std(ddof=1)) / math.sqrt(array.size)
    return Interval(mean, mean - reach, mean + reach, int(array.size))
