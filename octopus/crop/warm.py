"""Everything that a first call would otherwise wait for, done beforehand."""

from __future__ import annotations

import time
from itertools import product
from typing import Any

import numpy as np

from octopus import backends
from octopus.arrays.checks import Device
from octopus.crop.frame import DTYPES as FRAMES
from octopus.crop.options import DTYPES
from octopus.crop.plan import CropPlan

_OPTIONS: tuple[dict[str, Any], ...] = ({}, {"letterbox": True}, {"antialias": True})


def warm_up(device: Device = "auto", *, everything: bool = False) -> float:
    """Compile the crop's kernels for this machine, or load them from the disk, so that no later call waits for it.

    A kernel is compiled once per machine, in 1 to 3 s, and kept in `OCTOPUS_CACHE_DIR` (by default `octopus` in the
    user's cache folder); other processes load it in a few ms. Put this into the build of a container image, or at the
    start of a server.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}
    everything : bool
        False: frames of uint8 with three channels and results of float32, NCHW, with and without options. True: frames
        and results of every dtype, which takes about ten times as long.

    Returns
    -------
    float
        Seconds that it took.

    Raises
    ------
    InputError, DeviceError
        For an unknown device, or `"cuda"` without a usable GPU.
    """
    started = time.perf_counter()
    where = backends.resolve(device)
    frames, results = (FRAMES, DTYPES) if everything else (("uint8",), ("float32",))
    for frame, dtype, options in product(frames, results, _OPTIONS):
        model = np.zeros((2, 2, 3), frame)
        CropPlan(
            model, 1, (2, 2), scale=1, dtype=dtype, device=where, allocate=False, **options
        )  # no hint at units
    return time.perf_counter() - started
