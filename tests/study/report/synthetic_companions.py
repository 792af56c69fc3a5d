"""Made-up rows of the studies `concurrency` and `image_shape`. No value here was measured.

Times follow from those of the two models alone and a share that hides, memory from the pixels of what runs whole, so
that the tests know what the report must find.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from synthetic_blocks import again, timed

from octopus_study.measure.rows import Case, Row, unavailable

NO_TORCH = "PyTorch is not installed (pip install -e './workflow[models]')"
ODOMETRY, MATCHING = 22.0, 31.0  # ms alone
# Share of the shorter model that each way hides, and what the makespan has besides.
HIDDEN = {
    "sequential": (0.0, 0.2),
    "sequential-again": (0.0, 0.2),
    "two-streams": (-0.12, 0.2),
    "two-threads": (-0.2, 0.4),
    "pipeline": (0.01, 0.1),
    "no-prefetch": (0.0, 1.4),
    "prefetch": (0.0, 0.3),
    "two-processes": (-0.05, 0.8),
    "two-processes-mps": (0.55, 0.6),
}
# Share of the time with a kernel, what a kernel runs in ms, and the share of that which fills the GPU.
TRACES = {
    "visual-odometry-alone": (0.8, 17.6, 0.75),
    "satellite-matching-alone": (0.94, 29.45, 0.8),
    "sequential": (0.82, 47.05, 0.78),
    "two-streams": (0.86, 46.0, 0.79),
    "prefetch": (0.84, 47.0, 0.78),
}
TRACED = (0.99, 1.0, 1.01)


def concurrency(kind: str, dataset: str, mps: bool = True) -> Iterator[Row]:
    """Yield the rows of two models on one GPU; a CPU has neither PyTorch nor a GPU."""
    case = Case("concurrency", dataset, "two-models", 2)
    alone = {"visual-odometry-alone": ODOMETRY, "satellite-matching-alone": MATCHING}
    if kind == "cpu":
        for arm in (*alone, *HIDDEN):
            yield unavailable(case, arm, "host", "makespan", "ms", NO_TORCH)
        for method in ("process", "process-mps"):
            yield unavailable(case, method, "memory", "process_context", "bytes", NO_TORCH)
        return
    rng = np.random.default_rng(11)
    yield from timed(rng, case, "host", "latency_visual_odometry", {"visual-odometry-alone": ODOMETRY})
    spans = {arm: ODOMETRY + MATCHING - hidden * ODOMETRY + rest for arm, (hidden, rest) in HIDDEN.items()}
    if not mps:
        del spans["two-processes-mps"]
        yield unavailable(case, "two-processes-mps", "host", "makespan", "ms", "no client reached the MPS daemon")
    yield from timed(rng, case, "host", "makespan", alone | spans)
    for model in ("visual_odometry", "satellite_matching"):
        yield from timed(rng, case, "host", f"latency_{model}", {arm: 0.4 * span for arm, span in spans.items()})
    for place, arm in enumerate(spans):
        if not arm.endswith("-again"):
            yield case.row(arm, "memory", "device_delta", "bytes", (1400 + 90 * place) << 20)
    yield from traces(case)
    for block in range(6):
        yield case.row("process", "memory", "process_context", "bytes", 512e6 - block, block=block)
        if mps:  # the first client starts the server
            taken = 290e6 - block + 60e6 * (block == 0)
            yield case.row("process-mps", "memory", "process_context", "bytes", taken, block=block)


def traces(case: Case) -> Iterator[Row]:
    """Yield what the profiler saw."""
    names = {"kernel_busy": "fraction", "kernel_time": "ms", "kernel_filled": "fraction"}
    for block, factor in enumerate(TRACED):
        for arm, trace in TRACES.items():
            for (name, unit), value in zip(names.items(), trace, strict=True):
                yield case.row(arm, "device", name, unit, value * factor, block=block)
        yield case.row("two-streams", "device", "kernel_overlap", "fraction", 0.03 * factor, block=block)
        yield case.row("prefetch", "device", "copies_hidden", "fraction", 0.93 * factor, block=block)
    yield unavailable(case, "two-threads", "device", "kernel_busy", "fraction", "the profiler saw no kernel")


HEIGHT = 2048
MODELS = {"drunet": 1500.0, "unet": 1575.0, "dncnn": 560.0}  # bytes per pixel that runs at once
WEIGHTS = 130e6
WORKSPACE = {"cudnn-benchmark": 1.06, "cudnn-no-benchmark": 1.0, "no-cudnn": 1.03}
SIDES, BATCHES, COVERED = (128, 256, 512), (1, 2, 4, 8, 16), 2048
# Milliseconds per patch of a batch of one, and the share of it that a larger batch can save.
PATCHES = {128: (0.55, 0.72), 256: (1.0, 0.3), 512: (3.4, 0.06)}


def peak(model: str, width: int, way: str = "as-published") -> float:
    """Return bytes: those of the pixels that run at once, a quadrant where the image is split."""
    odd = width % 8 != 0
    split = model == "drunet" and way != "padded-whole" and (odd or way == "forced-split")
    pixels = HEIGHT * width * (0.28 if split else 1.0)
    return (WEIGHTS + MODELS[model] * pixels) * WORKSPACE.get(way, 1.0)


def image_shape(kind: str, dataset: str, caused_by_cudnn: bool = False) -> Iterator[Row]:
    """Yield the rows of image shapes; a CPU has no PyTorch."""
    rng = np.random.default_rng(12)
    for model in MODELS:
        for step in (64, 68):
            widths = range(1024, 2049, step)
            cases = [Case("image_shape", dataset, f"{model}-step{step}", width) for width in widths]
            if kind == "cpu":
                yield from missing(cases[0], "as-published")
                continue
            for case in cases:
                yield from shape(rng, case, model, "as-published")
        if model == "drunet":
            yield from interventions(rng, kind, dataset, caused_by_cudnn)
        case = Case("image_shape", dataset, f"{model}-patches", COVERED)
        if kind == "cpu":
            yield unavailable(case, "128x1", "device", "cover", "ms", NO_TORCH)
            continue
        times = {}
        for side, (each, saved) in PATCHES.items():
            count = (COVERED // side) ** 2
            for batch in BATCHES:
                slow = 1.08 if (side, batch) == (512, 16) else 1.0
                times[f"{side}x{batch}"] = count * each * (1 - saved * (1 - 1 / batch)) * slow
                taken = MODELS[model] * side * side * (0.2 + 0.8 * batch)  # a part of it doesn't depend on the batch
                yield case.row(f"{side}x{batch}", "memory", "batch_peak", "bytes", taken)
        yield from timed(rng, case, "device", "cover", again(times, "128x16"))


def interventions(rng: np.random.Generator, kind: str, dataset: str, caused_by_cudnn: bool) -> Iterator[Row]:
    """Yield every way at a width that is split and at one that runs whole."""
    for width in (1228, 1296):
        case = Case("image_shape", dataset, "drunet-interventions", width)
        for way in ("as-published", "padded-whole", "forced-split", *WORKSPACE):
            if kind == "cpu":
                yield from missing(case, way)
            else:
                yield from shape(rng, case, "drunet", way, caused_by_cudnn)


def shape(rng: np.random.Generator, case: Case, model: str, way: str, caused_by_cudnn: bool = False) -> Iterator[Row]:
    """Yield memory, splits and time of one width."""
    at_once = peak(model, case.n, way)
    if caused_by_cudnn:
        at_once = peak(model, case.n) * (3.1 if way == "cudnn-benchmark" else 1.0)
    first = at_once * (1.5 if way == "cudnn-benchmark" else 1.0)
    sizes = {"first_allocated_peak": first, "allocated_peak": at_once}
    sizes |= {"reserved_peak": 1.12 * at_once, "device_delta": 1.13 * at_once}
    for name, value in sizes.items():
        yield case.row(way, "memory", name, "bytes", value, answer="same")
    split = model == "drunet" and way != "padded-whole" and (case.n % 8 != 0 or way == "forced-split")
    yield case.row(way, "deterministic", "split_calls", "count", float(split), answer="same")
    time = HEIGHT * case.n * (2.1e-5 if split else 1.6e-5)
    yield from timed(rng, case, "device", "forward", {way: time}, "same")


def missing(case: Case, way: str) -> Iterator[Row]:
    """Yield one row per quantity that says why there is none."""
    yield unavailable(case, way, "deterministic", "split_calls", "count", NO_TORCH)
    for name in ("first_allocated_peak", "allocated_peak", "reserved_peak", "device_delta"):
        yield unavailable(case, way, "memory", name, "bytes", NO_TORCH)
    yield unavailable(case, way, "device", "forward", "ms", NO_TORCH)
