"""How a measured number stands to the limits of a rule: inside, outside, or too close to tell.

An interval decides where it lies wholly on one side of every limit, and stays there when it is widened by what is not
in it: by the noise floor of its comparison, the difference that the set-up sees between a method and itself; and, where
it was resampled, by what another seed could change. So no seed turns a claim from reproduced to not reproduced. Why
the floor is added to an interval that holds chance already, :func:`octopus_study.measure.statistics.compare` says; so
it is for intervals by Student's t, over processes or windows, too.
"""

import math
from typing import Literal, NamedTuple

from octopus_study.measure.statistics import FEW_PROCESSES, MIN_BLOCKS, MIN_PROCESSES
from octopus_study.report.claims.rules import Limits
from octopus_study.report.frame import Number
from octopus_study.units import significant, size_of

Verdict = Literal["reproduced", "not reproduced", "ambiguous", "not measurable here"]
NOT_HERE: Verdict = "not measurable here"
# Of the width of a resampled interval: four standard errors of its ends with 1000 resamples, the fewest that one has.
# For a nearly normal statistic one is sqrt(0.025 * 0.975 / 1000) / 0.0584 = 0.0845 standard deviations, of which the
# width has 3.92.
RESAMPLING = 4 * 0.0845 / 3.92
# Windows of some seconds, judged by Student's t.
MIN_WINDOWS = 5


class Outcome(NamedTuple):
    """A verdict on one number, and why it is not a plain one."""

    verdict: Verdict
    reason: str = ""


def decide(
    number: Number, limits: Limits, *, floor: float = 0.0, exact: bool = False, windows: bool = False
) -> Outcome:
    """Judge a number by what a rule allows. `floor` is the noise floor as a fraction, NaN where it was to be known and
    isn't. An `exact` number was computed or counted, so that its value decides; an interval of `windows` is of a few
    long ones, or processes, and not of blocks."""
    size = size_of(number.unit)
    low, high = number.low * size, number.high * size
    if exact or not math.isfinite(low + high):
        return _of_value(number.value * size, limits, exact)
    if few := FEW_PROCESSES if 1 < (number.processes or 0) < MIN_PROCESSES else _few(number, windows):
        return Outcome("ambiguous", few)
    if math.isnan(floor):
        return Outcome("ambiguous", "there is no noise floor to judge by")
    margin = RESAMPLING * (high - low) if number.resampled else 0.0
    near = _side(low - margin, high + margin, limits)
    if near is None:
        straddles = _side(low, high, limits) is None
        return Outcome("ambiguous", "the interval holds the limit" if straddles else _MOVED)
    if near and floor <= _room(limits, number.unit):
        return _plain(near)
    if _side(*_widened(low - margin, high + margin, floor, number.unit), limits) is None:
        return Outcome("ambiguous", f"ends nearer to the limit than the noise floor of {significant(100 * floor)} %")
    return _plain(near)


_MOVED = "ends nearer to the limit than resampling moves the interval"


def _of_value(value: float, limits: Limits, exact: bool) -> Outcome:
    inside = _side(value, value, limits)
    return _plain(bool(inside)) if exact else Outcome("ambiguous", "measured once, without an interval")


def _few(number: Number, windows: bool) -> str:
    least, what = (MIN_WINDOWS, "windows") if windows else (MIN_BLOCKS, "blocks")
    few = number.blocks is not None and number.blocks < least
    return f"{number.blocks} {what} are too few, {least} are needed" if few else ""


def _room(limits: Limits, unit: str) -> float:
    """Return the room on either side of a value, in what :func:`_widened` adds: in it a noise floor has room that is no
    larger.

    So that methods are equal by a claim where they are by :func:`octopus_study.measure.statistics.compare`; outside,
    a difference must exceed the floor in both. There is none where a rule has one limit, or where what it leaves lies
    at zero.
    """
    middle, half = (limits.low + limits.high) / 2, (limits.high - limits.low) / 2
    if not (math.isfinite(middle) and middle > 0):
        return -1.0
    return half / middle if unit == "ratio" else half


def _widened(low: float, high: float, floor: float, unit: str) -> tuple[float, float]:
    """Widen ratios by a factor; shares and differences by the floor itself, times by nothing, since they compare
    nothing."""
    if unit == "ratio":
        return low / (1 + floor), high * (1 + floor)
    return (low - floor, high + floor) if unit == "fraction" else (low, high)


def _side(low: float, high: float, limits: Limits) -> bool | None:
    """Say whether an interval lies wholly inside (True) or wholly outside (False) of the limits; else None."""
    if limits.strict:
        inside = limits.low < low and high < limits.high
        outside = high <= limits.low or low >= limits.high
    else:
        inside = limits.low <= low and high <= limits.high
        outside = high < limits.low or low > limits.high
    return True if inside else False if outside else None


def _plain(inside: bool) -> Outcome:
    return Outcome("reproduced" if inside else "not reproduced")
