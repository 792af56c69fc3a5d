"""The kernel's own part of the arena: each version from the published passes to it, and its other kinds of results.

On GPUs alone, by events with a cold L2, boxes on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus import CropPlan
from octopus_study.measure import Method, Row, check_answers
from octopus_study.measure.bandwidth import fill
from octopus_study.peers.fused import HALF_ULP, OctopusOnGpu
from octopus_study.peers.job import TOLERANCE_LEVELS, CropJob
from octopus_study.peers.published import Published
from octopus_study.studies.arena.workloads import (
    VISDRONE,
    arena_budget,
    boxes_of,
    case_of,
    shared_count,
    uniform_boxes,
)
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.context import Context
from octopus_study.studies.crops import ReferenceCrops, check, crop_job

QUANTITY = "crop_resize_normalize"
LARGE_SIDE = 320  # boxes that are shrunk: every source row is read, and two results share none
CHECKED = 50  # crops that are compared with the reference
# Each version's means, as `KernelVersion` takes them.
VERSIONS: dict[str, tuple[int, bool, bool] | None] = {
    "one-pass": None,
    "streamed": (1, False, False),
    "prefetched": (1, False, True),
    "paired": (2, False, True),
}
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


def parts(context: Context, crops: ReferenceCrops) -> Iterator[Part]:
    """The versions on boxes of the data set and on large ones, and the kinds of results."""
    count = shared_count(context)
    versions = ("two-passes", *VERSIONS, "octopus", "write-bound")
    for workload in ("ladder", "ladder-large"):
        yield _part(context, workload, partial(_versions, crops=crops), versions, count)
    yield _part(context, "kinds", _kinds, (*KINDS, *BOUNDS), count)


def _part(
    context: Context,
    workload: str,
    measure: Callable[..., Iterable[Row]],
    methods: tuple[str, ...],
    count: int,
) -> Part:
    return Part(measure, (Comparison(case_of(context, workload, count), QUANTITY, "device", methods),))


def _versions(context: Context, part: Part, crops: ReferenceCrops) -> list[Row]:
    from octopus_study.studies.arena.versions import KernelVersion

    context.require_room(part.case.n)
    boxes = boxes_of(context, VISDRONE, part.case.n)
    if part.case.workload == "ladder-large":
        height, width, _ = context.workload.frame.shape
        side = min(LARGE_SIDE, width, height)
        boxes = uniform_boxes(part.case.n, width, height, side, context.seed)
    job, every = crop_job(context, boxes), -(-len(boxes) // CHECKED)
    published, versions = (
        Published(job),
        [KernelVersion(job, name, means) for name, means in VERSIONS.items()],
    )
    methods = [
        job.method("two-passes", published.kernels, published.why_different),
        *(version.timed(version.kernels) for version in (*versions, OctopusOnGpu(job))),
        Method("write-bound", fill(job.out)),
    ]
    answers = check(job, methods, crops.of(boxes[::every]), every)
    return compare(context, part.comparisons[0], methods, answers, budget=arena_budget(context))


def _kinds(context: Context, part: Part) -> list[Row]:
    from octopus.backends.cuda.memory import DeviceArray, upload

    context.require_room(part.case.n)
    boxes = boxes_of(context, VISDRONE, part.case.n)
    job, every = crop_job(context, boxes), -(-len(boxes) // CHECKED)
    on_device = upload(boxes.astype(np.float32))
    methods, answers, outputs = [], {}, {}
    for name, options in KINDS.items():
        options, run, out = _kind(job, on_device, options)
        methods.append(Method(name, run))
        answers[name] = _answer(context, name, options, run, out, boxes[::every], every)
        outputs[options["dtype"]] = out
    for name, dtype in BOUNDS.items():
        like = outputs[dtype]
        methods.append(Method(name, fill(DeviceArray(like.shape, like.dtype))))
        answers |= check_answers(methods[-1:], None)
    return compare(context, part.comparisons[0], methods, answers, budget=arena_budget(context))


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
    from octopus_study.reference import crops as reference

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
