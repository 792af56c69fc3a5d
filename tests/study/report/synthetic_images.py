"""Made-up rows of the study `images`. No value here was measured."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from synthetic_blocks import again, timed

from octopus_study.measure.rows import Case, Row, unavailable

# Images on a GPU and on a CPU, bytes read and written on a GPU, and launches of the processor.
BATCHES = {
    "large": (32, 4, 120e6, 688e6, 283),
    "small": (256, 32, 40e6, 480e6, 1996),
    "thumbnails": (256, 32, 280e6, 154e6, 1500),
    "equal": (32, 4, 100e6, 738e6, 12),
    "one": (1, 1, 6e6, 23e6, 9),
}
GIGABYTES = {"gpu": 4200.0, "cpu": 14.0}
SHARE = 0.65  # of its roof, which Octopus reaches
OTHERS = {
    "gpu": {"transformers": 20.0, "torchvision-loop": 25.0, "torchvision-grouped": 18.0, "cvcuda": 5.0},
    "cpu": {"transformers": 2.5, "torchvision-loop": 2.4, "torchvision-grouped": 2.6, "pillow": 3.4, "dali": 4.0},
}
OWNERS = {
    "lookup": 1.02, "thread-search": 1.01, "block-metadata": 1.0, "block-search": 1.0, "padded-grid": 1.2,
    "launch-per-image": 2.5,
}  # fmt: skip
MISSING = {"cpu": ("kornia-rs", "kornia-rs has no operator that writes patch rows"), "gpu": ("dali", "DALI has none")}


def images(kind: str, dataset: str) -> Iterator[Row]:
    """Yield the rows of the study of images of any size."""
    rng = np.random.default_rng(11)
    for workload, (on_gpu, on_cpu, read, written, launches) in BATCHES.items():
        count = on_gpu if kind == "gpu" else on_cpu
        case, part = Case("images", dataset, workload, count), count / on_gpu
        per_ms = GIGABYTES[kind] * 1e6
        bounds = {"write-bound": part * written / per_ms, "copy-bound": part * (read + written) / per_ms}
        bounds |= {f"{name}-bf16": part * (read * ("copy" in name) + written / 2) / per_ms for name in bounds}
        own = {"octopus": bounds["copy-bound"] / SHARE, "octopus-bf16": bounds["copy-bound-bf16"] / SHARE}
        own = again(own) | {"octopus-pillow": 1.1 * own["octopus"]}
        whole = own | {"octopus-one-call": own["octopus"] + 0.05}
        whole |= {name: factor * own["octopus"] for name, factor in OTHERS[kind].items()}
        name, why = MISSING[kind]
        if kind == "gpu":
            own |= {name: factor * own["octopus"] for name, factor in OWNERS.items()}
            whole |= {name: own[name] for name in OWNERS}
            yield from timed(rng, case, "device", "kernel", own | bounds)
            for method, times in (("lookup", 64), ("block-metadata", 4), ("block-search", 1)):
                yield case.row(method, "deterministic", "table_bytes", "bytes", times * 64 * count)
            for method, number in (("octopus", 1), ("transformers", launches)):
                yield case.row(method, "deterministic", "launches", "count", number)
        yield case.row("batch", "deterministic", "read_bytes", "bytes", part * read)
        yield from timed(rng, case, "host", "end_to_end", whole | (bounds if kind == "cpu" else {}))
        yield unavailable(case, name, "host", "end_to_end", "ms", why)
        yield case.row("octopus", "deterministic", "table_bytes", "bytes", 64 * count)
