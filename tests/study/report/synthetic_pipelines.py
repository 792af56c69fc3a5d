"""Made-up rows of the study `pipelines`. No value here was measured."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from synthetic_blocks import again, timed

from octopus_study.measure.rows import Case, Row, unavailable

MODEL = {"model-one": 1, "model-ragged": 32, "model-small": 256, "model-documents": 8, "model-photos": 8}
INPUTS = ("pillow", "numpy", "torch", "torch-gpu", "jpeg")
SLOWEST = "torch-gpu"  # of the inputs: with it a part of the gain is left
PREPARED = {"octopus": 2.0, "transformers": 24.0, "transformers-threads": 12.0, "hf-processors-rs": 6.0}
ON_CPU = {"octopus-cpu": 30.0, "transformers-cpu": 90.0}
FILES = {"transformers": 100.0, "octopus-host-decoded": 8.0}
UPLOAD = {"upload-only": 1.5}
STEP = {"octopus": 10.0, "transformers": 32.0}
CROPS = {"octopus": 0.04, "octopus-graph": 0.03, "torch-loop": 3.0, "opencv-loop": 6.0}
OTHERS = {
    ("slices", 32, "slices"): {"octopus": 3.0, "sahi": 30.0, "numpy-slices": 20.0},
    ("loader-4-workers", 256, "loaded"): {"octopus": 200.0, "transformers": 900.0, "octopus-cpu": 400.0},
}


def pipelines(kind: str, dataset: str) -> Iterator[Row]:
    """Yield the rows of the study of whole pipelines."""
    rng, gpu = np.random.default_rng(12), kind == "gpu"
    for (workload, count), form in itertools.product(MODEL.items(), INPUTS):
        if form == SLOWEST and not gpu:
            continue
        case = Case("pipelines", dataset, workload, count if gpu else max(1, count // 8), form)
        times = PREPARED | (FILES if form == "jpeg" else {}) | (UPLOAD if form == "torch" and gpu else {})
        times = times | (ON_CPU if form == "pillow" and gpu else {})
        times = times | ({"transformers": 6.0} if form == SLOWEST else {})
        for row in timed(rng, case, "host", "prepare", again(times)):
            on_gpu = form == "jpeg" and gpu and row.method in ("octopus", "octopus-again")
            yield row._replace(answer="different: chroma") if on_gpu else row
        if form == "jpeg" and gpu:
            yield case.row("octopus", "deterministic", "decoded_most_off", "levels", 32.0)
            yield case.row("octopus", "deterministic", "decoded_mean_off", "levels", 0.4)
        if form != "pillow":
            continue
        yield case.row("octopus", "deterministic", "values_differing", "fraction", 0.0004)
        if gpu:
            yield from timed(rng, case, "host", "model_step", again(STEP))
            yield case.row("octopus", "deterministic", "cosine", "fraction", 0.9999)
        else:
            yield unavailable(case, "octopus", "host", "model_step", "ms", "the tower takes minutes on a CPU")
    for counting in (28, 100):
        case = Case("pipelines", dataset, f"crops-{counting}", 300)
        times = {name: time for name, time in CROPS.items() if gpu or "graph" not in name}
        yield from timed(rng, case, "host", "crops", again(times))
        for name in CROPS if gpu else ():
            yield case.row(name, "deterministic", "host_waits", "count", float("loop" in name))
    for (workload, count, quantity), times in OTHERS.items():
        case = Case("pipelines", dataset, workload, count)
        yield from timed(rng, case, "host", quantity, again(times))
