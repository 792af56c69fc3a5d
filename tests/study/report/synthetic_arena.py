"""Made-up rows of the study `arena`. No value here was measured."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from synthetic_blocks import again, timed

from octopus_study.measure.rows import Case, Row, unavailable
from octopus_study.status import Answer, as_answer

COUNTS = {"gpu": (28, 100, 1000), "cpu": (28, 100, 1000)}
QUANTITIES = {
    "device": "crop_resize_normalize", "host": "end_to_end", "pipelined": "end_to_end", "pipeline": "end_to_end",
}  # fmt: skip
OUTPUT_BYTES = 3 * 224 * 224 * 4
PADDED = "different: resizes the padded image, not the crop"
ROUNDED = "different: rounds to uint8 between its two passes"
NO_EVENTS = "its device work can't be seen by events on the default stream"
NO_TENSORRT = "TensorRT is not installed"
NONE = float("nan")
# Method -> (device ms per box, device ms fixed, host ms per box, host ms fixed, answer); NaN: no such layer.
GPU = {
    "octopus": (1.5e-4, 0.004, 1.6e-4, 0.045, "same"),
    "octopus-one-call": (NONE, NONE, 1.7e-4, 0.09, "same"),
    "octopus-fp16": (0.9e-4, 0.004, 1.0e-4, 0.045, "same"),
    "octopus-image": (1.6e-4, 0.004, 1.7e-4, 0.047, "same"),
    "published": (1.57e-3, 0.01, 2.6e-3, 0.1, ROUNDED),
    "n-launches": (NONE, NONE, 6.4e-2, 0.1, ROUNDED),
    "opencv": (NONE, NONE, NONE, NONE, "same"),
    "roi-align": (2.0e-3, 0.01, 2.1e-3, 0.08, "same"),
    "padded-onnxruntime": (NONE, NONE, 0.31, 0.6, PADDED),
    "cvcuda": (3.1e-4, 0.005, 1.85e-2, 0.1, "same"),
    "cvcuda-views": (3.3e-4, 0.005, 3.1e-3, 0.1, "same"),
    "dali-pipeline": (NONE, NONE, 1.0e-2, 0.8, "same"),
    "tensorrt-padded": (3e-4, 0.01, 0.3, 0.4, PADDED),
}
CPU = {
    "octopus": (0.15, 0.1, "same"),
    "octopus-image": (0.15, 0.1, "same"),
    "published": (0.62, 0.2, ROUNDED),
    "n-launches": (0.64, 0.2, ROUNDED),
    "opencv": (0.55, 0.1, "same"),
    "opencv-table": (0.4, 0.1, "same"),
    "opencv-table-threads": (0.2, 0.1, "same"),
}
BOUNDS = {"write-bound": (1.31e-4, 0.0015, "n/a"), "write-bound-fp16": (0.66e-4, 0.0015, "n/a")}
# Milliseconds of each step on the VisDrone boxes and on large ones.
LADDER = {
    "two-passes": (1.58, 1.9),
    "one-pass": (0.27, 0.42),
    "streamed": (0.19, 0.33),
    "prefetched": (0.175, 0.33),
    "paired": (0.16, 0.29),
    "octopus": (0.154, 0.24),
    "write-bound": (0.1325, 0.1325),
}


def arena(kind: str, dataset: str, tensorrt: bool = False) -> Iterator[Row]:
    """Yield the rows of the arena study; without `tensorrt` its methods are unavailable."""
    rng = np.random.default_rng(3)
    for workload, side in (("uniform", 256), ("visdrone", 50)):
        for n in COUNTS[kind]:
            case = Case("arena", dataset, workload, n)
            yield from padding(case, n * 3 * side**2, n * 3 * (side**2 if side == 256 else 312 * 313))
            yield from (gpu(rng, case, tensorrt) if kind == "gpu" else cpu(rng, case))
    yield from memory(Case("arena", dataset, "visdrone", 1000), kind, tensorrt)
    if kind == "cpu":
        laws = {method: CPU[method] for method in ("octopus", "opencv", "opencv-table")}
        yield from series(rng, Case("arena", dataset, "visdrone-1thread", 1000), "host", laws)
        return
    for index, workload in enumerate(("ladder", "ladder-large")):
        laws = {step: (0.0, times[index], "same") for step, times in LADDER.items()}
        laws["two-passes"] = (*laws["two-passes"][:2], ROUNDED)
        yield from series(rng, Case("arena", dataset, workload, 1000), "device", laws)
    for n in COUNTS["gpu"]:
        case = Case("arena", dataset, "visdrone", n)
        yield from timed(rng, case, "host", "submit", again({"octopus": 0.011}), "n/a")
        yield unavailable(case, "octopus-torch", "host", "submit", "ms", "PyTorch is not installed")
        alone = again({"octopus": 0.05, "octopus-one-call": 0.06})
        yield from timed(rng, case, "host", "end_to_end_alone", alone, "n/a")


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
    host = {name: (a, b, answer) for name, (_, _, a, b, answer) in here.items() if a == a}
    layers = {
        "device": {name: (a, b, answer) for name, (a, b, _, _, answer) in here.items() if a == a} | BOUNDS,
        "host": host,
        "pipelined": {name: host[name] for name in ("octopus", "octopus-image", "cvcuda", "dali-pipeline")},
        "pipeline": {name: (a + 0.012, b + 0.3, answer) for name, (a, b, answer) in host.items()}
        | {"opencv": (0.55, 0.3, "same")},
    }
    for layer, laws in layers.items():
        yield from series(rng, case, layer, laws)
        for method in sorted(set(GPU) - set(laws)) if layer != "pipelined" else ():
            why = NO_EVENTS if method in here else NO_TENSORRT
            yield unavailable(case, method, layer, QUANTITIES[layer], "ms", why)


def cpu(rng: np.random.Generator, case: Case) -> Iterator[Row]:
    """Yield the one layer of a pretended CPU."""
    yield from series(rng, case, "host", CPU)
    for method in sorted(set(GPU) - set(CPU)):
        yield unavailable(case, method, "host", "end_to_end", "ms", "works on NVIDIA GPUs alone")


def series(
    rng: np.random.Generator, case: Case, layer: str, laws: dict[str, tuple[float, float, str]]
) -> Iterator[Row]:
    """Yield paired blocks of all methods, Octopus twice."""
    times = again({name: a * case.n + b for name, (a, b, _) in laws.items()})
    answers = again({name: answer for name, (*_, answer) in laws.items()})
    for row in timed(rng, case, layer, QUANTITIES[layer], times):
        answer = as_answer(answers[row.method])
        yield row.answered(Answer(answer.status, answer.reason, float(f"0.{case.n}")) if answer.reason else answer)
    yield case.row(QUANTITIES[layer], layer, "discarded_blocks", "count", 0)


def memory(case: Case, kind: str, tensorrt: bool) -> Iterator[Row]:
    """Yield the four lines of memory of every method."""
    output = case.n * OUTPUT_BYTES
    for method in GPU if kind == "gpu" else CPU:
        lines = {"payload": output, "device_delta": output * (5 if "padded" in method else 2), "fixed": 500 << 20}
        missing = method.startswith("tensorrt") and not tensorrt
        for line in ("payload", "allocator_peak", "device_delta", "fixed"):
            if line in lines and not missing:
                yield case.row(method, "memory", f"memory_{line}", "bytes", lines[line])
            else:
                why = NO_TENSORRT if missing else "the method has no allocator of its own"
                yield unavailable(case, method, "memory", f"memory_{line}", "bytes", why)
