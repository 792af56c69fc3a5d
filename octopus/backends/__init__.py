"""Backends: what a device is, where its memory comes from, and how a kernel gets onto it."""

from typing import Any, Literal

from octopus.backends import cuda
from octopus.errors import InputError, shown

DEVICES = ("auto", "cpu", "cuda")


def kind_of(device: Any) -> tuple[str, int | None]:
    """What a caller means by a device ("auto", "cpu", "cuda:0", a `torch.device`, ...), and the number in it."""
    if isinstance(device, str) and device in DEVICES:
        return device, None
    kind, _, number = str(device).partition(":")
    if kind not in DEVICES[1:] or (str(device) != kind and not (number.isascii() and number.isdigit())):
        raise InputError(
            f"device={shown(device)} is unknown; use one of {', '.join(DEVICES)}, a GPU's number as in 'cuda:0', or a "
            "torch.device"
        )
    return kind, int(number) if number else None


def resolve(device: Any) -> Literal["cpu", "cuda"]:
    """The backend of a device, see `kind_of`; "auto" is "cuda" where a GPU is usable.

    Raises
    ------
    InputError
        For an unknown device, or another GPU than the one in use.
    DeviceError
        For "cuda" without a usable GPU; the message says what was looked for.
    """
    kind, number = kind_of(device)
    if kind == "auto":
        return "cuda" if cuda.missing() is None else "cpu"
    if kind == "cuda":
        cuda.require()
        if number is not None and number != (here := cuda.device.current().device_id):
            raise InputError(
                f"device={str(device)!r} was asked for, but GPU {here} is in use; make GPU {number} current before "
                "this thread's first call"
            )
        return "cuda"
    return "cpu"
