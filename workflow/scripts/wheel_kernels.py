"""Compile what a wheel carries into octopus/kernels/shipped: the kernels that README, docs and integrations reach.

    python workflow/scripts/wheel_kernels.py [--jobs=N] [PART OF A NAME ...]

It takes a CUDA toolkit, but no GPU. Kernels that are the same for both compute capabilities are kept once.
"""

import os
import re
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from typing import Any
from unittest.mock import patch

import numpy as np

from octopus import NV12, blockmap
from octopus.arrays.launch import launcher
from octopus.backends import cache, shipped
from octopus.backends.cpu import compile as cpu
from octopus.backends.cuda import compile
from octopus.crop import cuda as launch
from octopus.crop import spec
from octopus.crop.frame import frame_view
from octopus.crop.spec import CropOptions
from octopus.images import cuda, upload
from octopus.images.spec import make_spec
from octopus.integrations import rapidocr
from octopus.kernels.arguments import ITEM
from octopus.kernels.cuda import ragged_tiles, tile_grid
from octopus.ragged import plan as ragged
from octopus.tiles import api as tiles

PLAIN, BOXED, SMOOTH = {}, {"letterbox": True}, {"antialias": True}
OPTIONS = (PLAIN, BOXED, SMOOTH, BOXED | SMOOTH)
CACHES = (
    launch._kernel, launch._varied_kernel, cuda.kernel_for, ragged._cuda_kernel, tiles._cuda_kernel, rapidocr._kernel,
)  # fmt: skip
VERSION = "8.0"  # of PTX: all that the kernels use is older, and drivers from 525 on take it
EVEN, ODD = 64, 65  # widths of frames whose rows begin at multiples of four bytes, and of others


def crops(capability: tuple[int, int]) -> None:
    """Ask for the kernels of crops."""
    frames = {width: np.zeros((4, width, 3), np.uint8) for width in (EVEN, ODD)}
    several = np.zeros((2, 4, EVEN, 3), np.uint8)
    plane = NV12(np.zeros((4, EVEN), np.uint8), np.zeros((2, EVEN), np.uint8), matrix="bt709", range="limited")
    for options, dtype, layout in product(OPTIONS, ("float32", "float16", "uint8"), ("NCHW", "NHWC")):
        scaled = {"scale": 1, "mean": 0.5, "std": 0.5} if dtype != "uint8" else {"scale": 1}
        for width, frame in frames.items():
            crop(frame, dtype=dtype, layout=layout, **options, **scaled)
            if layout == "NCHW" and width == EVEN and dtype != "uint8":
                crop(frame, dtype=dtype, channels="BGR", **options, **scaled)
        if layout == "NCHW":
            crop(several, dtype=dtype, **options, **scaled)
    for options in OPTIONS:
        crop(frames[EVEN], dtype="bfloat16", **options)
        if not options.get("antialias"):
            for dtype in ("float32", "float16"):
                crop(plane, dtype=dtype, **options)
    for items in (("counted",), ("flipped",), ("own",)):
        crop(frames[EVEN], items=items)
    for filter in ("nearest", "bicubic"):
        crop(frames[EVEN], filter=filter)
    crop(np.zeros((4, EVEN, 1), np.uint8), dtype="uint8", filter="nearest")
    for dtype, layout in (("float32", "NCHW"), ("float16", "NCHW"), ("uint8", "NCHW"), ("uint8", "NHWC")):
        for kind, width in (("boxes", EVEN), ("boxes", ODD), ("quads", EVEN)):
            own_sizes(frames[width], kind, dtype=dtype, layout=layout, scale=1)
    for filter in ("bilinear", "bicubic"):
        crop(frames[EVEN], filter=filter, maps=True)


def crop(frame: Any, items: tuple[str, ...] = (), maps: bool = False, **options: Any) -> None:
    """Ask for the kernels of one kind of frame and options: for a few boxes from the host, and float32 on the GPU."""
    found = frame_view(frame)
    made = spec.make_spec(found, CropOptions(**options))
    if maps or not made.kernel.streams:
        launcher = launch.PlainLauncher(made, maps=maps)
        launcher.kernel(found, 0, launch.Variant("float32", items=items))
        return
    for boxes in (launch.INSIDE, "float32"):
        launcher = launch.StreamLauncher(made, processors=132, l2_bytes=50 << 20)
        launcher.kernel(found, 0, launch.Variant(boxes, items=items))


def own_sizes(frame: Any, kind: str, **options: Any) -> None:
    """Ask for the kernel of items with sizes of their own, float32 boxes or quadrilaterals."""
    found, table = frame_view(frame), np.zeros(1, ITEM)
    table["width"], table["pitch"] = frame.shape[1], frame.shape[1] * frame.shape[2]
    engine = launch.ItemsEngine(spec.make_spec(found, CropOptions(**options)), kind, blockmap.DEFAULT, None)
    engine.kernel(table, 0, "float32")


def images(capability: tuple[int, int]) -> None:
    """Ask for the kernels of whole images: what the processors of transformers and the detectors' packages ask for."""
    usual = {"mean": 0.5, "std": 0.5, "scale": 255, "antialias": True}
    batch = {"operation": "resize", "size": 224}
    rows = {"operation": "patch_rows", "filter": "bicubic"}
    navit = {"operation": "patch_rows", "order": "PPC", "patch": 16, "filter": "bilinear"}
    calls = []
    for rounding in ("none", "uint8", "torch", "pillow"):
        for dtype in ("float32", "float16", "bfloat16"):
            calls += [{**batch, "filter": filter} for filter in ("bilinear", "bicubic")]
            calls += [{**rows, "patch": 14}, {**rows, "patch": 16}, navit]
            for call in calls[-5:]:
                call |= {"rounding": rounding, "dtype": dtype}
        calls.append({**batch, "filter": "lanczos", "rounding": rounding, "dtype": "float32"})
    for dtype, layout in product(("float32", "uint8"), ("NCHW", "NHWC")):
        each = {"operation": "resize_each", "layout": layout, "dtype": dtype, "filter": "bilinear", "rounding": "none"}
        calls.append({**each, **({"scale": 1, "mean": None, "std": None} if dtype == "uint8" else {})})
    for dtype, patch_side in product(("float16", "bfloat16"), (14, 16)):
        folded = {**rows, "patch": patch_side, "temporal": 1, "row_multiple": 8, "rounding": "uint8"}
        calls.append({**folded, "dtype": dtype, "scale": 1, "mean": 128, "std": 1})
    for dtype in ("float32", "float16"):
        calls.append({**batch, "filter": "bilinear", "rounding": "uint8", "dtype": dtype, "antialias": False})
        calls.append({**batch, "filter": "bilinear", "rounding": "none", "dtype": dtype, "antialias": False})
    for call in calls:
        options = usual | call
        made = make_spec("uint8", 3, options.pop("operation"), **options)
        tensor = cuda.kernel_of(made) is not None and capability >= cuda.TENSOR_CAPABILITY
        kernel = cuda.TensorKernel(made) if tensor else cuda.SimpleKernel(made)
        cuda.kernel_for(capability, *kernel.built)
    for dtype in ("float32", "bfloat16"):
        cuda.kernel_for(capability, *cuda.padding_built(dtype))


def others(capability: tuple[int, int]) -> None:
    """Ask for the kernels of ragged batches and of tiles, by the default strategy."""
    pointwise = ("multiply", "normalize", "threshold")
    for operation, dtype, total in product(pointwise, ("float32", "uint8"), (10**5, 10**8)):
        shape = ragged_tiles.shape_for(operation, "block_search", dtype, total, 100, 132)
        result = ragged_tiles.result_dtype(operation, dtype)
        ragged._cuda_kernel(ragged_tiles.Kind(operation, "block_search", dtype, result, "int32", *shape), capability)
    rapidocr._kernel(capability)
    for dtype, nodata in product(("uint8", "uint16"), (False, True)):
        tiles._cuda_kernel(tile_grid.Kind(dtype, "int32", nodata), capability)


def asked(capability: tuple[int, int]) -> dict[str, compile.Build]:
    """All kernels for a compute capability."""
    for cached in CACHES:  # what was asked for before is asked for again
        cached.cache_clear()
    with compile.listed() as found, patch.object(launch, "compute_capability", lambda: capability):
        for ask in (crops, images, others):
            ask(capability)
    return found


def share(part: int, parts: int, wanted: list[str]) -> list[tuple[str, str]]:
    """The PTX of every `parts`-th kernel, by `shipped.key`."""
    made: list[tuple[str, str]] = []
    older: set[str] = set()
    for capability in shipped.CAPABILITIES:
        names = asked(capability)
        # Kernels differ between GPUs by how they make small floats alone.
        new = [name for name in sorted(names) if name not in older or "float16" in name]
        for name in [name for name in new if all(word in name for word in wanted)][part::parts]:
            key = shipped.key(name, capability)
            file = f"cuda-{cache.kernel_digest('cuda')}/{key}.ptx"
            ptx = cache.load(file)
            if ptx is None:  # a run that is repeated goes on where it stopped
                ptx = compile.to_ptx(names[name](), capability)
                cache.store(file, ptx)
                print(key, flush=True)
            made.append((key, re.sub(r"^\.version .*", f".version {VERSION}", ptx, flags=re.MULTILINE)))
        older |= set(names)
    return made


def host_code() -> dict[str, bytes]:
    """Object code of what a launch on a GPU needs of the host."""
    made: dict[str, bytes] = {}

    def record(name: str, build: Any, entry: Any = None) -> Any:
        made[name] = cpu.to_object(build(), entry() if entry else "", shipped.MACHINE)

    launcher.cache_clear()
    with patch.object(cpu, "load", record):
        launcher()
        for name in ("survey", "number"):
            cuda.host_kernel(name)
        upload.packing_kernel()
    launcher.cache_clear()  # it has kept that nothing was loaded
    return made


def main(*words: str) -> None:
    """Write the folder anew."""
    jobs = next((int(word.partition("=")[2]) for word in words if word.startswith("--jobs=")), os.cpu_count() or 1)
    wanted = [word for word in words if not word.startswith("--")]
    shutil.rmtree(shipped.FOLDER, ignore_errors=True)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        parts = pool.map(share, range(jobs), [jobs] * jobs, [wanted] * jobs)
        kernels = dict(pair for part in parts for pair in part)
    shipped.save(shipped.FOLDER, kernels, host_code())
    size = sum(path.stat().st_size for path in shipped.FOLDER.iterdir())
    print(f"{len(kernels)} kernels in {shipped.FOLDER}, {size / 2**20:.2f} MiB")


if __name__ == "__main__":
    main(*sys.argv[1:])
