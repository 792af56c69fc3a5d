"""Student's t, for intervals over a few windows or processes."""

from __future__ import annotations

import math

from octopus.errors import InputError


def t_quantile(confidence: float, freedom: int) -> float:
    """Return the two-sided quantile of Student's t: 2.776 for 95 % and four degrees of freedom.

    Bisection on :func:`t_probability`; the package has no other use for a library of distributions.

    Raises
    ------
    InputError
        The confidence is not between 0 and 1, or there is no degree of freedom.
    """
    if not 0 < confidence < 1 or freedom < 1:
        raise InputError(f"No quantile of Student's t for {confidence} and {freedom} degrees of freedom.")
    low, high = 0.0, 1.0
    while t_probability(high, freedom) < confidence:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if t_probability(middle, freedom) < confidence else (low, middle)
    return (low + high) / 2


def t_probability(t: float, freedom: int) -> float:
    """Return P(-t < T < t) of Student's t with a whole number of degrees of freedom.

    The finite series of Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.7.3 and 26.7.4.
    """
    angle = math.atan2(t, math.sqrt(freedom))
    odd, square = freedom % 2, math.cos(angle) ** 2
    term, total = 1.0, 0.0
    for index in range(freedom // 2):
        total += term
        step = 2 * index + 1 + odd
        term *= square * step / (step + 1)
    if not odd:
        return math.sin(angle) * total
    return 2 / math.pi * (angle + math.sin(angle) * math.cos(angle) * total)
