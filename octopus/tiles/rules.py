"""Rules that choose tiles by what a scene holds, instead of by a brightness fixed beforehand."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.memo import dynamo_disabled
from octopus.arrays.results import host_copy
from octopus.arrays.views import view_of
from octopus.errors import InputError
from octopus.tiles.check import number


@dynamo_disabled
def otsu_threshold(means: Any) -> float:
    """The brightness that parts tiles into two groups by Otsu's criterion: the variance between them is largest.

    Every gap between neighbouring means is tried, not the bins of a histogram.

    Parameters
    ----------
    means : array (N,)
        From `tile_means` or `keep_tiles`, on the host or the GPU. NaN, tiles without data, don't count; an infinite
        one, or none at all, raises `InputError`.

    Returns
    -------
    float
        Half way between the groups. If all means are the same, that one, so that none lies above it.

    Examples
    --------
    >>> otsu_threshold([0.25, 0.3, 0.7, 0.75])
    0.5
    """
    values = np.sort(_numbers(means, "means"))
    values = values[~np.isnan(values)]
    if not len(values) or not np.isfinite(values).all():
        raise InputError("Otsu's threshold needs at least one mean, and none that is infinite")
    below = np.cumsum(values - values.mean())[:-1]  # about the mean of all, the sums of both groups cancel
    size = np.arange(1, len(values))
    variance = np.where(np.diff(values) > 0, below**2 / (size * (len(values) - size)), -1.0)
    if not len(variance) or variance.max() < 0:
        return float(values[0])
    best = int(np.argmax(variance))
    # Of two neighbouring floats the half may be rounded to the upper one, which must stay above.
    return min(float((values[best] + values[best + 1]) / 2), float(np.nextafter(values[best + 1], -np.inf)))


@dynamo_disabled
def best_within(means: Any, sizes: Any, budget: float) -> NDArray[np.bool_]:
    """The brightest tiles that fit a budget: from the brightest on, each is kept if there is still room for it.

    Parameters
    ----------
    means : array (N,), floating point
        On the host or the GPU. NaN, tiles without data, are never kept. Of equal ones the first comes first.
    sizes : array (N,), not negative
        Cost of each tile, such as its bytes.
    budget : float
        What the kept tiles may cost together, in the unit of the sizes; `math.inf` keeps all that have data.

    Returns
    -------
    ndarray (N,) bool
        On the host.

    Raises
    ------
    InputError
        For sizes that don't fit the means or are not finite, or negative numbers.

    Examples
    --------
    >>> best_within([0.9, 0.8, 0.1], [60, 50, 30], 100).tolist()
    [True, False, True]
    """
    brightness, costs, room = _numbers(means, "means"), _numbers(sizes, "sizes"), number("budget", budget)
    if costs.shape != brightness.shape:
        raise InputError(f"sizes must hold one number per mean, {brightness.shape}, found {costs.shape}")
    if not (np.isfinite(costs).all() and (costs >= 0).all()) or not room >= 0:
        raise InputError("sizes must be finite, and neither sizes nor budget may be negative")
    kept = np.zeros(len(costs), bool)
    for tile in np.argsort(-brightness, kind="stable").tolist():
        if costs[tile] <= room and not np.isnan(brightness[tile]):
            kept[tile] = True
            room -= costs[tile]
    return kept


def _numbers(array: Any, name: str) -> NDArray[np.float64]:
    found = view_of(array, name)
    if len(found.shape) != 1 or found.dtype.kind not in "iuf":
        raise InputError(f"{name} must be a flat array of numbers, found {found.dtype} of shape {found.shape}")
    return np.asarray(found.numpy() if found.device == "cpu" else host_copy(array), np.float64)
