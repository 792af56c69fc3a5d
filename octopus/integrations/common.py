"""What stand-ins share: versions that they were tested with, and how they say that the original works."""

import hashlib
import inspect
import re
import warnings
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.resources import files
from pkgutil import resolve_name
from typing import Any

from octopus.errors import DeviceError, InputError, MissingPackageError, OutOfMemoryError


class FallbackWarning(UserWarning):
    """A call was answered by the original code, as slowly as before; says why, once for each reason."""


class UnknownError(Exception):
    """What is asked for has no equivalent here; the message is the reason."""


KNOWN_ERRORS = (UnknownError, InputError, DeviceError, OutOfMemoryError)  # after which the original works


def check_version(package: str, tested: Sequence[str], older: bool = False) -> bool:
    """Raise `MissingPackageError` for a package's version before those tested, unless `older` ones will do.

    A newer one is warned of, once. A bound of two numbers, such as 5.23, holds for all versions that begin with them.

    Returns
    -------
    bool
        Whether it is newer.
    """
    found, newer = _version(package), is_newer(package, tested)
    first, last = tested[0], tested[-1]
    if _numbers(found) < _numbers(first) and not older:
        raise MissingPackageError(
            f"octopus was tested with {package} {first} to {last}, found the older {found}; pip install -U {package}, "
            "or pass untested=True where there is such an option"
        )
    if newer and package not in _newer:
        _newer.add(package)
        warnings.warn(f"{package} {found} is newer than {first} to {last}, with which octopus was tested", stacklevel=3)
    return newer


def is_newer(package: str, tested: Sequence[str]) -> bool:
    last = _numbers(tested[-1])
    return _numbers(_version(package))[: len(last)] > last


def _version(package: str) -> str:
    try:
        return str(getattr(import_module(package), "__version__", "") or version(package))
    except ImportError as error:
        raise MissingPackageError(
            f"{package} can't be imported ({error}); pip install 'octopus-ragged[{package}]'"
        ) from error


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"^\d+|(?<=\.)\d+", version)[:3])


def moved(code: Iterable[Any]) -> list[str]:
    """The names of functions, some given by name, whose source is another than in all versions that were tested.
    `code.tsv` has the digests of all that stand-ins rely on."""
    known = _digests()
    found = (named(one) for one in code)
    return [name for name, function in found if function is None or digest(function) not in known.get(name, ())]


def named(one: Any) -> tuple[str, Any]:
    """A function's module and name, as `code.tsv` has them, and the function; None if there is no such one."""
    if isinstance(one, str):
        try:
            return one, inspect.unwrap(resolve_name(one))
        except (ImportError, AttributeError):
            return one, None
    function = inspect.unwrap(one)
    return f"{function.__module__}.{function.__qualname__}", function


def digest(function: Any) -> str:
    """Of a function's source; "" if the source isn't available."""
    try:
        return hashlib.sha256(inspect.getsource(function).encode()).hexdigest()[:8]
    except (OSError, TypeError):
        return ""


@cache
def _digests() -> dict[str, list[str]]:
    rows = files("octopus.integrations").joinpath("code.tsv").read_text(encoding="utf-8").splitlines()
    return {name: digests.split() for name, digests in (row.split("\t") for row in rows if row)}


_newer: set[str] = set()
_warned: set[tuple[str, str]] = set()


def warn_once(name: str, reason: str) -> None:
    """Say that and why the original works; again if the warning was made an error."""
    key = (name, re.sub(r"\d+", "#", reason))  # with other sizes it is the same reason
    if key not in _warned:
        warnings.warn(f"{name} works without octopus: {reason}", FallbackWarning, stacklevel=3)
        _warned.add(key)
