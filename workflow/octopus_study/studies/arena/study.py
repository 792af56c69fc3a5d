"""Study `arena`: Octopus against everything that a user would pick instead, on the same boxes and the same frame.

Three layers, which are never compared with each other. `device`: the work on the GPU alone, by events with a cold L2;
whatever a method needs ready (views, rois, grids, a padded batch) is ready. `host`: from the boxes on the host to the
synchronised result, the frame where the work is done; all that a user must do per batch counts, a padded batch
included. `pipeline`: also the frame's way to the GPU and the result's way back, through page-locked memory. A CPU has
the layer `host` alone.

Whoever gives another answer (a resized padded image is not a resized crop) may take part, and its rows say so.
"""

from __future__ import annotations

import logging

from octopus_study.measure import Case, Row, unavailable
from octopus_study.peers.job import make_job
from octopus_study.studies.arena import ladder as arena_ladder
from octopus_study.studies.arena import memory as arena_memory
from octopus_study.studies.arena import submit as arena_submit
from octopus_study.studies.arena import threads as arena_threads
from octopus_study.studies.arena.layers import (
    KERNELS,
    WHOLE,
    WRITE_BOUNDS,
    Round,
    gather,
    layers,
    names,
    release,
)
from octopus_study.studies.arena.pipeline import PageLocked
from octopus_study.studies.arena.workloads import boxes_of, counts, padding_rows
from octopus_study.studies.contest import ReferenceCrops
from octopus_study.studies.context import Context

log = logging.getLogger(__name__)

CHECKED = 500  # crops of a batch that are compared with the reference at most, spread over all of it


def rows(context: Context) -> list[Row]:
    """All rows of the study; progress goes to the log."""
    crop = context.config.crop
    expected = ReferenceCrops(context.workload.frame, crop.size, crop.mean, crop.std)
    found, missing = [], {}
    for workload in context.config.arena.workloads:
        for count in counts(context):
            log.info("workload %s, %d boxes", workload, count)
            found += _batch_rows(context, workload, count, expected, missing)
    if context.device == "cpu":
        found += arena_threads.rows(context, expected)
    found += arena_ladder.rows(context, expected) + arena_submit.rows(context)
    return found + arena_memory.rows(context, missing)


def _batch_rows(
    context: Context, workload: str, count: int, expected: ReferenceCrops, missing: dict[str, str]
) -> list[Row]:
    """One workload and number of boxes in every layer; `missing` learns who can't be made on this machine."""
    case = Case(context.study, context.workload.dataset, workload, count)
    boxes = boxes_of(context, workload, count)
    found = padding_rows(case, boxes)
    short = context.shortage(count)
    if short:
        return found + _missing(context, case, short)
    crop, every = context.config.crop, -(-count // CHECKED)
    job = make_job(context.workload.frame, boxes, crop.size, crop.mean, crop.std, context.device)
    here = Round(context, case, job, expected.of(boxes[::every]), every)
    if job.on_gpu and count <= context.config.arena.pipeline_max_count:
        here.locked = PageLocked(job)
    gather(here)
    if count == min(context.config.arena.counts):  # in a large batch it may be for want of room
        missing |= here.missing
    for layer in layers(context.device):
        found += layer(here)
    release(here)
    return found


def _missing(context: Context, case: Case, why: str) -> list[Row]:
    """One row for each method and layer of a batch without room."""
    expected = [("host", WHOLE, name) for name in names()]
    if context.device == "cuda":
        expected += [("device", KERNELS, name) for name in (*names(), *WRITE_BOUNDS)]
        expected += [("pipeline", WHOLE, name) for name in names()]
    return [unavailable(case, name, layer, quantity, "ms", why) for layer, quantity, name in expected]
