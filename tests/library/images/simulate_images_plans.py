"""Captures runs of plans of `octopus.images` on a pretended GPU; prints what replays and refusals come to, as JSON."""

from __future__ import annotations

import json

import numpy as np
import simulated_gpu
from PIL import Image

from octopus import InputError, images, set_num_threads
from octopus.arrays import streams
from octopus.backends.cuda.memory import DeviceArray
from octopus.images import cuda, packing, upload
from octopus.images.cuda import CudaEngine, SimpleKernel

gpu = simulated_gpu.install()
ROWS = {"patch": 2, "merge": 1, "temporal": 1, "order": "PPC"}
WIDE = [(2, 8)]  # four rows, in as many blocks as the two of NARROW
NARROW = [(2, 4)]


def on_gpu(*side):
    return [simulated_gpu.OnGpu(gpu, np.full((*side, 3), 200, np.uint8))]


def refused(call, *given, **named):
    """The words of the error that a call ends with; none if it goes through."""
    try:
        call(*given, **named)
    except InputError as error:
        return str(error)
    return ""


def captured(plan, given, sizes, **named):
    gpu.work.clear()
    gpu.capturing = True
    try:
        return plan.run(given, sizes, **named)
    finally:
        gpu.capturing = False


def rows_behind_out():
    """An update to more rows than a captured `out` has."""
    room, given = DeviceArray((4, 12), np.float32), on_gpu(2, 8)
    there = gpu.pointed(room.pointer, np.float32)._ary
    there[:] = -1
    plan = images.ImagePlan("patch_rows", given, 4, result_rows=16, **ROWS)
    captured(plan, given, NARROW, out=room.head(2))
    words = refused(plan.update, given, WIDE)
    gpu.replay()
    return {"more-rows": words, "rows-written": (there.reshape(4, 12) != -1).any(axis=1).tolist()}


def second_capture():
    """A second capture from one plan, and the first graph after that."""
    given = on_gpu(2, 8)
    plan = images.ImagePlan("patch_rows", given, 4, result_rows=16, **ROWS)
    found, _ = captured(plan, given, NARROW)
    first = gpu.work[:]
    words = refused(captured, plan, on_gpu(4, 8), WIDE)
    gpu.pointed(found.pointer, np.float32)._ary[:] = -1
    for do in first:
        do()
    filled = gpu.pointed(found.pointer, np.float32)._ary.reshape(-1, 12)[:4]
    return {"second-capture": words, "first-graph": (filled == 200).all(axis=1).tolist()}


def without_memory():
    """Where the answer of an update lies, of a run that was captured with `out`."""
    own, given = DeviceArray((4, 12), np.float32), on_gpu(2, 8)
    results = {}
    for allocate in (False, True):
        plan = images.ImagePlan("patch_rows", given, 4, result_rows=16, allocate=allocate, **ROWS)
        captured(plan, given, WIDE, out=own)
        found = [plan.update(given, sizes)[0] for sizes in (NARROW, WIDE)]
        results[f"update-{allocate}"] = [[one.pointer == own.pointer, list(one.shape)] for one in found]
    return results


def loaded_kernels():
    """How often the kernel that pads is loaded by a plan with padding, without, and by a captured run."""
    counts, load, given, found = [], cuda._padding_kernel, on_gpu(2, 8), []
    cuda._padding_kernel = lambda *given: counts.append(given) or load(*given)
    for room in ({"result_rows": 16}, {"max_rows": 8}):
        plan = images.ImagePlan("patch_rows", given, 4, **room, **ROWS)
        found.append(len(counts))
    captured(plan, given, WIDE)
    return {"loaded": [*found, len(counts)]}


def other_library():
    """A plan for one library's arrays that is given another's."""
    plan = images.ImagePlan("patch_rows", on_gpu(2, 8), 4, result_rows=16, **ROWS)
    own = [DeviceArray((2, 8, 3), np.uint8)]
    return {"other-library": [refused(plan.run, own, WIDE), refused(plan.run, on_gpu(2, 8), WIDE)]}


def other_gpu():
    """A plan for images of torch on one GPU that is given some on another."""
    plan = images.ImagePlan(
        "patch_rows", [gpu.tensor(np.zeros((2, 8, 3), np.uint8))], 4, result_rows=16, **ROWS
    )
    there = simulated_gpu.fake_torch.Tensor(np.zeros((2, 8, 3), np.uint8), "cuda:1")
    return {"other-gpu": refused(plan.run, [there], WIDE)}


def failed_launches():
    """How often a slot is said to be in use by calls whose launch fails behind the upload: without and with a plan."""
    counts, given, record = [], on_gpu(2, 8), gpu.stream.record
    plan = images.ImagePlan("patch_rows", given, 4, result_rows=16, **ROWS)
    for call in (lambda: images.patch_rows(given, WIDE, **ROWS), lambda: plan.run(given, WIDE)):
        recorded = []
        gpu.statuses, gpu.stream.record = {"launch": 700}, recorded.append
        try:
            call()
        except RuntimeError:
            counts.append(len(recorded))
    gpu.statuses, gpu.stream.record = {}, record
    return {"failed-launches": counts}


def streams_of_out():
    """On which streams calls work that write an `out` of torch, and what torch is told of theirs.

    Images come from the host, and `stream` is not given; then they lie on the GPU, and it is.
    """
    names, copy, log, gpu.current = {0: "default", 7: "own", 9: "side"}, gpu.copy, [], 7
    upload.memory.copy = lambda *given: log.append(f"copy {names[given[3].handle]}") or copy(*given)
    DeviceArray.release_on = lambda array, stream: log.append(f"release {names[stream.handle]}")
    streams.used_on = lambda array, stream: log.append(f"used {names[stream.handle]} {array is out}")
    out, plain, results = gpu.tensor(np.zeros((1, 3, 6, 6), np.float32)), [np.zeros((2, 8, 3), np.uint8)], {}
    options = {"size": 6, "letterbox": True}
    for name, given, more in (("host", plain, {}), ("gpu", on_gpu(2, 8), {"stream": gpu.stream_of(9)})):
        pixels = {"source_pixels": 16} if name == "host" else {}
        plan = images.ImagePlan("resize", given, 2, device="cuda", **pixels, **options)
        log.clear()
        images.resize(given, out=out, device="cuda", **more, **options)
        results[f"{name}-call"] = log[:]
        log.clear()
        plan.run(given, out=out, **more)
        results[f"{name}-plan"] = log[:]
    return results


def uploads_in_stretches():
    """How many copies bring images of the host and their table, and whether the answer is the CPU's."""
    generator, kept = (
        np.random.default_rng(4),
        (upload.STRETCH_BYTES, packing.PIECE_BYTES, packing.THREAD_BYTES),
    )
    given = [generator.integers(0, 256, (*side, 3), np.uint8) for side in ((2, 8), (9, 4), (5, 5))]
    right, results, threads = images.resize(given, size=6), {}, set_num_threads(1)
    try:
        for least in (1 << 20, 1):
            upload.STRETCH_BYTES, packing.PIECE_BYTES, packing.THREAD_BYTES = least, 40, 40
            turned = [np.moveaxis(np.moveaxis(image, 2, 0).copy(), 0, 2) for image in given]  # in planes
            answer = images.resize(turned, size=6, device="cuda")
            results[f"planes-{least}"] = float(np.abs(at(answer) - right).max())
            gpu.uploads.clear()
            answer = images.resize(given, size=6, device="cuda")
            error = float(np.abs(at(answer) - right).max())
            results[f"stretches-{least}"] = [len(gpu.uploads), sum(gpu.uploads), error]
            mixed = [Image.fromarray(given[0]), given[1], Image.fromarray(given[2])]
            answer = images.resize(mixed, size=6, device="cuda")
            results[f"pillow-{least}"] = float(np.abs(at(answer) - right).max())
        locked = packing.Packing.page_locked
        packing.Packing.page_locked = lambda self, sources: True
        gpu.uploads.clear()
        answer = images.resize(given, size=6, device="cuda")
        packing.Packing.page_locked = locked
        results["page-locked"] = [gpu.uploads[1:], float(np.abs(at(answer) - right).max())]
    finally:
        upload.STRETCH_BYTES, packing.PIECE_BYTES, packing.THREAD_BYTES = kept
        set_num_threads(threads)
    return results


class Backwards(SimpleKernel):
    """The simple kernel on a table from the last image to the first, and how often it was made ready."""

    made = 0

    def prepare(self, table, like=None):
        Backwards.made += 1
        table[:] = table[::-1].copy()
        return super().prepare(table, like)


def runs_that_are_alike():
    """Whether runs that differ in addresses alone answer as the CPU does, in any order of the table's records."""
    generator, results = np.random.default_rng(3), {}
    options = {"size": 6, "letterbox": True, "channels": "BGR"}
    given = [
        [generator.integers(0, 256, (*side, 3), np.uint8) for side in ((2, 8), (9, 4))] for _ in range(2)
    ]
    for name, lying in (("host", given), ("gpu", [[simulated_gpu.OnGpu(gpu, a) for a in b] for b in given])):
        pixels = {"source_pixels": 64} if name == "host" else {}
        plan = images.ImagePlan("resize", lying[0], 2, device="cuda", **pixels, **options)
        found = []
        for backwards in (False, True):
            if backwards:
                plan.engine = CudaEngine(plan.spec, (Backwards(plan.spec),))
            for there, here in zip(lying, given, strict=True):
                answers = zip(plan.run(there), images.resize(here, **options), strict=True)
                found += [float(np.abs(at(one) - other).max()) for one, other in answers]
        results[f"alike-{name}"] = max(found)
    kernels_of, cuda.kernels_of, found = cuda.kernels_of, lambda spec: (Backwards(spec),), []
    for here in given:
        tensors, swapped = list(map(gpu.tensor, here)), {"channels": "BGR"}
        found.append(
            np.abs(images.resize(tensors, 6, **swapped).array - images.resize(here, 6, **swapped)).max()
        )
    cuda.kernels_of = kernels_of
    return results | {"alike-calls": [*map(float, found), len(gpu.copies)], "made-ready": Backwards.made}


def producers():
    """For which streams calls wait that are alike, but for the stream on which their images are written."""
    found, given = [], on_gpu(2, 8)
    for handle in (11, 12):
        given[0].interface = {"stream": handle}
        gpu.stream.waits.clear()
        images.resize(given, 6)
        found.append(sorted(set(gpu.stream.waits)))
    return {"producers": found}


def at(array):
    """A result where it lies."""
    return gpu.pointed(array.pointer, array.dtype)._ary[: int(np.prod(array.shape))].reshape(array.shape)


def main():
    parts = (
        rows_behind_out, second_capture, without_memory, loaded_kernels, other_library, other_gpu, failed_launches,
        runs_that_are_alike, producers, uploads_in_stretches, streams_of_out,
    )  # fmt: skip
    results = {name: found for part in parts for name, found in part().items()}
    assert not gpu.errors, gpu.errors
    print(json.dumps(results))


if __name__ == "__main__":
    main()
