"""Units, each once: what it measures, its size, its symbol, and in which unit a value of it reads best."""

import math

from octopus.errors import InputError

NARROW_SPACE = "\u202f"
TIMES = "\u00d7"
# What a unit measures, and its size in the unit that is computed with.
UNITS = {
    "ratio": ("number", 1.0),
    "fraction": ("number", 1.0),
    "percent": ("number", 0.01),
    "count": ("number", 1.0),
    "px": ("length", 1.0),
    "bytes": ("bytes", 1.0),
    "B": ("bytes", 1.0),
    "KiB": ("bytes", 2.0**10),
    "MiB": ("bytes", 2.0**20),
    "GiB": ("bytes", 2.0**30),
    "MB": ("bytes", 1e6),
    "GB": ("bytes", 1e9),
    "ns": ("time", 1e-9),
    "us": ("time", 1e-6),
    "µs": ("time", 1e-6),
    "ms": ("time", 1e-3),
    "s": ("time", 1.0),
    "GB/s": ("bandwidth", 1e9),
    "uW": ("power", 1e-6),
    "µW": ("power", 1e-6),
    "mW": ("power", 1e-3),
    "W": ("power", 1.0),
    "kW": ("power", 1e3),
    "uJ": ("energy", 1e-6),
    "µJ": ("energy", 1e-6),
    "mJ": ("energy", 1e-3),
    "J": ("energy", 1.0),
    "kJ": ("energy", 1e3),
}
_SYMBOLS = {"us": "µs", "ratio": TIMES, "percent": "%", "fraction": "%", "count": "", "text": ""}
_STEPS = {
    # A value below the first bound is shown in the smaller unit, from the second bound on in the larger one.
    "us": ((None, "us", 1.0), (1000.0, "ms", 1e-3)),
    "ms": ((None, "us", 1e3), (0.1, "ms", 1.0), (1000.0, "s", 1e-3)),
    "bytes": ((None, "B", 1.0), (1024.0, "KiB", 2.0**-10), (2.0**20, "MiB", 2.0**-20), (2.0**33, "GiB", 2.0**-30)),
    "fraction": ((None, "percent", 100.0),),
    "1/s": ((None, "/s", 1.0), (1e4, "thousand/s", 1e-3), (1e6, "million/s", 1e-6)),
    "W": ((None, "mW", 1e3), (1.0, "W", 1.0)),
    "mJ": ((None, "µJ", 1e3), (0.1, "mJ", 1.0), (1000.0, "J", 1e-3)),
    "J": ((None, "mJ", 1e3), (1.0, "J", 1.0), (1e4, "kJ", 1e-3)),
}


def sizes(kind: str) -> dict[str, float]:
    """Return the units of a kind, such as ``time``, with their sizes in its base unit (s, W, J, bytes)."""
    return {name: size for name, (of, size) in UNITS.items() if of == kind}


def size_of(unit: str) -> float:
    """Return the size of a unit: seconds, bytes, watts … per unit, so that 25.4 ms and 0.0254 s are the same."""
    return _of(unit)[1]


def require_same_kind(unit: str, other: str, what: str) -> None:
    """Refuse to compare seconds with bytes; `what` says whose they are."""
    if _of(unit)[0] != _of(other)[0]:
        raise InputError(f"{what}: a number in {other!r} can't be judged by a rule in {unit!r}.")


def _of(unit: str) -> tuple[str, float]:
    if unit not in UNITS:
        raise InputError(f"Unknown unit {unit!r} in a rule; known are {', '.join(UNITS)}.")
    return UNITS[unit]


def significant(value: float, digits: int = 3) -> str:
    """Round to `digits` significant digits, without exponent, with narrow spaces between thousands from 10 000 on.
    Digits left of the point are never rounded away: 1234.4 is shown as 1234."""
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


def shown_unit(value: float, unit: str) -> tuple[str, float]:
    """Return the unit that suits the size of `value` and the factor that brings it there."""
    if unit not in _STEPS or not math.isfinite(value):
        return unit, 1.0
    _, name, factor = [step for step in _STEPS[unit] if step[0] is None or abs(value) >= step[0]][-1]
    return name, factor


def with_unit(digits: str, unit: str) -> str:
    """Join digits and unit: a space, except before the multiplication sign."""
    symbol = _SYMBOLS.get(unit, unit)
    return f"{digits}{symbol}" if symbol in ("", TIMES) else f"{digits} {symbol}"
