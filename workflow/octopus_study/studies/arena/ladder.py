"""The kernel's own part of the arena: each step from the published passes to it, and its other kinds of results.

On GPUs alone, by events with a cold L2, boxes on the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus import CropPlan
from octopus_study.measure import Case, Method, Row, check_answers
from octopus_study.measure.bandwidth import fill
from octopus_study.peers.fused import OctopusOnGpu
from octopus_study.peers.job import CropJob, make_job
from octopus_study.peers.published import WHY_DIFFERENT, Published
from octopus_study.studies.arena.own import HALF_ULP
from octopus_study.studies.arena.workloads import VISDRONE, boxes_of, shared_count, uniform_boxes
from octopus_study.studies.contest import TOLERANCE_LEVELS, Entry, ReferenceCrops, check, compare
from octopus_study.studies.context import Context

QUANTITY = "crop_resize_normalize"
LARGE_SIDE = 320  # boxes that are shrunk: every source row is read, and two results share none
CHECKED = 50  # crops that are compared with the reference
KINDS: dict[str, dict[str, Any]] = {
    "octopus": {},
    "octopus-nhwc": {"layout": "NHWC"},
    "octopus-fp16": {"dtype": "float16"},
    "octopus-fp16-nhwc": {"dtype": "float16", "layout": "NHWC"},
    "octopus-uint8": {"dtype": "uint8"},
    "octopus-uint8-nhwc": {"dtype": "uint8", "layout": "NHWC"},
    "octopus-letterbox": {"letterbox": True},
    "octopus-image": {"edge": "image"},
}
BOUNDS = {"write-bound": "float32", "write-bound-fp16": "float16", "write-bound-uint8": "uint8"}


def rows(context: Context, expected: ReferenceCrops) -> list[Row]:
    """All rows of these comparisons; a machine without a GPU, or without room, has none."""
    count = shared_count(context)
    if context.device != "cuda" or context.shortage(count):
        return []
    height, width, _ = context.workload.frame.shape
    side = min(LARGE_SIDE, width, height)
    found = _ladder(context, "ladder", boxes_of(context, VISDRONE, count), expected)
    found += _ladder(
        context, "ladder-large", uniform_boxes(count, width, height, side, context.seed), expected
    )
    return found + _kinds(context, boxes_of(context, VISDRONE, count), expected)


def _ladder(context: Context, workload: str, boxes: NDArray[np.int32], expected: ReferenceCrops) -> list[Row]:
    from octopus_study.studies.arena.steps import STEPS, Step

    job, every = _job(context, boxes), -(-len(boxes) // CHECKED)
    steps = [Step(job, name) for name in STEPS]
    entries = [
        Entry("two-passes", Published(job).kernels, why_different=WHY_DIFFERENT),
        *(Entry(step.name, step.kernel) for step in steps),
        Entry("octopus", OctopusOnGpu(job).kernel),
        Entry("write-bound", fill(job.out), answers=False),
    ]
    answers = check(job, entries, expected.of(boxes[::every]), every)
    return _timed(context, workload, entries, answers, len(boxes))


def _kinds(context: Context, boxes: NDArray[np.int32], expected: ReferenceCrops) -> list[Row]:
    from octopus.backends.cuda.memory import DeviceArray, upload

    job, every = _job(context, boxes), -(-len(boxes) // CHECKED)
    on_device = upload(boxes.astype(np.float32))
    entries, answers, outputs = [], {}, {}
    for name, options in KINDS.items():
        options, run, out = _kind(job, on_device, options)
        entries.append(Entry(name, run))
        answers[name] = _answer(context, name, options, run, out, boxes[::every], every)
        outputs[options["dtype"]] = out
    for name, dtype in BOUNDS.items():
        like = outputs[dtype]
        entries.append(Entry(name, fill(DeviceArray(like.shape, like.dtype)), answers=False))
        answers |= check_answers([Method(name, entries[-1].run)], None)
    return _timed(context, "kinds", entries, answers, len(boxes))


def _kind(
    job: CropJob, boxes: Any, options: dict[str, Any]
) -> tuple[dict[str, Any], Callable[[], object], Any]:
    """A plan with memory of its own; uint8 results are not normalised, since they could not hold it."""
    from octopus.backends.cuda.memory import DeviceArray

    options = {"dtype": "float32", "layout": "NCHW", **options}
    plain = options["dtype"] == "uint8"
    affine = {} if plain else {"mean": job.mean, "std": job.std}
    plan = CropPlan(job.device_frame, job.count, job.size, allocate=False, **affine, **options)
    out = DeviceArray(plan.spec.shape(job.count), plan.spec.dtype)
    return options, lambda: plan.run(job.device_frame, boxes, out=out), out


def _answer(
    context: Context,
    name: str,
    options: dict[str, Any],
    run: Callable[[], object],
    out: Any,
    boxes: NDArray[np.int32],
    every: int,
) -> str:
    """Compare some crops with the reference under the same options."""
    from octopus.kernels import reference

    crop, dtype = context.config.crop, options["dtype"]
    mean, std = (np.zeros(3), np.ones(3)) if dtype == "uint8" else (np.array(crop.mean), np.array(crop.std))
    asked = {key: value for key, value in options.items() if key != "dtype"}
    if options.get("letterbox"):
        asked["pad_value"] = np.full(3, 114.0)
    right = reference.crop_resize(context.workload.frame, boxes, crop.size, mean, std, **asked)
    tolerance = TOLERANCE_LEVELS / std.max()
    if dtype == "float16":
        tolerance += float(np.abs(right).max()) * HALF_ULP
    if dtype == "uint8":
        tolerance += 0.5  # the reference is not rounded
    out.fill_bytes(0xFF)
    method = Method(name, run, lambda: out.copy_to_host()[::every].astype(np.float32), tolerance)
    return check_answers([method], right.astype(np.float32))[name]


def _job(context: Context, boxes: NDArray[np.int32]) -> CropJob:
    crop = context.config.crop
    return make_job(context.workload.frame, boxes, crop.size, crop.mean, crop.std, context.device)


def _timed(
    context: Context, workload: str, entries: list[Entry], answers: dict[str, str], count: int
) -> list[Row]:
    case = Case(context.study, context.workload.dataset, workload, count)
    budget = context.budget_within(context.config.arena.max_seconds)
    return compare(context, case, QUANTITY, entries, context.kernel_clocks()[0], answers, budget)
