"""Made-up runs in the form that the studies write, for the tests of the report. No value here was measured.

Times follow simple laws (a cost per launch, a cost per object) with seeded noise, so that the tests know what
the report must find.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
from synthetic_arena import arena, padding
from synthetic_blocks import BLOCKS, again, timed
from synthetic_companions import concurrency, image_shape
from synthetic_edge import detector, drone, satellite
from synthetic_images import images
from synthetic_mapping import mapping, sequences, total_cost
from synthetic_pipelines import pipelines

from octopus_study.measure.rows import Case, Row, unavailable, write_rows

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "study" / "power"))
from synthetic_power import no_sensor_run, power_run, pretended_provenance  # noqa: E402

PUBLISHED = ROOT / "data" / "published"
REFERENCE = ROOT / "data" / "reference"
CLAIMS = ROOT / "config" / "claims.yaml"
PAPER = ROOT / "paper"

BASIS = ("stage_timing", "distribution")  # studies that every report has
GPU_LAUNCH_US = 6.0
CPU_LAUNCH_US = 0.2
# Milliseconds per object and fixed milliseconds of each method, on a pretended GPU and CPU.
LAWS = {
    "gpu": {
        "octopus": (1.9e-4, 0.015),
        "published": (1.6e-3, 0.10),
        "n-launches": (3.3e-2, 0.05),
        "n-launches-fused": (6.5e-3, 0.02),
    },
    "cpu": {
        "octopus": (0.15, 0.1),
        "published": (0.62, 0.2),
        "n-launches": (0.64, 0.2),
        "n-launches-fused": (0.16, 0.1),
        "opencv": (0.55, 0.1),
        "opencv-inplace": (0.5, 0.1),
    },
}
PADDING = {
    "uniform": (213_909_504, 786_432_000),
    "long-tail": (18_874_368, 479_200_000),
    "bimodal": (274_726_912, 786_432_000),
    "temporal": (19_000_000, 480_000_000),
    "visdrone": (14_900_000, 292_968_000),
}
# What a study's provenance says of itself.
EXTRA = {"detector": {"detector": {"same_within": {"box_px": 1.0, "score": 0.005}}}}
# The scene that goes with each data set of boxes.
SCENES = {"visdrone-val": "sentinel2-b04", "synthetic-visdrone": "synthetic-sentinel2"}
SIZE_SCALE = {"uniform": 260, "long-tail": 40, "bimodal": 150, "temporal": 40, "visdrone": 50}


def write_run(
    root: Path,
    machine: str,
    kind: str,
    dataset: str = "visdrone-val",
    quick: bool = False,
    tensorrt: bool = False,
    only: Collection[str] = (),
) -> Path:
    """Write all studies of one pretended machine, or those of `BASIS` and `only`, under ``root/<machine>`` and return
    that folder."""
    folder = root / machine
    counts = (100, 1000) if quick else (100, 500, 1000, 2000)
    studies: dict[str, Iterator[Row]] = {
        "stage_timing": stage_timing(kind, dataset, counts),
        "distribution": distribution(kind, dataset),
        "arena": arena(kind, dataset, tensorrt),
        "mapping": mapping(kind, dataset),
        "total_cost": total_cost(kind),
        "sequences": sequences(kind, tensorrt),
        "images": images(kind, dataset),
        "pipelines": pipelines(kind, dataset),
        "concurrency": concurrency(kind, dataset),
        "image_shape": image_shape(kind, dataset),
        "satellite": satellite(kind, SCENES[dataset], full=tensorrt),
        "drone": drone(kind, dataset),
        "detector": detector(kind, dataset, torch=kind == "gpu"),
    }
    for study, rows in studies.items():
        if not only or study in (*BASIS, *only):
            table = write_rows(folder / f"{study}.csv", list(rows))
            device = "cuda" if kind == "gpu" else "cpu"
            of = {"machine": machine, "device": device, "dataset": dataset}
            record = pretended_provenance(study, table, **of, extra=EXTRA.get(study))
            table.with_suffix(".json").write_text(json.dumps(record))
    if not only or "power" in only:
        options = {"dataset": dataset, "machine": machine}
        power = power_run(again_counts=(1000,), **options) if kind == "gpu" else no_sensor_run(**options)
        power.write(folder)
    return folder


def without_values(folder: Path, studies: Collection[str]) -> None:
    """Let every row of some written studies say that nothing works."""
    for study in studies:
        path = folder / f"{study}.csv"
        header, *rows = path.read_text().splitlines()
        kept = {}
        for row in rows:
            parts = row.split(",")
            parts[8:] = ["0", "", "unavailable: nothing works here"]
            kept[tuple(parts[:8])] = ",".join(parts)
        path.write_text("\n".join([header, *kept.values()]) + "\n")
        sign(path)


def sign(table: Path) -> None:
    """Let the provenance of a table say that these are the rows that were measured."""
    path = table.with_suffix(".json")
    record = json.loads(path.read_text())
    record["results"] |= {
        "sha256": hashlib.sha256(table.read_bytes()).hexdigest(),
        "rows": table.read_text().count("\n") - 1,
    }
    path.write_text(json.dumps(record))


def stage_timing(kind: str, dataset: str, counts: tuple[int, ...]) -> Iterator[Row]:
    """Yield the rows of the stage timing study."""
    rng = np.random.default_rng(1)
    for n in counts:
        case = Case("stage_timing", dataset, "visdrone", n)
        laws = {name: law for name, law in LAWS[kind].items() if not name.startswith("opencv")}
        yield from timed(rng, case, "host", "end_to_end", with_again(laws, n))
        yield from stages(rng, case, kind)
        yield from memory(case, kind)
        if kind == "cpu" and n == 1000:
            one = Case("stage_timing", dataset, "visdrone-1thread", n)
            laws = {name: LAWS["cpu"][name] for name in ("octopus", "opencv", "opencv-inplace")}
            yield from timed(rng, one, "host", "end_to_end", with_again(laws, n))
    yield from launch_series(rng, kind)
    for size in (64, 256):
        for method, value in (("write", 4600.0), ("read", 4390.0), ("copy", 4230.0)):
            case = Case("stage_timing", "synthetic", "bandwidth", size)
            scale = 1 if kind == "gpu" else 1 / 300
            for block in range(BLOCKS):
                noisy = value * scale * rng.normal(1, 0.01)
                yield case.row(method, "limit", "bandwidth", "GB/s", noisy, block=block)
    case = Case("stage_timing", dataset, "visdrone", 1)
    for block in range(5):
        yield case.row("octopus", "cold_start", "first_crop", "ms", 900 + block, block=block)


def stages(rng: np.random.Generator, case: Case, kind: str) -> Iterator[Row]:
    """Yield the single stages of one count."""
    n = case.n
    yield from timed(rng, case, "host", "build_metadata", {"octopus": 1e-5 * n + 0.002, "published": 1e-3 * n}, "n/a")
    if kind == "gpu":
        yield from timed(rng, case, "host", "upload_metadata", {"octopus": 0.008, "published": 0.012}, "n/a")
    else:
        for method in ("octopus", "published"):
            why = "the CPU reads the boxes where they are"
            yield unavailable(case, method, "host", "upload_metadata", "ms", why)
    for layer in ("device", "device_hot") if kind == "gpu" else ("host",):
        laws = with_again({name: LAWS[kind][name] for name in ("octopus", "published")}, n)
        bound = {"write-bound": 1.31e-4 * n if kind == "gpu" else 0.05 * n}
        yield from timed(rng, case, layer, "crop_resize_normalize", laws | bound)
        passes = {"crop_resize": 1.2e-3 * n, "normalize": 3.7e-4 * n}
        for quantity, time in passes.items():
            if layer != "device_hot":
                yield from timed(rng, case, layer, quantity, {"published": time * (1 if kind == "gpu" else 300)}, "n/a")


def memory(case: Case, kind: str) -> Iterator[Row]:
    """Yield the four lines of memory."""
    output = case.n * 3 * 224 * 224 * 4
    for method, extra in (("octopus", 0), ("published", output // 4), ("n-launches", output // 4)):
        lines = {"memory_payload": output, "memory_device_delta": output + extra, "memory_fixed": 500 << 20}
        for quantity, value in lines.items():
            yield case.row(method, "memory", quantity, "bytes", value)
        yield unavailable(case, method, "memory", "memory_allocator_peak", "bytes", "there is no allocator to ask")


def launch_series(rng: np.random.Generator, kind: str) -> Iterator[Row]:
    """Yield the series of empty launches."""
    costs = (
        {"cuda-core-launch": GPU_LAUNCH_US, "numba-dispatch": 31.0} if kind == "gpu" else {"kernel-call": CPU_LAUNCH_US}
    )
    for launches in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        case = Case("stage_timing", "synthetic", "launch-overhead", launches)
        laws = {name: 0.004 + launches * cost / 1000 for name, cost in costs.items()}
        yield from timed(rng, case, "host", "launch_series", laws, "n/a")


def distribution(kind: str, dataset: str) -> Iterator[Row]:
    """Yield the rows of the distribution study."""
    rng = np.random.default_rng(2)
    for workload, (actual, padded) in PADDING.items():
        case = Case("distribution", dataset if workload == "visdrone" else "synthetic", workload, 1000)
        yield from padding(case, actual, padded)
        yield from quantiles(case, SIZE_SCALE[workload])
        if workload == "visdrone":
            yield from quantiles(case._replace(workload="visdrone-pool", n=2045), SIZE_SCALE[workload])
        laws = with_again({name: LAWS[kind][name] for name in ("octopus", "published")}, 1000)
        slower = 1 + SIZE_SCALE[workload] / 500
        laws = {name: time * slower for name, time in laws.items()}
        bound = {"write-bound": 0.131 if kind == "gpu" else 50.0}
        yield from timed(rng, case, "device" if kind == "gpu" else "host", "crop_resize_normalize", laws | bound)
        yield from timed(rng, case, "host", "end_to_end", laws)
    frames = {f"octopus/frame-{k}": laws["octopus"] * (1 + 0.004 * k) for k in range(10)}
    yield from timed(rng, Case("distribution", "synthetic", "temporal", 1000), "host", "frame_time", frames)


def quantiles(case: Case, scale: float) -> Iterator[Row]:
    """Yield the percentiles of widths and heights."""
    for percentile in range(101):
        size = 16 + scale * (percentile / 50) ** 1.5
        yield case.row("boxes", "deterministic", "width_quantile", "px", size, block=percentile)
        yield case.row("boxes", "deterministic", "height_quantile", "px", 1.3 * size, block=percentile)


def with_again(laws: dict[str, tuple[float, float]], n: int) -> dict[str, float]:
    """Evaluate the laws for n objects and enter octopus a second time."""
    return again({name: slope * n + fixed for name, (slope, fixed) in laws.items()})
