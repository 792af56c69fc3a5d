"""Everything that first calls would otherwise wait for, done beforehand."""

from __future__ import annotations

import time
from itertools import product
from typing import Any

import numpy as np

from octopus import backends
from octopus.arrays.checks import Device
from octopus.crop.api import CropPlan, crop_resize
from octopus.crop.frame import DTYPES as FRAMES
from octopus.crop.spec import FitHeight
from octopus.images.plan import ImagePlan
from octopus.kernels.operations import OPERATIONS, STENCILS
from octopus.ragged import ops
from octopus.ragged.batch import RaggedBatch
from octopus.tiles.api import TilePlan

_OPTIONS: tuple[dict[str, Any], ...] = ({}, {"letterbox": True}, {"antialias": True})
_QUADS = np.array([[[0, 0], [2, 0], [2, 2], [0, 2]]], np.float32)
_ELEMENTS, _RESULTS = ("float32", "uint8"), ("float32", "float16", "uint8")


def warm_up(device: Device = "auto", *, everything: bool = False) -> float:
    """Compile the usual kernels for this machine, or load them from the disk, so that first calls don't wait for it.

    On the CPU a kernel takes a few seconds, once per machine. It is kept in `OCTOPUS_CACHE_DIR` (by default `octopus`
    in the user's cache folder), from which other processes load it in a few ms. Call this when the image of a container
    is built, or when a server starts.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda", "cuda:0", ...} or torch.device
    everything : bool
        False: crops of uint8 frames with three channels to float32, NCHW, with and without options, and of boxes and
        quadrilaterals to sizes of their own. True: crops from
        every dtype, and to every one but bfloat16, whole images of uint8 with three channels, operations on ragged
        batches by the default strategy, and means of tiles: about twelve times as much.

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
    frames, results = (FRAMES, _RESULTS) if everything else (("uint8",), ("float32",))
    for frame, dtype, options in product(frames, results, _OPTIONS):
        model = np.zeros((2, 2, 3), frame)
        # With a scale nothing is hinted at the units of the normalisation.
        CropPlan(model, 1, (2, 2), scale=1, dtype=dtype, device=where, allocate=False, **options)
    for frame, dtype, boxes in product(frames, results, (_QUADS[:, ::2].reshape(1, 4), _QUADS)):
        own: dict[str, Any] = {"scale": 1, "dtype": dtype, "device": where}
        for columns in (4, 5):  # rows that begin at multiples of four bytes, and others
            crop_resize(np.zeros((2, columns, 3), frame), boxes, FitHeight(2), **own)
    if everything:
        _warm_up_others(where)
    return time.perf_counter() - started


def _warm_up_others(where: str) -> None:
    for dtype, operation in product(_ELEMENTS, OPERATIONS):
        batch = RaggedBatch.from_arrays(np.zeros(4, dtype), [[2, 2]])
        given = {"normalize": (0, 1)}.get(operation, () if operation in STENCILS else (1,))
        getattr(ops, operation)(batch, *given, strategy="block_search", device=where)
    picture, source = np.zeros((2, 2, 3), np.uint8), {"source_pixels": 4} if where == "cuda" else {}
    for dtype, rounding in product(_ELEMENTS, ("uint8", "pillow", "torch")):
        options: dict[str, Any] = {"dtype": dtype, "rounding": rounding, "device": where, **source}
        ImagePlan("resize", picture, 1, size=2, filter="bicubic", **options)
        ImagePlan("patch_rows", picture, 1, result_rows=1, **options)
    for dtype in ("uint8", "uint16"):
        image = np.zeros((2, 2), dtype)
        TilePlan(image, [[0, 0, 2, 2]], device=where).run(image)
