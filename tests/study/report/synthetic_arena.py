"""Made-up rows of the study `arena`. No value here was measured."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from synthetic_blocks import again, timed

from octopus_study.measure.rows import Case, Row, unavailable

IN_SERIES = ("octopus", "octopus-image", "cvcuda", "roi-align", "dali-pipeline")
COUNTS = {"gpu": (28, 100, 1000, 5000), "cpu": (28, 100, 1000)}
PIPELINE_MOST = 1000
QUANTITIES = {
    "device": "crop_resize_normalize", "host": "end_to_end", "pipelined": "end_to_end", "pipeline": "end_to_end",
}  # fmt: skip
MEBIBYTE = 2**20
OUTPUT_BYTES = 3 * 224 * 224 * 4
PADDED = "different: resizes the padded image, not the crop"
ROUNDED = "different: rounds to uint8 between its two passes"
NO_EVENTS = "its device work can't be seen by events on the default stream"
NO_TENSORRT = "TensorRT is not installed"
GPU_ONLY = (
    "cvcuda",
    "cvcuda-views",
    "cvcuda-scalar",
    "dali",
    "dali-pipeline",
    "dali-slice",
    "tensorrt-padded",
    "tensorrt-gridsample",
)
# Method -> (device ms per box, device ms fixed, host ms per box, host ms fixed, answer); NaN: no such layer.
NONE = float("nan")
GPU = {
    "octopus": (1.5e-4, 0.004, 1.6e-4, 0.045, "same"),
    "octopus-one-call": (NONE, NONE, 1.7e-4, 0.09, "same"),
    "octopus-fp16": (0.9e-4, 0.004, 1.0e-4, 0.045, "same"),
    "published": (1.57e-3, 0.01, 2.6e-3, 0.1, ROUNDED),
    "n-launches": (NONE, NONE, 6.4e-2, 0.1, ROUNDED),
    "n-launches-fused": (NONE, NONE, 9e-3, 0.05, "same"),
    "opencv": (NONE, NONE, NONE, NONE, "same"),
    "octopus-image": (1.6e-4, 0.004, 1.7e-4, 0.047, "same"),
    "roi-align": (2.0e-3, 0.01, 2.1e-3, 0.08, "same"),
    "grid-sample": (4.1e-3, 0.1, 4.3e-3, 0.3, "same"),
    "padded-torch": (1.7e-3, 0.02, 0.3, 0.5, PADDED),
    "padded-onnxruntime": (NONE, NONE, 0.31, 0.6, PADDED),
    "onnxruntime-gridsample": (NONE, NONE, 5e-3, 0.4, "same"),
    "cvcuda": (3.1e-4, 0.005, 1.85e-2, 0.1, "same"),
    "cvcuda-views": (3.3e-4, 0.005, 3.1e-3, 0.1, "same"),
    "cvcuda-scalar": (2.2e-4, 0.004, 1.83e-2, 0.1, "different: one scale and one offset for all channels"),
    "dali": (NONE, NONE, 2.1e-2, 1.0, "same"),
    "dali-pipeline": (NONE, NONE, 1.0e-2, 0.8, "same"),
    "dali-slice": (NONE, NONE, 2.4e-2, 1.2, "same"),
    "tensorrt-padded": (3e-4, 0.01, 0.3, 0.4, PADDED),
    "tensorrt-gridsample": (2e-3, 0.02, 2.2e-3, 0.2, "same"),
}
CPU = {
    "octopus": (0.15, 0.1, "same"),
    "octopus-one-call": (0.15, 0.3, "same"),
    "octopus-fp16": (0.16, 0.1, "same"),
    "published": (0.62, 0.2, ROUNDED),
    "n-launches": (0.64, 0.2, ROUNDED),
    "n-launches-fused": (0.16, 0.1, "same"),
    "octopus-image": (0.15, 0.1, "same"),
    "opencv": (0.55, 0.1, "same"),
    "opencv-inplace": (0.5, 0.1, "same"),
    "opencv-table": (0.4, 0.1, "same"),
    "opencv-table-threads": (0.2, 0.1, "same"),
    "padded-onnxruntime": (2.5, 1.0, PADDED),
}
BYTES = {"uint8": "opencv-split", "uint8-nhwc": "opencv-direct", "antialias": "pillow-simd"}
NO_PILLOW = "Pillow is not installed: Pillow 9.5.0.post2 is, and one takes the other's place"
BOUNDS = {"write-bound": (1.31e-4, 0.0015), "write-bound-fp16": (0.66e-4, 0.0015)}
# Milliseconds of each step on the VisDrone boxes and on large ones, and of each kind of result.
LADDER = {
    "two-passes": (1.58, 1.9),
    "one-pass": (0.27, 0.42),
    "streamed": (0.19, 0.33),
    "prefetched": (0.175, 0.33),
    "paired": (0.16, 0.29),
    "octopus": (0.154, 0.24),
    "write-bound": (0.1325, 0.1325),
}
KINDS = {
    "octopus": 0.154,
    "octopus-nhwc": 0.156,
    "octopus-fp16": 0.094,
    "octopus-fp16-nhwc": 0.1,
    "octopus-uint8": 0.08,
    "octopus-uint8-nhwc": 0.075,
    "octopus-letterbox": 0.17,
    "octopus-image": 0.155,
    "write-bound": 0.1325,
    "write-bound-fp16": 0.0675,
    "write-bound-uint8": 0.035,
}
# Milliseconds of kernels, by workload: of what Octopus makes of other inputs, and of a count that the GPU knows.
NV12 = {
    "octopus": (1.6e-4, 0.005), "octopus-rgb": (1.5e-4, 0.004), "octopus-converted": (1.5e-4, 0.009),
    "roiconvert": (4.8e-4, 0.006), "cuframe": (6.0e-4, 0.004), "write-bound": (1.31e-4, 0.0015),
}  # fmt: skip
WARP = {"octopus": (2.2e-4, 0.005), "affine-grid": (4.1e-3, 0.1), "write-bound": (1.31e-4, 0.0015)}
VIDEO_ROUNDED = "different: largest error 2 exceeds 0.004; rounds to uint8 when it converts"
COUNTED = {"octopus": (1.5e-4, 0.006), "octopus-graph": (1.5e-4, 0.005), "octopus-known": (1.5e-4, 0.004)}
SUBMIT = {"octopus": 0.011, "octopus-torch": 0.013}


def arena(kind: str, dataset: str, tensorrt: bool = False) -> Iterator[Row]:
    """Yield the rows of the arena study; without `tensorrt` its methods are unavailable."""
    rng = np.random.default_rng(3)
    for workload, side in (("uniform", 256), ("visdrone", 50)):
        for n in COUNTS[kind]:
            case = Case("arena", dataset, workload, n)
            yield from padding(case, n * 3 * side**2, n * 3 * (side**2 if side == 256 else 312 * 313))
            yield from (gpu(rng, case, tensorrt) if kind == "gpu" else cpu(rng, case))
    if kind == "cpu":
        laws = {method: CPU[method] for method in ("octopus", "opencv", "opencv-inplace", "opencv-table")}
        yield from series(rng, Case("arena", dataset, "visdrone-1thread", 1000), "host", laws)
        for workload in ("visdrone", "uniform", "large"):
            yield from byte_crops(rng, dataset, workload)
    if kind == "gpu":
        yield from kernel(rng, dataset, tensorrt)
        yield from roads(rng, dataset)
        yield from counts(rng, dataset)
    yield from inputs(rng, dataset, kind, tensorrt)
    yield from memory(Case("arena", dataset, "visdrone", 1000), kind, tensorrt)


def byte_crops(rng: np.random.Generator, dataset: str, workload: str) -> Iterator[Row]:
    """Yield the other kinds of results on one thread of a pretended CPU."""
    for kind, rival in BYTES.items():
        case = Case("arena", dataset, f"{workload}-{kind}-1thread", 1000)
        laws = {"octopus": (0.01, 0.1, "same"), rival: (0.03, 0.1, "same")}
        yield from series(rng, case, "host", laws)
        if rival == "pillow-simd":
            yield unavailable(case, "pillow", "host", "end_to_end", "ms", NO_PILLOW)


def kernel(rng: np.random.Generator, dataset: str, torch: bool) -> Iterator[Row]:
    """Yield the steps of the kernel, its kinds of results, and what a call costs; without `torch` not in its
    tensors."""
    for index, workload in enumerate(("ladder", "ladder-large")):
        case = Case("arena", dataset, workload, 1000)
        laws = {step: (0.0, times[index], "same") for step, times in LADDER.items()}
        laws["two-passes"] = (*laws["two-passes"][:2], ROUNDED)
        yield from series(rng, case, "device", laws)
    laws = {kind: (0.0, time, "same") for kind, time in KINDS.items()}
    yield from series(rng, Case("arena", dataset, "kinds", 1000), "device", laws)
    for n in COUNTS["gpu"][:3]:
        case = Case("arena", dataset, "visdrone", n)
        times = {name: time for name, time in SUBMIT.items() if torch or name != "octopus-torch"}
        yield from timed(rng, case, "host", "submit", again(times), "n/a")
        alone = again({"octopus": 0.05, "octopus-one-call": 0.06})
        yield from timed(rng, case, "host", "end_to_end_alone", alone, "n/a")
        if not torch:
            yield unavailable(case, "octopus-torch", "host", "submit", "ms", "PyTorch is not installed")
    case = Case("arena", dataset, "visdrone", COUNTS["gpu"][0])
    yield from timed(rng, case, "host", "submit_call", again({"octopus": 0.03, "octopus-cupy": 0.05}), "n/a")
    yield unavailable(case, "octopus-dlpack", "host", "submit_call", "ms", "PyTorch is not installed")


def roads(rng: np.random.Generator, dataset: str) -> Iterator[Row]:
    """Yield roads beside their bounds."""
    for workload, n, times in (
        ("road-float32", 28, {"octopus": 0.010, "write-bound": 0.008}),
        ("road-float32", 1000, {"octopus": 0.154, "write-bound": 0.139}),
        ("road-frames", 16, {"octopus": 0.05, "write-bound": 0.04}),
    ):
        case = Case("arena", dataset, workload, n)
        answers = {"write-bound": "n/a"}
        yield from answered(timed(rng, case, "device", "kernel", again(times)), answers)


def inputs(rng: np.random.Generator, dataset: str, kind: str, torch: bool) -> Iterator[Row]:
    """Yield frames of video, and affine maps."""
    if kind == "cpu":
        for workload, n in (("nv12-1thread", 28), ("warp-1thread", 100)):
            times = {"octopus": 0.2 * n, "opencv-table": 0.3 * n}
            yield from timed(rng, Case("arena", dataset, workload, n), "host", "kernel", again(times))
        return
    for workload, n, laws in (*(("nv12", n, NV12) for n in COUNTS["gpu"][:3]), ("warp", 1000, WARP)):
        case = Case("arena", dataset, workload, n)
        times = {name: a * n + b for name, (a, b) in laws.items() if torch or name != "affine-grid"}
        yield from answered(
            timed(rng, case, "device", "kernel", again(times)),
            {"roiconvert": VIDEO_ROUNDED, "write-bound": "n/a"},
        )
        if len(times) < len(laws):
            yield unavailable(case, "affine-grid", "device", "kernel", "ms", "PyTorch is not installed")


def counts(rng: np.random.Generator, dataset: str) -> Iterator[Row]:
    """Yield launches for as many of 1000 boxes as the GPU knows to count."""
    for counting in (0, *COUNTS["gpu"][:3]):
        case = Case("arena", dataset, f"count-{counting}", 1000)
        times = {name: a * counting + b for name, (a, b) in COUNTED.items()}
        yield from timed(rng, case, "device", "kernel", again(times))
        yield from timed(rng, case, "host", "submit", again({"octopus": 0.011, "octopus-graph": 0.004}))
        whole = {"octopus": 0.03, "octopus-graph": 0.02, "octopus-read-back": 0.05}
        yield from timed(rng, case, "host", "end_to_end_alone", again(whole))
        for method in whole:
            yield case.row(method, "deterministic", "host_waits", "count", float(method.endswith("back")))


def answered(rows: Iterator[Row], answers: dict[str, str]) -> Iterator[Row]:
    """Give methods other answers than the right one."""
    for row in rows:
        yield row._replace(answer=answers.get(row.method, row.answer))


def padding(case: Case, actual: int, padded: int) -> Iterator[Row]:
    """Yield what padding wastes."""
    for quantity, unit, value in (
        ("actual_bytes", "bytes", actual),
        ("padded_bytes", "bytes", padded),
        ("padding_waste", "fraction", 1 - actual / padded),
    ):
        yield case.row("padding", "deterministic", quantity, unit, value)


def gpu(rng: np.random.Generator, case: Case, tensorrt: bool) -> Iterator[Row]:
    """Yield the layers of a pretended GPU."""
    here = {name: law for name, law in GPU.items() if tensorrt or not name.startswith("tensorrt")}
    device = {name: (a, b, answer) for name, (a, b, _, _, answer) in here.items() if a == a}
    host = {name: (a, b, answer) for name, (_, _, a, b, answer) in here.items() if a == a}
    pipeline = {name: (a + 0.012, b + 0.3, answer) for name, (a, b, answer) in host.items()}
    pipeline["opencv"] = (0.55, 0.3, "same")
    pipelined = {name: host[name] for name in IN_SERIES if name in host}
    bounds = {name: (a, b, "n/a") for name, (a, b) in BOUNDS.items()}
    layers = {"device": device | bounds, "host": host, "pipelined": pipelined, "pipeline": pipeline}
    for layer, laws in layers.items():
        reasons = {name: NO_EVENTS for name in here if name not in laws and layer != "pipelined"}
        reasons |= dict.fromkeys(set(GPU) - set(here), NO_TENSORRT)
        if "opencv" in reasons:
            reasons["opencv"] = "works on the host"
        if layer == "pipeline" and case.n > PIPELINE_MOST:
            reasons |= dict.fromkeys(here, "results of more than 1000 boxes are not brought back")
        else:
            yield from series(rng, case, layer, laws)
        for method in sorted(reasons):
            yield unavailable(case, method, layer, QUANTITIES[layer], "ms", reasons[method])


def cpu(rng: np.random.Generator, case: Case) -> Iterator[Row]:
    """Yield the one layer of a pretended CPU."""
    yield from series(rng, case, "host", CPU)
    for method in ("roi-align", "grid-sample", "padded-torch"):
        yield unavailable(case, method, "host", "end_to_end", "ms", "torch is not installed")
    for method in GPU_ONLY:
        yield unavailable(case, method, "host", "end_to_end", "ms", "works on NVIDIA GPUs alone")


def series(
    rng: np.random.Generator, case: Case, layer: str, laws: dict[str, tuple[float, float, str]]
) -> Iterator[Row]:
    """Yield paired blocks of all methods, Octopus twice."""
    quantity = QUANTITIES[layer]
    times = again({name: a * case.n + b for name, (a, b, _) in laws.items()})
    answers = again({name: answer for name, (*_, answer) in laws.items()})
    for row in timed(rng, case, layer, quantity, times):
        answer = answers[row.method].replace(
            "different: ", f"different: largest error 0.{case.n} exceeds 0.004; "
        )
        yield row._replace(answer=answer)
    yield case.row(quantity, layer, "discarded_blocks", "count", 0)


def memory(case: Case, kind: str, tensorrt: bool) -> Iterator[Row]:
    """Yield the four lines of memory of every method."""
    output = case.n * OUTPUT_BYTES
    extra = {
        "octopus": 0,
        "octopus-fp16": -output // 2,
        "published": output // 4,
        "tensorrt-padded": 4 * output,
    }
    for method in GPU if kind == "gpu" else CPU:
        if method.startswith("tensorrt") and not tensorrt:
            for line in ("payload", "allocator_peak", "device_delta", "fixed"):
                yield unavailable(case, method, "memory", f"memory_{line}", "bytes", NO_TENSORRT)
            continue
        payload = 1920 * 1080 * 3 + output // (2 if method.endswith("fp16") else 1) + 16 * case.n
        grown = 1920 * 1080 * 3 + output + extra.get(method, output // 8) + 65536
        fixed = (500 + 7 * len(method)) * MEBIBYTE
        for line, value in (("payload", payload), ("device_delta", grown), ("fixed", fixed)):
            yield case.row(method, "memory", f"memory_{line}", "bytes", value)
        if method in ("roi-align", "grid-sample", "padded-torch"):
            yield case.row(method, "memory", "memory_allocator_peak", "bytes", grown + output)
        else:
            why = "the method has no allocator of its own"
            yield unavailable(case, method, "memory", "memory_allocator_peak", "bytes", why)
