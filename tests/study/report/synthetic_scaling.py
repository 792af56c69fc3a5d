"""Made-up rows of the study `scaling`. No value here was measured."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from synthetic_blocks import again, timed

from octopus_study.measure.rows import Case, Row, unavailable

WORKS = {"crops": 102_400, "images": 8192, "copies": 1024}
GPUS = (1, 2, 4, 8)
# Milliseconds of a block on one GPU, and which part of linear is left with each doubling of the GPUs.
BLOCK = {"resident": 30.0, "uploaded": 100.0}
LEFT = {
    ("processes", "resident"): 0.99,
    ("processes", "uploaded"): 0.8,
    ("threads", "resident"): 0.7,
    ("threads", "uploaded"): 0.9,
}
SLOWEST = 1.03  # of the last GPU over the first one


def linear(way: str, data: str, gpus: int) -> float:
    """Return the made-up share of linear."""
    return LEFT[way, data] ** float(np.log2(gpus))


def scaling(kind: str, dataset: str, visible: int = 4) -> Iterator[Row]:
    """Yield the rows of the study of several GPUs; on a CPU each says that it needs one."""
    rng = np.random.default_rng(13)
    visible = visible if kind == "gpu" else 0
    why = "one GPU is visible" if visible == 1 else f"{visible} GPUs are visible"
    why = why if visible else "several GPUs of one host are asked for, and this machine has none"
    for work, items in WORKS.items():
        case = Case("scaling", dataset, work, items)
        for quantity in (
            f"{kind}_{data}"
            for kind in ("weak", "strong")
            for data in BLOCK
            if work != "copies" or (kind, data) == ("weak", "uploaded")
        ):
            times = {
                f"{way}-{gpus}": _block(way, quantity, gpus)
                for way in ("processes", "threads")
                for gpus in GPUS
                if gpus <= visible
            }
            if times:
                yield from timed(rng, case, "host", quantity, again(times, "processes-1"))
            for way in ("processes", "threads"):
                for gpus in GPUS:
                    if gpus > visible:
                        yield unavailable(case, f"{way}-{gpus}", "host", quantity, "ms", why)
        alone = {
            f"gpu-{rank}": BLOCK["resident"] * (SLOWEST if rank and rank == visible - 1 else 1)
            for rank in range(visible)
        }
        if alone:
            yield from timed(rng, case, "host", "alone", again(alone, "gpu-0"))
        for rank in range(visible, 2):
            yield unavailable(case, f"gpu-{rank}", "host", "alone", "ms", why)


def _block(way: str, quantity: str, gpus: int) -> float:
    shared, _, data = quantity.partition("_")
    return BLOCK[data] / linear(way, data, gpus) / (gpus if shared == "strong" else 1)


def predicted(quantity: str, gpus: int) -> float:
    """Return the milliseconds of a block that one GPU and copies alone foretell, by processes."""
    shared, _, data = quantity.partition("_")
    work = BLOCK["resident"]
    upload = (BLOCK["uploaded"] - work) / linear("processes", "uploaded", gpus) if data == "uploaded" else 0
    return (work + upload) / (gpus if shared == "strong" else 1)
