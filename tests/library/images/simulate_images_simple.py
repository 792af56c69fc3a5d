"""Runs calls of `octopus.images` on a pretended GPU, with the simple CUDA kernel in Numba's simulator.

Prints the largest difference to the reference for each call, and facts about uploads and graphs, as JSON.
"""

from __future__ import annotations

import json

import numpy as np
import simulated_gpu

from octopus import InputError, RaggedBatch, images
from octopus.arrays.views import view
from octopus.backends.cuda.memory import DeviceArray
from octopus.images import upload
from octopus.images.cuda import CudaEngine
from octopus.images.sizes import stretched
from octopus.images.sources import sources_of
from octopus.images.spec import make_spec
from octopus.images.work import write
from octopus.kernels.images import IMAGE
from octopus_study.reference import images as reference

gpu = simulated_gpu.install()
SIDES = [(9, 7), (5, 12), (20, 3)]
SIZES = [(4, 8), (12, 4), (8, 8)]
MEAN, STD = 100.0, 50.0
NORMAL = {"gain": 1 / STD, "bias": -MEAN / STD}
costs = {}


def pixels(dtype=np.uint8, channels=3):
    generator = np.random.default_rng(2)
    top = 1.0 if dtype == np.float32 else np.iinfo(dtype).max
    return [(generator.random((*side, channels)) * top).astype(dtype) for side in SIDES]


def on_gpu(arrays):
    return [simulated_gpu.OnGpu(gpu, array) for array in arrays]


def counts():
    """How often memory was reserved, copies by themselves and by launches, launches."""
    return np.array([gpu.allocated, len(gpu.uploads), len(gpu.copies), len(gpu.launches)])


def repeated(name, call, given, *rest, put=gpu.tensor, **options):
    """The answer of a call on tensors after one that differs in pixels alone; notes in `costs` what it did."""
    call([put(one[::-1].copy()) for one in given], *rest, **options)
    lying, start = list(map(put, given)), counts()
    answer = call(lying, *rest, **options)
    costs[name] = (counts() - start).tolist()
    return answer


def host(array):
    """A copy of a result."""
    if hasattr(array, "array"):
        return array.array.copy()
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
        found = repeated(name, images.resize, given, (5, 6), mean=MEAN, std=STD, layout=layout, **options)
        expected = reference.batch(given, [(5, 6)] * 3, (5, 6), layout=layout, **NORMAL, **options)
        results[name] = difference(host(found), expected)
    return results


def dtypes():
    """And results in the caller's memory, on the caller's stream, and for arrays of other libraries."""
    results, expected = {}, reference.batch(pixels(), [(5, 6)] * 3, (5, 6))
    for name, options in {
        "float16": {"dtype": "float16"},
        "uint8": {"dtype": "uint8"},
        "out": {"out": gpu.tensor(np.zeros((3, 3, 5, 6), np.float32))},
        "stream": {"stream": 0},
        "other-library": {"put": lambda array: simulated_gpu.OnGpu(gpu, array)},
        "host": {"put": lambda array: simulated_gpu.fake_torch.Tensor(array, "cpu:-1"), "device": "cuda"},
    }.items():
        results[name] = difference(host(repeated(name, images.resize, pixels(), (5, 6), **options)), expected)
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
    options = {"letterbox": True, "pad_value": 9, "channels": "BGR"}
    found, transform = repeated("letterbox", images.resize, flipped, (6, 6), **options)
    sizes, corners = [(6, 5), (2, 6), (6, 1)], [(0, 0), (-2, 0), (0, -2)]
    expected = reference.batch(given, sizes, (6, 6), corners=corners, pad=9.0)
    results["letterbox"] = difference(host(found), expected)
    back = [
        [w / c, h / r, x * w / c, y * h / r]
        for (h, w), (r, c), (y, x) in zip(SIDES, sizes, corners, strict=True)
    ]
    results["transform"] = difference(host(transform), np.array(back))
    batch = RaggedBatch.from_list(given)
    values = simulated_gpu.OnGpu(gpu, batch.values)
    batch, options = RaggedBatch(values, batch.offsets, batch.shapes), {"crop": "center", "filter": "bicubic"}
    sizes, corners = [(5, 4), (4, 9), (26, 4)], [(0, 0), (0, 2), (11, 0)]
    expected = reference.batch(given, sizes, (4, 4), corners=corners, filter="bicubic")
    results["ragged-crop"] = difference(host(images.resize(batch, 4, **options)), expected)
    found = repeated("crop", images.resize, flipped, 4, channels="BGR", **options)
    results["crop"] = difference(host(found), expected)
    return results


def rows():
    given, results = pixels(), {}
    options, call = {"filter": "bicubic", "rounding": "uint8"}, images.patch_rows
    for order, merge, temporal in (("CTPP", 2, 2), ("PPC", 1, 1)):
        name, normal = f"rows-{order}", {"mean": MEAN, "std": STD}
        found, grid = repeated(name, call, given, SIZES, patch=2, order=order, **normal)
        expected = reference.rows(given, SIZES, 2, merge, temporal, order=order, **NORMAL, **options)
        results[name] = difference(host(found), expected)
    results["grid"] = float(grid.array.tolist() == [[1, 2, 4], [1, 6, 2], [1, 4, 4]])
    found, mask, _ = repeated("rows-padded", call, given, SIZES, patch=2, max_rows=17)
    expected = reference.rows(given, SIZES, 2, 2, 2, max_rows=17, **options)
    results["rows-padded"] = difference(host(found), expected)
    results["mask"] = float((host(mask).sum(axis=1) == [8, 12, 16]).all() and host(mask)[0, :8].all())
    each = repeated("each", images.resize_each, given, lambda sides: SIZES, layout="NHWC")
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
    names = [made.kernel.function.fn.__name__ for made in gpu.launches]
    results["plan-cost"] = [gpu.allocated, gpu.uploads[:], names]
    gpu.capturing = True
    plan.run(lying, SIZES)
    gpu.capturing = False
    gpu.replay()
    found, _ = plan.update(lying[:0:-1], SIZES[:0:-1])
    gpu.replay()
    expected = reference.rows(given[:0:-1], SIZES[:0:-1], 2, 2, 2, **options)
    results["graph-of-fewer"] = difference(host(found), expected)
    options = {"size": (5, 6), "device": "cuda", "letterbox": True}
    staged = images.ImagePlan("resize", given, 3, source_pixels=183, **options)
    gpu.allocated, gpu.uploads[:] = 0, []
    found, _ = staged.run(given)
    results["staged-plan"] = difference(host(found)[0], expected_box(given[0]))
    results["staged-plan-cost"] = [gpu.allocated, len(gpu.uploads)]
    own = DeviceArray((2, 3, 5, 6), np.float32)
    staged.run(given[:2], out=own)
    results["plan-out"] = difference(host(own)[0], expected_box(given[0]))
    return results


def elsewhere():
    """Calls that are alike on other streams, while a graph is captured, on another GPU, and that the driver refuses."""
    given, words, made, errors = pixels()[:1], [], [], [0.0]
    right, lying = images.resize(given, (5, 6), scale=2), list(map(gpu.tensor, given))

    def again(handle=7, captured=(), device=0, statuses=(), size=(5, 6)):
        gpu.current, gpu.captured, gpu.device, gpu.statuses = handle, set(captured), device, dict(statuses)
        before, gpu.capturing = counts(), bool(captured)
        try:
            found = images.resize(lying, size, scale=2)
            errors.append(difference(found.array, right) if size == (5, 6) else 0.0)
        except (InputError, RuntimeError) as error:
            words.append(str(error))
        made.append((counts() - before).tolist()[1:])

    for handle in (7, 9, 9, 7, 7):
        again(handle)
    handles = [launch.stream for launch in gpu.launches[-5:]]
    for handle in range(10, 10 + upload.MOST_STREAMS):
        again(handle, size=(4, 4))
    again()
    again(captured=[7])
    again(device=1)
    again(statuses={"copy": 700})
    again(statuses={"launch": 700})
    again()
    result = {
        "error": max(errors),
        "streams": made[:5],
        "handles": handles,
        "then": made[-6:],
        "words": words,
    }
    return {"elsewhere": result}


def expected_box(image):
    return reference.batch([image], [(5, 4)], (5, 6), corners=[(0, -1)], pad=114.0)[0]


def main():
    results = batches() | dtypes() | placed() | rows() | staged() | plans() | elsewhere()
    assert not gpu.errors, gpu.errors
    print(json.dumps(results | {"costs": costs}))


if __name__ == "__main__":
    main()
