"""Arithmetic over ids of numbers: ``published.a / published.b``, or what a run's own limits predict.

Ids hold dots and hyphens, so every sign stands between spaces. There are ids, plain decimals, ``+ - * /`` and brackets,
and nothing else: a formula is data, and can't do anything but compute.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from octopus.errors import InputError

_DECIMAL = re.compile(r"\d+(\.\d+)?")
_ID = re.compile(r"[a-z{][\w{}-]*(\.[\w{}-]+)+")
_SIGNS = ("+", "-", "*", "/")


def evaluate(formula: str, value_of: Callable[[str], float]) -> float:
    """Return the value of a formula.

    Parameters
    ----------
    formula : str
        Such as ``( a.bytes + b.bytes ) / c.bandwidth``.
    value_of : callable
        Gives the value of an id.

    Raises
    ------
    InputError
        The formula can't be read, or divides by zero.
    """
    tokens = formula.split()
    value, rest = _sum(tokens, value_of, formula)
    if rest:
        raise _unread(formula, rest[0])
    return value


def ids_of(formula: str) -> list[str]:
    """Return the ids in a formula, in their order.

    Raises
    ------
    InputError
        The formula can't be read.
    """
    found: list[str] = []

    def note(name: str) -> float:
        found.append(name)
        return 1.0

    # What it divides by may differ by nothing here: ones in place of all values can cancel.
    try:
        evaluate(formula, note)
    except ZeroDivisionError:
        found = [token for token in formula.split() if _ID.fullmatch(token)]
    return found


def _sum(tokens: list[str], value_of: Callable[[str], float], formula: str) -> tuple[float, list[str]]:
    value, rest = _product(tokens, value_of, formula)
    while rest and rest[0] in _SIGNS[:2]:
        other, after = _product(rest[1:], value_of, formula)
        value, rest = (value + other if rest[0] == "+" else value - other), after
    return value, rest


def _product(tokens: list[str], value_of: Callable[[str], float], formula: str) -> tuple[float, list[str]]:
    value, rest = _operand(tokens, value_of, formula)
    while rest and rest[0] in _SIGNS[2:]:
        other, after = _operand(rest[1:], value_of, formula)
        value, rest = (value * other if rest[0] == "*" else value / other), after
    return value, rest


def _operand(tokens: list[str], value_of: Callable[[str], float], formula: str) -> tuple[float, list[str]]:
    if not tokens:
        raise InputError(f"The formula {formula!r} ends where an id or a number should stand.")
    first, *rest = tokens
    if first == "(":
        value, rest = _sum(rest, value_of, formula)
        if rest[:1] != [")"]:
            raise InputError(f"A bracket of the formula {formula!r} is not closed.")
        return value, rest[1:]
    if _DECIMAL.fullmatch(first):
        return float(first), rest
    if _ID.fullmatch(first):
        return value_of(first), rest
    raise _unread(formula, first)


def _unread(formula: str, token: str) -> InputError:
    return InputError(
        f"The formula {formula!r} can't be read at {token!r}: write ids of numbers, decimals, + - * / and brackets, "
        "with spaces between them."
    )
