"""Units of rules and numbers, so that a published 25.4 ms and a measured 0.0254 s are the same."""

from __future__ import annotations

from octopus.errors import InputError

# What a unit measures, and its size in the unit that is computed with.
_UNITS = {
    "ratio": ("number", 1.0),
    "fraction": ("number", 1.0),
    "percent": ("number", 0.01),
    "count": ("number", 1.0),
    "px": ("length", 1.0),
    "bytes": ("bytes", 1.0),
    "B": ("bytes", 1.0),
    "KiB": ("bytes", 2.0**10),
    "MiB": ("bytes", 2.0**20),
    "MB": ("bytes", 1e6),
    "GB": ("bytes", 1e9),
    "ns": ("time", 1e-9),
    "us": ("time", 1e-6),
    "ms": ("time", 1e-3),
    "s": ("time", 1.0),
    "GB/s": ("bandwidth", 1e9),
    "mW": ("power", 1e-3),
    "W": ("power", 1.0),
    "mJ": ("energy", 1e-3),
    "J": ("energy", 1.0),
}


def size_of(unit: str) -> float:
    """Return the size of a unit: seconds, bytes, watts … per unit.

    Raises
    ------
    InputError
        No rule knows the unit.
    """
    return _of(unit)[1]


def require_same_kind(unit: str, other: str, what: str) -> None:
    """Refuse to compare seconds with bytes.

    Raises
    ------
    InputError
        The units measure different things; `what` says whose they are.
    """
    if _of(unit)[0] != _of(other)[0]:
        raise InputError(f"{what}: a number in {other!r} can't be judged by a rule in {unit!r}.")


def _of(unit: str) -> tuple[str, float]:
    if unit not in _UNITS:
        raise InputError(f"Unknown unit {unit!r} in a rule; known are {', '.join(_UNITS)}.")
    return _UNITS[unit]
