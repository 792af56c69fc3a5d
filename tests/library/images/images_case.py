"""Images, their table, and runs of the CPU engine, for tests of the kernels without the public calls."""

from dataclasses import replace

import numpy as np
import pytest

from octopus.arrays.launch import launch
from octopus.arrays.views import view
from octopus.images.cpu import CpuEngine
from octopus.images.spec import ImageSpec, make_spec
from octopus.kernels.images import IMAGE

STORED = {"bfloat16": "uint16"}
OPERATIONS = {"batch": "resize", "each": "resize_each", "rows": "patch_rows"}
SIDES = [(9, 7), (5, 12), (20, 3)]
PLAIN_ROWS = {"filter": "bilinear", "rounding": "none", "merge": 1, "temporal": 1}


def spec_of(source="uint8", channels=3, kind="each", **options) -> ImageSpec:
    if (kind, options.get("dtype")) == ("each", "bfloat16"):  # which kernels make, and no call asks for
        return replace(spec_of(source, channels, **options | {"dtype": "float32"}), dtype="bfloat16")
    return make_spec(source, channels, OPERATIONS[kind], **(PLAIN_ROWS if kind == "rows" else {}) | options)


def table_of(images, sizes, spec, corners=None, max_rows=None) -> np.ndarray:
    """The records of images (H, W, C) of any strides, their items one after the other."""
    table, out = np.zeros(len(images), IMAGE), 0
    for record, image, size, corner in zip(table, images, sizes, corners or [(0, 0)] * len(images), strict=True):
        steps = [image.strides[axis] for axis in (2, 0, 1)]
        record["pointer"], record["out"] = image.ctypes.data, out
        record["plane_step"], record["row_step"], record["pixel_step"] = steps
        record["height"], record["width"] = image.shape[:2]
        (record["rows"], record["columns"]), (record["top"], record["left"]) = size, corner
        values = size[0] * size[1] // spec.patch**2
        out += {"each": values * spec.channels, "batch": spec.values, "rows": max_rows or values}[spec.kind]
    return table


def run(images, sizes, spec, corners=None, max_rows=None, engine=None) -> np.ndarray:
    """What the engine makes of images (H, W, C): flat, (N, ...) or (R, K), with padded rows (N, max_rows, K)."""
    table = table_of(images, sizes, spec, corners, max_rows)
    used = sum(height * width for height, width in sizes)
    shapes = {
        "each": (used * spec.channels,),
        "batch": (len(images), spec.values),
        "rows": (len(images), max_rows, spec.values) if max_rows else (used // spec.patch**2, spec.values),
    }
    out = np.full(shapes[spec.kind], 77, STORED.get(spec.dtype, spec.dtype))
    run_table(engine or CpuEngine(spec), table, out)
    if spec.kind != "batch":
        return out
    height, width = spec.item
    planar = spec.layout == "NCHW"
    return out.reshape(-1, *((spec.channels, height, width) if planar else (height, width, spec.channels)))


def run_table(engine, table, out) -> None:
    """Fill `out` from the images of a table."""
    found = view(out, "out")
    launch(engine.prepared(table, found), (found.pointer,))


def pixels(channels=3, dtype=np.uint8):
    """Small images of `SIDES`, the same at each call."""
    generator = np.random.default_rng(4)
    return [generator.integers(0, 256, (*side, channels)).astype(dtype) for side in SIDES]


def in_blocks(array):
    """An image of Pillow whose rows lie in several blocks, as those of a photograph do."""
    image = pytest.importorskip("PIL.Image")
    size = image.core.get_block_size()
    image.core.set_block_size(4096)
    try:
        return image.fromarray(array)
    finally:
        image.core.set_block_size(size)


def plain(module, monkeypatch):
    """Let a module's device functions be what they are without a compiler."""
    for name, value in vars(module).copy().items():
        if hasattr(value, "py_func"):
            monkeypatch.setattr(module, name, value.py_func)


def noise(rng, height, width, channels=3, dtype="uint8") -> np.ndarray:
    """Random pixels, every value of integers; floats from -1 to 1."""
    if dtype == "float32":
        return rng.uniform(-1, 1, (height, width, channels)).astype(np.float32)
    return rng.integers(0, np.iinfo(dtype).max + 1, (height, width, channels), dtype)
