"""Backends: what a device is, where its memory comes from, and how a kernel gets onto it."""

from __future__ import annotations

from octopus.backends import cuda
from octopus.errors import InputError

DEVICES = ("auto", "cpu", "cuda")


def resolve(device: str) -> str:
    """Turn `"auto"` into the backend that this machine has.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}

    Returns
    -------
    {"cpu", "cuda"}
        `"auto"` gives `"cuda"` where a GPU is usable, else `"cpu"`.

    Raises
    ------
    InputError
        For any other name.
    DeviceError
        For `"cuda"` without a usable GPU; the message says what was looked for.
    """
    if device not in DEVICES:
        raise InputError(f"device={device!r} is unknown; use one of {', '.join(DEVICES)}")
    if device == "auto":
        return "cuda" if cuda.missing() is None else "cpu"
    if device == "cuda":
        cuda.require()
    return device
