"""Study `parity`: how far Octopus' crops lie from those of other libraries, under settings that mean the same.

Levels of 0..255, before any normalisation, over all values of a seeded sample of boxes. Nothing is timed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from octopus import crop_resize
from octopus_study.data.workload import sample_boxes
from octopus_study.measure import Case, Row
from octopus_study.measure.rows import describe
from octopus_study.peers.availability import Unavailable
from octopus_study.peers.job import CropJob, make_job
from octopus_study.studies.comparison import Comparison, Part
from octopus_study.studies.context import Context
from octopus_study.studies.crops import Crops
from octopus_study.studies.parity.peers import SETTINGS, Setting, crops_of

QUANTITIES = ("max_abs_difference", "mean_abs_difference")


def plan(context: Context) -> list[Part]:
    """A part for each setting: how far each peer is, at most and on average."""
    return [_part(context, name) for name in SETTINGS]


def _part(context: Context, name: str) -> Part:
    case = Case(context.study, context.workload.dataset, name, context.config.parity.count)
    peers = tuple(SETTINGS[name].peers)
    comparisons = (Comparison(case, quantity, "deterministic", peers, "levels") for quantity in QUANTITIES)
    return Part(_measure, tuple(comparisons))


def _measure(context: Context, part: Part) -> Iterator[Row]:
    context.require_room(part.case.n)
    setting, job = SETTINGS[part.case.workload], _job(context, part.case.n)
    own = octopus_crops(job, setting)
    for peer, target in setting.peers.items():
        try:
            values = _distances(own, crops_of(target, job))
        except Exception as error:  # any failure of a peer is a row, never the end of the study
            for comparison in part.comparisons:
                yield from comparison.gaps(_reason(error), [peer])
            continue
        for comparison, value in zip(part.comparisons, values, strict=True):
            yield part.case.row(peer, comparison.layer, comparison.quantity, comparison.unit, value)


def _job(context: Context, count: int) -> CropJob:
    """Boxes of the data set; mean 0 and standard deviation 1 leave the levels as they are."""
    frame = context.workload.frame
    boxes = sample_boxes(context.workload.pool, count, context.seed)
    channels = frame.shape[2]
    size = context.config.crop.size
    return make_job(frame, boxes, size, (0.0,) * channels, (1.0,) * channels, context.device)


def octopus_crops(job: CropJob, setting: Setting) -> Crops:
    """What Octopus makes of the job's boxes, in levels, (N, height, width, C)."""
    device = "cuda" if job.on_gpu else "cpu"
    frame, boxes = setting.inputs(job)
    small = setting.options.get("dtype") == "bfloat16"  # which NumPy doesn't have: its bits
    out = np.empty((job.count, *job.size, job.frame.shape[2]), np.uint16) if small else None
    made = crop_resize(frame, boxes, job.size, layout="NHWC", device=device, out=out, **setting.options)
    crops = made[0] if isinstance(made, tuple) else made
    return (crops.astype(np.uint32) << 16).view(np.float32) if small else np.asarray(crops, np.float32)


def _distances(own: Crops, other: Crops) -> tuple[float, float]:
    """Largest and mean absolute difference.

    Raises
    ------
    Unavailable
        The two can't be compared.
    """
    if other.shape != own.shape:
        raise Unavailable(f"its result has the shape {other.shape}, expected {own.shape}")
    difference = np.abs(own.astype(np.float64) - other)
    if not np.isfinite(difference).all():
        raise Unavailable("its result holds NaN or infinity")
    return float(difference.max()), float(difference.mean())


def _reason(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed"
    return str(error) if isinstance(error, Unavailable) else describe(error)
