"""Made-up rows of the study `pipelines`. No value here was measured."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from synthetic_blocks import again, timed

from octopus_study.measure.rows import Case, Row, unavailable
from octopus_study.status import different
from octopus_study.studies.pipelines import model

SLOWEST = "torch-gpu"  # of the inputs: with it a part of the gain is left
PREPARED = {
    "octopus": 2.0, "transformers": 24.0, "transformers-threads": 12.0, "transformers-compiled": 10.0,
    "hf-processors-rs": 6.0, "transformers-torchvision": 30.0,
}  # fmt: skip
FILES = 100.0  # ms of transformers where Pillow decodes them
NVJPEG = ("octopus", "octopus-again", "transformers-torchvision")
STEP = {"octopus": 10.0, "transformers": 32.0}
CROPS = {"octopus": 0.04, "torch-loop": 3.0, "opencv-loop": 6.0}
OTHERS = {("loader-4-workers", 256, "loaded"): {"octopus": 200.0, "transformers": 900.0}}


def pipelines(kind: str, dataset: str) -> Iterator[Row]:
    """Yield the rows of the study of whole pipelines."""
    rng, gpu = np.random.default_rng(12), kind == "gpu"
    device = "cuda" if gpu else "cpu"
    forms = [(name, form) for name in model.BATCHES for form in model.inputs_of(device, name, model.INPUTS)]
    for name, form in forms:
        images = model.BATCHES[name].images
        case = Case("pipelines", dataset, f"model-{name}", images if gpu else max(1, images // 8), form)
        known = PREPARED | {"transformers": {SLOWEST: 6.0, "jpeg": FILES}.get(form, PREPARED["transformers"])}
        times = {method: known[method] for method in model.methods_of(name, form, case.n)}
        for row in timed(rng, case, "host", "prepare", again(times)):
            on_gpu = form == "jpeg" and gpu and row.method in NVJPEG
            yield row.answered(different("chroma")) if on_gpu else row
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
        yield from timed(rng, case, "host", "crops", again(CROPS))
    for (workload, count, quantity), times in OTHERS.items():
        case = Case("pipelines", dataset, workload, count)
        yield from timed(rng, case, "host", quantity, again(times))
