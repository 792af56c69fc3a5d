"""Numbers as a reader sees them: sensible digits and a unit."""

from __future__ import annotations

import math
import re

from octopus_study.units import NARROW_SPACE, shown_unit, with_unit

NEARLY_ALL = 0.995
# What a reason is shown without, or as, one after the other: rows keep what differs from run to run.
_SHORTER = (
    # What a number's note says of its interval, and the error or the time in front of a known cause.
    (
        re.compile(r"; (mean (of the medians )?of \d+|of one) process(es, |: ).*$|; neighbouring blocks .*$"),
        "",
    ),
    (re.compile(r"^largest error \S+ exceeds \S+; (?=\S)"), ""),
    (
        re.compile(r"^largest error (\S+) exceeds (\S+)$"),
        lambda found: (
            f"by as much as {significant(float(found[1]))}, more than {significant(float(found[2]))}"
        ),
    ),
    (re.compile(r"one batch takes [\d.e+-]+ s: (too slow .*?) \(arena\.\w+ = [\d.]+\)"), r"\1"),
    # It is registered a second time only where it was before, and offered no device.
    (
        re.compile(r"(?s)^(TensorRT for RTX) can't be loaded: \[ONNXRuntimeError\].*already registered.*$"),
        r"\1 offers no device here",
    ),
    # Commands, lines of a log, and which error said so.
    (re.compile(r" \(pip install [^)]*\)$|: pip uninstall .*$|: \[ONNXRuntimeError\].*$"), ""),
    (re.compile(r"^(The memory of \S+:probe was not measured: exit status 1, \S+\.)?Unavailable: "), ""),
    (
        re.compile(r"(?s)^.*(MemoryError|Failed to allocate memory|bytes are needed, [\d,]+ are free).*$"),
        "too little memory was free",
    ),
    (
        re.compile(r"(?s)^The memory of \S+:probe was not measured: .*$"),
        "the process that measures it failed",
    ),
    (
        re.compile(r"(?s)^.*NVCV_ERROR.*exceeds 2147483647.*$"),
        "CV-CUDA takes no tensor of 2\u00b3\u00b9 bytes or more",
    ),
    (
        re.compile(r"(?s)^.*numel needs to be smaller than int32_t max.*$"),
        "PyTorch pads no batch of 2\u00b3\u00b9 elements or more",
    ),
    (re.compile(r"(?s)^.*previous error during capture.*$"), "the capture failed"),
    (re.compile(r"(?s)^.*Cannot copy between CPU and CUDA tensors during.*$"), "it copies pageable memory"),
    # Names of methods.
    (re.compile(r"^on a CPU that is the method without -cpu$"), "on a CPU it is the same as without a GPU"),
    (re.compile(r"^on a CPU that is octopus itself$"), "on a CPU that is Octopus itself"),
    (re.compile(r"\.$"), ""),
)


def significant(value: float, digits: int = 3) -> str:
    """Round to `digits` significant digits, without exponent, with narrow spaces between thousands from 10 000
    on.

    Digits left of the point are never rounded away: 1234.4 is shown as 1234.
    """
    if not math.isfinite(value):
        return "\u2013"
    if value == 0:
        return "0"
    # Rounding first: 99.97 has its leading digit in the hundreds once it is rounded.
    rounded = float(f"{value:.{digits - 1}e}")
    places = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    text = f"{value:.{places}f}"
    if abs(value) >= 10_000:
        text = f"{float(text):,.0f}".replace(",", NARROW_SPACE)
    return text.replace("-", "\u2212")


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


def reason(note: str) -> str:
    """Return why an answer is different or unavailable, from ``different: why`` or ``unavailable: why``, without what
    a number's note says of its interval."""
    why = note.partition(":")[2].strip()
    for pattern, shorter in _SHORTER:
        why = pattern.sub(shorter, why)
    return why or "no reason given"
