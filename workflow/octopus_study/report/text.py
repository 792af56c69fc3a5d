"""Numbers as a reader sees them: sensible digits and a unit."""

import math

from octopus_study.units import NARROW_SPACE, shown_unit, significant, with_unit

NEARLY_ALL = 0.995


def quantity_text(value: float, unit: str, digits: int = 3) -> str:
    """Format a value with its unit, as ``0.192 ms``, with significant digits; counts and pixels are exact."""
    if unit in ("count", "px") and float(value).is_integer():
        exact = f"{int(value):,}".replace(",", NARROW_SPACE) if abs(value) >= 10_000 else str(int(value))
        return with_unit(exact, unit)
    name, factor = shown_unit(value, unit)
    return with_unit(significant(value * factor, _enough(value, unit, digits)), name)


def _enough(value: float, unit: str, digits: int) -> int:
    """Return how many digits to show: of a share that is nearly all, so many that what is missing is seen."""
    if unit != "fraction" or not NEARLY_ALL < value < 1:
        return digits
    return max(digits, 2 - math.floor(math.log10(100 * (1 - value))))


def interval_text(value: float, low: float, high: float, unit: str, least: int = 3) -> str:
    """Format an interval in the unit that suits its value: `least` digits, or up to five that tell its ends apart."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    name, factor = shown_unit(value, unit)
    ends = low * factor, high * factor
    digits = telling_apart(*ends, least=least)
    to = "\u00a0to\u00a0" if high < 0 else "\u2013"  # a dash before a minus sign is hard to read
    return with_unit(to.join(significant(end, digits) for end in ends), name)


def telling_apart(low: float, high: float, least: int = 3) -> int:
    """Return how many digits tell the ends of an interval apart: `least` or more, five at most, else `least`."""
    return next((d for d in range(least, 6) if significant(low, d) != significant(high, d)), least)


def range_text(low: float, high: float, unit: str) -> str:
    """Format the least and the greatest of several values, in the unit that suits the latter; once where both look
    the same."""
    name, factor = shown_unit(high, unit)
    ends = [significant(end * factor, _enough(end, unit, 3)) for end in (low, high)]
    return with_unit("\u2013".join(dict.fromkeys(ends)), name)
