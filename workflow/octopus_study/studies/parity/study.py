"""Study `parity`: how far Octopus' crops lie from those of other libraries, under settings that mean the same.

Levels of 0..255, before any normalisation, over all values of a seeded sample of boxes. Nothing is timed.
"""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from octopus import crop_resize
from octopus_study.data.workload import sample_boxes
from octopus_study.measure import Case, Row, unavailable
from octopus_study.measure.rows import describe
from octopus_study.peers.availability import Unavailable
from octopus_study.peers.job import CropJob, make_job
from octopus_study.studies.context import Context
from octopus_study.studies.parity.peers import SETTINGS, Setting, crops_of

log = logging.getLogger(__name__)
STUDY = "parity"
QUANTITIES = ("max_abs_difference", "mean_abs_difference")
Crops = NDArray[np.float32]


def rows(context: Context) -> list[Row]:
    """Two rows per setting and peer; progress goes to the log."""
    count = context.config.parity.count
    short = context.shortage(count)
    if short:
        cases = [(_case(context, name, count), setting) for name, setting in SETTINGS.items()]
        return [row for case, setting in cases for peer in setting.peers for row in _gap(case, peer, short)]
    job = _job(context, count)
    return [row for name in SETTINGS for row in _setting_rows(_case(context, name, count), job)]


def _case(context: Context, setting: str, count: int) -> Case:
    return Case(STUDY, context.workload.dataset, setting, count)


def _job(context: Context, count: int) -> CropJob:
    """Boxes of the data set; mean 0 and standard deviation 1 leave the levels as they are."""
    frame = context.workload.frame
    boxes = sample_boxes(context.workload.pool, count, context.seed)
    channels = frame.shape[2]
    size = context.config.crop.size
    return make_job(frame, boxes, size, (0.0,) * channels, (1.0,) * channels, context.device)


def _setting_rows(case: Case, job: CropJob) -> list[Row]:
    log.info("setting %s", case.workload)
    setting = SETTINGS[case.workload]
    own = octopus_crops(job, setting)
    return [row for peer in setting.peers for row in _peer_rows(case, peer, setting, job, own)]


def octopus_crops(job: CropJob, setting: Setting) -> Crops:
    """What Octopus makes of the job's boxes, in levels, (N, height, width, C)."""
    device = "cuda" if job.on_gpu else "cpu"
    made = crop_resize(job.frame, job.boxes, job.size, layout="NHWC", device=device, **setting.options)
    crops = made[0] if isinstance(made, tuple) else made
    return np.asarray(crops, np.float32)


def _peer_rows(case: Case, peer: str, setting: Setting, job: CropJob, own: Crops) -> list[Row]:
    try:
        other = crops_of(setting.peers[peer], job)
        if other.shape != own.shape:
            return _gap(case, peer, f"its result has the shape {other.shape}, expected {own.shape}")
    except Unavailable as error:
        return _gap(case, peer, str(error))
    except ModuleNotFoundError as error:
        return _gap(case, peer, f"{error.name} is not installed")
    except Exception as error:  # any failure of a peer is a row, never the end of the study
        return _gap(case, peer, describe(error))
    difference = np.abs(own.astype(np.float64) - other)
    if not np.isfinite(difference).all():
        return _gap(case, peer, "its result holds NaN or infinity")
    values = (float(difference.max()), float(difference.mean()))
    return [
        case.row(peer, "deterministic", quantity, "levels", value)
        for quantity, value in zip(QUANTITIES, values, strict=True)
    ]


def _gap(case: Case, peer: str, why: str) -> list[Row]:
    return [unavailable(case, peer, "deterministic", quantity, "levels", why) for quantity in QUANTITIES]
