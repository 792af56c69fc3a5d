"""What stand-ins share: versions that they were tested with, and how they say that the original works."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from importlib import import_module

from octopus.errors import MissingPackageError


class FallbackWarning(UserWarning):
    """A call was answered by the original code, as slowly as before; says why, once for each reason."""


class UnknownError(Exception):
    """What is asked for has no equivalent here; the message is the reason."""


def check_version(package: str, tested: Sequence[str], untested: bool = False) -> None:
    """Raise `MissingPackageError` unless a package's version lies between the first and the last of those tested.

    A bound of two numbers, such as 5.23, holds for all versions that begin with them.
    """
    try:
        found = str(import_module(package).__version__)
    except ImportError as error:
        raise MissingPackageError(
            f"{package} can't be imported ({error}); pip install 'octopus-ragged[{package}]'"
        ) from error
    numbers, first, last = (_numbers(version) for version in (found, tested[0], tested[-1]))
    if not (untested or (first <= numbers[: len(first)] and numbers[: len(last)] <= last)):
        raise MissingPackageError(
            f"octopus was tested with {package} {tested[0]} to {tested[-1]}, found {found}; install one of these, or "
            "pass untested=True to try this one"
        )


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers with which a version begins."""
    return tuple(int(number) for number in re.findall(r"^\d+|(?<=\.)\d+", version)[:3])


_warned: set[tuple[str, str]] = set()


def warn_once(name: str, reason: str) -> None:
    """Say that and why the original works; again if the warning was made an error."""
    key = (name, re.sub(r"\d+", "#", reason))  # with other sizes it is the same reason
    if key not in _warned:
        warnings.warn(f"{name} works without octopus: {reason}", FallbackWarning, stacklevel=3)
        _warned.add(key)
