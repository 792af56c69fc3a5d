"""Arithmetic over ids of numbers: ``published.a / published.b``, or what a run's own limits predict.

Ids hold dots and hyphens, so every sign stands between spaces. There are ids, plain decimals, ``+ - * /`` and brackets,
and nothing else: a formula is data, and can't do anything but compute.
"""

import math
import re
from collections.abc import Callable
from contextlib import suppress

from octopus.errors import InputError

_PLAIN = re.compile(r"[-+*/()]|\d+(\.\d+)?")
_ID = re.compile(r"[a-z{][\w{}-]*(\.[\w{}-]+)+")


def evaluate(formula: str, value_of: Callable[[str], float]) -> float:
    """Return the value of a formula such as ``( a.bytes + b.bytes ) / c.bandwidth``; `InputError` where it can't be
    read."""
    tokens = formula.split()
    wrong = [token for token in tokens if not (_ID.fullmatch(token) or _PLAIN.fullmatch(token))]
    numbers = [repr(float(value_of(token))) if _ID.fullmatch(token) else token for token in tokens if not wrong]
    try:
        # Numbers, signs and brackets are all that is left.
        return float(eval(" ".join(numbers), {"__builtins__": {}, "nan": math.nan, "inf": math.inf}))
    except (SyntaxError, TypeError):
        raise InputError(
            f"The formula {formula!r} can't be read{f' at {wrong[0]!r}' if wrong else ''}: write ids of numbers, "
            "decimals, + - * / and brackets, with spaces between them."
        ) from None


def ids_of(formula: str) -> list[str]:
    """Return the ids in a formula, in their order; it is read whole."""
    with suppress(ZeroDivisionError):  # ones in place of all values can cancel
        evaluate(formula, lambda name: 1.0)
    return [token for token in formula.split() if _ID.fullmatch(token)]
