"""Runs calls of `octopus.images` on a pretended GPU, with the simple CUDA kernel in Numba's simulator.

Prints the largest difference to the reference for each call, and facts about uploads and graphs, as JSON.
"""

from __future__ import annotations

import json

import numpy as np
import pretended_gpu

from octopus import RaggedBatch, images
from octopus.arrays.views import view
from octopus.backends.cuda.memory import DeviceArray
from octopus.images.cuda import CudaEngine
from octopus.images.sizes import stretched
from octopus.images.sources import sources_of
from octopus.images.spec import make_spec
from octopus.images.work import write
from octopus.kernels import images_reference as reference
from octopus.kernels.images import IMAGE

gpu = pretended_gpu.install()
SIDES = [(9, 7), (5, 12), (20, 3)]
SIZES = [(4, 8), (12, 4), (8, 8)]
MEAN, STD = 100.0, 50.0
NORMAL = {"gain": 1 / STD, "bias": -MEAN / STD}


def pixels(dtype=np.uint8, channels=3):
    generator = np.random.default_rng(2)
    top = 1.0 if dtype == np.float32 else np.iinfo(dtype).max
    return [(generator.random((*side, channels)) * top).astype(dtype) for side in SIDES]


def on_gpu(arrays):
    return [pretended_gpu.OnGpu(gpu, array) for array in arrays]


def host(array):
    """A copy of a result."""
    flat = gpu.pointed(array.pointer, array.dtype)._ary
    return np.array(flat[: int(np.prod(array.shape))]).reshape(array.shape)


def difference(found, expected):
    assert found.shape == expected.shape, (found.shape, expected.shape)
    return float(np.abs(found.astype(np.float64) - expected).max())


def batches():
    """Every filter with and without antialias, every rounding, dtype, layout and number of channels once."""
    results = {}
    calls = [
        ("bilinear", {}, {}),
        ("bicubic", {"antialias": False}, {}),
        ("bilinear-sharp", {"filter": "bilinear", "antialias": False}, {}),
        ("lanczos", {}, {"channels": 1}),
        ("nearest", {}, {"dtype": np.uint16}),
        ("bicubic-pillow", {"filter": "bicubic", "rounding": "pillow"}, {"channels": 4}),
        ("bicubic-uint8", {"filter": "bicubic", "rounding": "uint8"}, {}),
        ("bicubic-float32", {"filter": "bicubic"}, {"dtype": np.float32}),
    ]
    for number, (name, options, kind) in enumerate(calls):
        given, layout = pixels(**kind), ("NCHW", "NHWC")[number % 2]
        options = {"filter": name} | options
        found = images.resize(on_gpu(given), (5, 6), mean=MEAN, std=STD, layout=layout, **options)
        expected = reference.batch(given, [(5, 6)] * 3, (5, 6), layout=layout, **NORMAL, **options)
        results[name] = difference(host(found), expected)
    return results


def dtypes():
    results, expected = {}, reference.batch(pixels(), [(5, 6)] * 3, (5, 6))
    for dtype in ("float16", "uint8"):
        found = images.resize(on_gpu(pixels()), (5, 6), dtype=dtype)
        results[dtype] = difference(host(found), expected)
    spec = make_spec(
        "uint8", 3, "batch", filter="bilinear", antialias=True, rounding="none", mean=None, std=None, scale=None,
        dtype="bfloat16", layout="NCHW", size=(5, 6),
    )  # fmt: skip
    lying, out = on_gpu(pixels()), DeviceArray((3, 3, 5, 6), np.uint16)
    table = np.zeros(3, IMAGE)
    write(table, sources_of(lying), stretched(spec, np.array(SIDES)))
    CudaEngine(spec).run(table, view(out, "out"), gpu.stream)
    results["bfloat16"] = difference((host(out).astype(np.uint32) << 16).view(np.float32), expected)
    return results


def placed():
    """Letterboxed and cut items, channels first, swapped, and a ragged batch."""
    given, results = pixels(), {}
    flipped = [np.ascontiguousarray(one[..., ::-1].transpose(2, 0, 1)) for one in given]
    found, transform = images.resize(on_gpu(flipped), (6, 6), letterbox=True, pad_value=9, channels="BGR")
    sizes, corners = [(6, 5), (2, 6), (6, 1)], [(0, 0), (-2, 0), (0, -2)]
    results["letterbox"] = difference(
        host(found), reference.batch(given, sizes, (6, 6), corners=corners, pad=9.0)
    )
    back = [
        [w / c, h / r, x * w / c, y * h / r]
        for (h, w), (r, c), (y, x) in zip(SIDES, sizes, corners, strict=True)
    ]
    results["transform"] = difference(host(transform), np.array(back))
    batch = RaggedBatch.from_list(given)
    values = pretended_gpu.OnGpu(gpu, batch.values)
    found = images.resize(
        RaggedBatch(values, batch.offsets, batch.shapes), 4, crop="center", filter="bicubic"
    )
    sizes = [(5, 4), (4, 9), (26, 4)]
    corners = [(0, 0), (0, 2), (11, 0)]
    expected = reference.batch(given, sizes, (4, 4), corners=corners, filter="bicubic")
    results["ragged-crop"] = difference(host(found), expected)
    return results


def rows():
    given, results = pixels(), {}
    options = {"filter": "bicubic", "rounding": "uint8"}
    for order, merge, temporal in (("CTPP", 2, 2), ("PPC", 1, 1)):
        found, grid = images.patch_rows(on_gpu(given), SIZES, patch=2, order=order, mean=MEAN, std=STD)
        expected = reference.rows(given, SIZES, 2, merge, temporal, order=order, **NORMAL, **options)
        results[f"rows-{order}"] = difference(host(found), expected)
    results["grid"] = float(grid.tolist() == [[1, 2, 4], [1, 6, 2], [1, 4, 4]])
    found, mask, _ = images.patch_rows(on_gpu(given), SIZES, patch=2, max_rows=17)
    results["rows-padded"] = difference(
        host(found), reference.rows(given, SIZES, 2, 2, 2, max_rows=17, **options)
    )
    results["mask"] = float((host(mask).sum(axis=1) == [8, 12, 16]).all() and host(mask)[0, :8].all())
    each = images.resize_each(on_gpu(given), SIZES, layout="NHWC")
    results["each"] = difference(host(each.values), reference.each(given, SIZES, layout="NHWC"))
    return results


def staged():
    """Images on the host: one upload, also of a ragged batch and of images with gaps."""
    given, results = pixels(), {}
    gpu.uploads.clear()
    found = images.resize([one[::-1] for one in given], (5, 6), device="cuda")
    expected = reference.batch([one[::-1] for one in given], [(5, 6)] * 3, (5, 6))
    results["staged"], results["staged-uploads"] = difference(host(found), expected), len(gpu.uploads)
    gpu.uploads.clear()
    found = images.resize(RaggedBatch.from_list(given), (5, 6), device="cuda")
    results["staged-ragged"] = difference(host(found), reference.batch(given, [(5, 6)] * 3, (5, 6)))
    results["staged-ragged-uploads"] = len(gpu.uploads)
    return results


def plans():
    """What a plan reserves and uploads, and what a captured one does when its table is written anew."""
    given, results = pixels(), {}
    lying = on_gpu(given)
    plan = images.ImagePlan("patch_rows", lying, 4, result_rows=40, patch=2)
    gpu.allocated, gpu.uploads[:], gpu.launches[:] = 0, [], []
    found, _ = plan.run(lying, SIZES)
    options = {"filter": "bicubic", "rounding": "uint8"}
    results["plan"] = difference(host(found), reference.rows(given, SIZES, 2, 2, 2, **options))
    results["plan-cost"] = [gpu.allocated, gpu.uploads[:], gpu.launches[:]]
    gpu.capturing = True
    plan.run(lying, SIZES)
    gpu.capturing = False
    gpu.replay()
    found, _ = plan.update(lying[:0:-1], SIZES[:0:-1])
    gpu.replay()
    expected = reference.rows(given[:0:-1], SIZES[:0:-1], 2, 2, 2, **options)
    results["graph-of-fewer"] = difference(host(found), expected)
    staged = images.ImagePlan(
        "resize", given, 3, source_pixels=183, size=(5, 6), device="cuda", letterbox=True
    )
    gpu.allocated, gpu.uploads[:] = 0, []
    found, _ = staged.run(given)
    results["staged-plan"] = difference(host(found)[0], expected_box(given[0]))
    results["staged-plan-cost"] = [gpu.allocated, len(gpu.uploads)]
    own = DeviceArray((2, 3, 5, 6), np.float32)
    staged.run(given[:2], out=own)
    results["plan-out"] = difference(host(own)[0], expected_box(given[0]))
    return results


def expected_box(image):
    return reference.batch([image], [(5, 4)], (5, 6), corners=[(0, -1)], pad=114.0)[0]


def main():
    results = batches() | dtypes() | placed() | rows() | staged() | plans()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
