"""Random calls of `crop_resize` and `CropPlan` on the CPU with filters and affine maps.

Apart from `fuzz_crop`, since their kernels take two minutes to compile: in `make fuzz` alone.
"""

from __future__ import annotations

from itertools import product

import fuzz_crop
import numpy as np
from crop_case import Case
from dice import Dice
from guarded import Guard

from octopus.crop.cpu import load

FORMS = ("nearest", "bicubic", "maps-nearest", "maps-bilinear", "maps-bicubic")


def warm_up() -> None:
    """Compile or load all kernels."""
    frames = [(dtype, "RGB") for dtype in ("uint8", "uint16", "float32", *fuzz_crop.VIDEO)]
    frames += [(dtype, order) for dtype, orders in fuzz_crop.ORDERS.items() for order in orders]
    for form, (dtype, order), result in product(FORMS, frames, fuzz_crop.RESULTS):
        load(form, dtype, result, order)


def make(dice: Dice, guard: Guard) -> Case:
    """Any call of `fuzz_crop` with another filter, or with maps in the place of its boxes."""
    case = fuzz_crop.make(dice, guard)
    options, maps = case.options, dice.few(0.6)
    options |= {"antialias": False, "filter": dice.pick("nearest", "bilinear", "bicubic") if maps else None}
    options["filter"] = options["filter"] or dice.pick("nearest", "bicubic")
    if options["dtype"] not in fuzz_crop.RESULTS:
        options["dtype"], case.out = "float32", None
    if (
        maps or options["filter"] == "nearest"
    ):  # whose reference is moved, which may round a letterbox otherwise
        options["letterbox"] = False
        if (options["outside"], options["pad_mode"]) != ("pad", "constant"):
            options.pop("pad_value", None)
    if maps:
        options["edge"] = "box"
        options["outside"] = "clip" if options["outside"] == "error" else options["outside"]
        case.boxes = _maps(dice, case.pixels.shape[-3:-1], np.broadcast_to(case.size, 2), len(case.boxes))
    return case


def _maps(dice: Dice, frame: tuple[int, int], size: np.ndarray, count: int) -> np.ndarray:
    """Maps of a part of the frame, whose samples may end on its last pixel or lie beyond it."""
    found = np.zeros((count, 2, 3), np.float32)
    for item in found:
        angle = dice.random.uniform(0, 2 * np.pi) if dice.few(0.5) else 0.0
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        part = dice.pick(0.0, 0.2, 0.5, 1.0, 1.0, 2.0)
        ends = (size[::-1] - 1).clip(1)
        item[:, :2] = turn * (part * (np.array(frame[::-1]) - 1) / ends)
        middle = (np.array(frame[::-1]) - 1) / 2 if dice.few(0.6) else dice.random.uniform(-9, frame[::-1])
        item[:, 2] = middle - item[:, :2] @ (size[::-1] - 1) / 2
    return found
