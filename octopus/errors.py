"""The exceptions that Octopus raises; each message says what was asked, what was found, and what to do."""

import reprlib
from typing import Any

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60


def shown(value: Any) -> str:
    """A value as messages show it: on one line, and a long one without its middle."""
    return " ".join(_short.repr(value).split())


def shown_type(value: Any) -> str:
    """The name of a value's type behind its article, such as "a list" or "an int"; of None the value."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' or name == 'ndarray' else 'a'} {name}"


class OctopusError(Exception):
    """Base class of every error that Octopus raises on purpose."""


class InputError(OctopusError, ValueError):
    """An argument is wrong; raised before any work is launched, so no output is partly written."""


class DeviceError(OctopusError, RuntimeError):
    """The device or backend that was asked for is not usable here."""


class MissingPackageError(OctopusError, ImportError):
    """An optional package is needed that can't be imported; the message says how to get it."""


class OutOfMemoryError(OctopusError, MemoryError):
    """There is less free memory than the call needs; the message gives both amounts in bytes."""
