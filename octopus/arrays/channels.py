"""Values of each channel: means, standard deviations, scales and padding, and the normalisation made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from octopus.arrays.checks import hint_once
from octopus.arrays.views import host_numbers
from octopus.errors import InputError, shown

TOPS = {"uint8": 255, "uint16": 65535, "nv12": 255, "p010": 255}  # largest values of pixels, where there are any
ORDERS = ("RGB", "BGR", "RGBA", "BGRA")  # of channels as they are stored


def check_order(order: str, number: int, what: str) -> int:
    """Channels of the result for an order and the `number` that are stored of `what`, such as "images".

    Raises
    ------
    InputError
        For an order of another number of channels; "RGB" takes any number, as they are.
    """
    if order == "RGB":
        return number
    if number != len(order):
        raise InputError(f'channels="{order}" is for {what} of {len(order)} channels, found {number}')
    return 3


def per_channel(name: str, value: Any, default: float, channels: int) -> np.ndarray:
    """One value per channel, (C,), float64; an array may have it along any one axis, such as (C, 1, 1).

    Raises
    ------
    InputError
        Unless it is one finite number, or one per channel, on the host.
    """
    values = np.asarray(default) if value is None else host_numbers(value, name)
    along_one_axis = values.size in (1, channels) and values.size == max(values.shape, default=1)
    if values.dtype.kind not in "iuf" or not along_one_axis or not np.isfinite(values).all():
        raise InputError(f"{name} must be one finite number or {channels} (one per channel), found {shown(value)}")
    return np.broadcast_to(values.ravel().astype(np.float64), channels)


def normalisation(mean: Any, std: Any, scale: Any, channels: int) -> tuple[np.ndarray, np.ndarray]:
    """Gain and bias of each channel, (C,), float32: `(value / scale - mean) / std` is `value * gain + bias`.

    Raises
    ------
    InputError
        As `per_channel`, and if `std` or `scale` are not positive, or together leave the range of float32.
    """
    mean = per_channel("mean", mean, 0.0, channels)
    std = per_channel("std", std, 1.0, channels)
    scale = per_channel("scale", scale, 1.0, channels)
    for name, values in (("std", std), ("scale", scale)):
        if not (values > 0).all():
            raise InputError(f"{name} must be positive, found {shown(values.tolist())}")
    with np.errstate(all="ignore"):
        gain, bias = (1.0 / (scale * std)).astype(np.float32), (-mean / std).astype(np.float32)
    if not (np.isfinite(gain).all() and np.isfinite(bias).all()):
        told = (shown(values.tolist()) for values in (mean, std, scale))
        raise InputError("mean {}, std {} and scale {} leave the range of float32".format(*told))
    return gain, bias


def padding(value: Any, gain: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """The padding of each channel, (C,), float32, normalised as a pixel of that value would be."""
    values = per_channel("pad_value", value, 0.0, len(gain))
    with np.errstate(over="ignore"):
        pad: np.ndarray = values.astype(np.float32) * gain + bias
    if not np.isfinite(pad).all():
        raise InputError(f"pad_value {shown(values.tolist())} leaves the range of float32 once normalised")
    return pad


def hint_at_units(what: str, source: str, dtype: str, mean: Any, std: Any, scale: Any, channels: int) -> None:
    """Warn, once per process, of normalisations that are legal and, for pixels of integers, hardly ever meant.

    Parameters
    ----------
    what : str
        What the caller calls pixels of the dtype `source`, such as "frame".
    source, dtype : str
        Dtypes of the pixels and of the result.
    """
    if source not in TOPS:
        return
    top = TOPS[source]
    if scale is not None:
        if _beyond_reach(mean, std, scale, channels, top):
            hint_once(
                "scaled",
                f"with scale= mean and std are in units of it, but they are far beyond the {source} {what}'s "
                "largest value in that unit. Leave scale out, or divide both by it",
            )
        return
    if _in_units_of_one(mean, std, channels):
        hint_once(
            "units",
            f"mean and std look as if they were in units of 1, but the {what} is {source}, and they are in units "
            f"of its values, 0 to {top}. Give scale={top} to use units of 1, or multiply both by {top}",
        )
    if source == "uint16" and dtype in ("uint8", "float16") and std is None:
        fate = "saturates at 255" if dtype == "uint8" else "overflows to infinity above 65504"
        hint_once(
            f"range-{dtype}",
            f"the {what} is uint16, with values up to {top}, and a result of {dtype} {fate}. Give scale= or "
            "std= to bring the values into its range",
        )


def _in_units_of_one(mean: Any, std: Any, channels: int) -> bool:
    """Whether both are given and such as of values from 0 to 1; 0 and 1, which change nothing, are of any unit."""
    if mean is None or std is None:
        return False
    both = np.concatenate([per_channel("mean", mean, 0.0, channels), per_channel("std", std, 1.0, channels)])
    return bool((both >= 0).all() and (both <= 1).all() and (both % 1).any())


def _beyond_reach(mean: Any, std: Any, scale: Any, channels: int, top: int) -> bool:
    """Whether mean or std, in units of `scale`, are more than twice what a pixel's value comes to."""
    scale = per_channel("scale", scale, 1.0, channels)
    mean, std = per_channel("mean", mean, 0.0, channels), per_channel("std", std, 0.0, channels)
    return bool((np.maximum(mean, std) * scale > 2 * top).any())
