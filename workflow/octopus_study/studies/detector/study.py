"""Study `detector`: detection end to end, its input prepared by OpenCV on the CPU, or by Octopus beside the network.

A camera pans over the data set's frame; each frame lies on the host, and its detections end there. The input is the
whole frame, letterboxed and normalised. The stages are timed one by one and together, every frame by every method in
turn.

Where a side of the frame is an odd multiple of that of the input (1920 to 640: three to one), every sample falls on the
middle of a pixel: nothing is interpolated, and even bytes lose nothing. So the detections are compared for a second,
slightly smaller input too, whose pixels have to be interpolated; that one is not timed. Where bytes then end in other
detections, that says that the input differs; how much of it a trained network would notice is not measured.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.measure import Case, Method, Row, again, check_answers
from octopus_study.measure.rows import describe
from octopus_study.measure.series import run_series
from octopus_study.peers.availability import Unavailable, make_all, need_torch
from octopus_study.peers.job import TOLERANCE_LEVELS
from octopus_study.status import NO_ANSWER, SAME, different
from octopus_study.studies.comparison import BASE, Comparison, Part
from octopus_study.studies.context import Context
from octopus_study.studies.detector.answers import (
    BOX_TOLERANCE,
    IOU_TOLERANCE,
    SCORE_TOLERANCE,
    Difference,
    Thresholds,
    difference,
)
from octopus_study.studies.detector.inputs import INPUT_METHODS, InputJob, InputMethod
from octopus_study.studies.detector.model import NAME, REPRODUCIBLE, Detections, Detector, reproducible

log = logging.getLogger(__name__)

STUDY = "detector"
STAGES = ("preprocess", "inference", "postprocess", "end_to_end")
COUNTS = ("detections", "frames_differing")
PAN = 8  # pixels from frame to frame
EXAMPLES = 4  # frames that set the detector's statistics
CHECKED = 8  # frames on which Octopus's own detections are compared with those of the float64 reference
SMALLER = 32  # pixels by which the second input is smaller; a multiple of the network's coarsest step
Frame = NDArray[np.uint8]


class Camera:
    """A frame that moves to the right and, where it ends, back again; mirrored at its edge."""

    def __init__(self, frame: Frame) -> None:
        self._width = frame.shape[1]
        self._wide = np.concatenate([frame, frame[:, ::-1]], axis=1)

    def frame(self, index: int) -> Frame:
        """The frame of this number, in memory of its own."""
        shift = abs((PAN * index + self._width) % (2 * self._width) - self._width)
        return np.ascontiguousarray(self._wide[:, shift : shift + self._width])


@dataclass(frozen=True)
class Bench:
    """Camera, detector, and the methods that feed it."""

    job: InputJob
    camera: Camera
    detector: Detector
    inputs: dict[str, InputMethod]  # those that can be had here, by name; Octopus first
    missing: dict[str, str]  # why the others can't

    @property
    def thresholds(self) -> Thresholds:
        """Where the detector decides."""
        return Thresholds(self.detector.score_threshold, self.detector.iou_threshold)

    def detect(self, method: InputMethod, frame: Frame) -> Detections:
        """All of it: from the frame on the host to its detections there."""
        return self.detector.finish(self.detector.infer(method.prepare(frame)), method.back)

    def expected(self, frame: Frame) -> Detections:
        """What the detector finds in the right input."""
        base = self.inputs[BASE]
        planes = base.torch.from_numpy(self.job.expected(frame)).to(base.device)
        base.prepare(frame)  # for the way back
        return self.detector.finish(self.detector.infer(planes), base.back)


def plan(context: Context) -> list[Part]:
    """One part: the stages of every method on every frame, and its detections."""
    settings = context.config.detector
    case = Case(STUDY, context.workload.dataset, f"{NAME}-random-weights", settings.frames)
    names = tuple(kind.name for kind in INPUT_METHODS)
    stages = (Comparison(case, stage, "host", names) for stage in STAGES)
    counted, differing = (
        Comparison(case, quantity, "deterministic", methods, "count")
        for quantity, methods in zip(COUNTS, (names, names[1:]), strict=True)
    )
    return [Part(_measure, (*stages, counted, differing))]


def _measure(context: Context, part: Part) -> Iterator[Row]:
    try:
        torch = need_torch(context.device, "models")
        bench = _make_bench(context, context.config.detector.size)
    except Exception as error:  # a missing or broken package is a row, never the end of the study
        raise Unavailable(describe(error)) from error
    with reproducible(torch):
        yield from _measured(context, part, bench)
        yield from _interpolated(context, part.case)


def _measured(context: Context, part: Part, bench: Bench) -> Iterator[Row]:
    context.notes["detector"] = _notes(bench)
    for comparison in part.comparisons:
        yield from comparison.missing(bench.missing)
    inputs = _input_answers(bench)
    rows, answers = _detections(part.case, bench)
    yield from rows
    for stage in STAGES:
        log.info("%s", stage)
        yield from _timed(context, part.case, bench, stage, inputs if stage == "preprocess" else answers)


def _interpolated(context: Context, case: Case) -> list[Row]:
    """The detections once more for an input that no side of the frame is a multiple of."""
    height, width = context.config.detector.size
    size = (max(height - SMALLER, SMALLER), max(width - SMALLER, SMALLER))
    log.info("detections of an input of %d x %d", *size)
    bench = _make_bench(context, size)
    frames = max(case.n // 4, 1)
    return _detections(case._replace(workload=f"{case.workload}-{size[0]}x{size[1]}", n=frames), bench)[0]


def _make_bench(context: Context, size: tuple[int, int]) -> Bench:
    """Detector and inputs; a method that can't be had becomes a reason, but without Octopus there is no study."""
    crop, frame = context.config.crop, context.workload.frame
    job = InputJob(frame.shape, size, crop.mean, crop.std, context.device, context.thread_count)
    camera = Camera(frame)
    examples = np.concatenate([job.expected(camera.frame(index)) for index in range(EXAMPLES)])
    detector = Detector(examples, context.device, context.seed)
    base, *others = INPUT_METHODS
    octopus = base(job)
    inputs, missing = make_all({kind.name: partial(kind, job) for kind in others})
    return Bench(job, camera, detector, {base.name: octopus, **inputs}, missing)


def _notes(bench: Bench) -> dict[str, Any]:
    return {
        "model": f"torchvision {NAME}",
        "weights": "random, from the study's seed; batch normalisation set by example frames",
        "examples": EXAMPLES,
        "score_threshold": bench.thresholds.score,
        "iou_threshold": bench.thresholds.iou,
        "cudnn": REPRODUCIBLE,
        "same_within": {
            "box_px": BOX_TOLERANCE, "score": SCORE_TOLERANCE, "iou_at_threshold": IOU_TOLERANCE,
        },
        "frames": f"the data set's frame, panned by {PAN} px from frame to frame",
    }  # fmt: skip


def _input_answers(bench: Bench) -> dict[str, str]:
    """Each method's input beside the float64 reference."""
    frame = bench.camera.frame(1)
    tolerance = TOLERANCE_LEVELS / max(bench.job.std)
    planes: dict[str, Any] = {}

    def method(name: str, source: InputMethod) -> Method:
        def prepare() -> None:
            planes[name] = source.prepare(frame)

        return Method(name, prepare, lambda: planes[name].cpu().numpy(), tolerance, source.why_different)

    methods = [method(name, source) for name, source in bench.inputs.items()]
    return check_answers(methods, bench.job.expected(frame))


def _detections(case: Case, bench: Bench) -> tuple[list[Row], dict[str, str]]:
    """Count and compare the detections of all frames: rows, and the answer of each method."""
    counts = dict.fromkeys(bench.inputs, 0)
    differences: dict[str, list[Difference]] = {name: [] for name in bench.inputs}
    for index in range(case.n):
        frame = bench.camera.frame(index)
        results = {name: bench.detect(method, frame) for name, method in bench.inputs.items()}
        for name, result in results.items():
            counts[name] += len(result.boxes)
            if name != BASE:
                differences[name].append(difference(result, results[BASE], bench.thresholds))
        if index < CHECKED:
            differences[BASE].append(difference(results[BASE], bench.expected(frame), bench.thresholds))
    answers = {name: _verdict(of_frames, bench.inputs[name]) for name, of_frames in differences.items()}
    rows = [
        case.row(name, "deterministic", "detections", "count", count, answer=answers[name])
        for name, count in counts.items()
    ]
    for name in list(differences)[1:]:
        rows += _difference_rows(case, name, differences[name], answers[name])
    return rows, answers


def _verdict(differences: list[Difference], method: InputMethod) -> str:
    wrong = sum(one.unmatched > 0 for one in differences)
    if not wrong:
        return SAME
    why = f"; {method.why_different}" if method.why_different else ""
    return different(f"other detections in {wrong} of {len(differences)} frames{why}")


def _difference_rows(case: Case, method: str, differences: list[Difference], answer: str) -> list[Row]:
    counts = {
        "frames_differing": sum(one.unmatched > 0 for one in differences),
        "detections_unmatched": sum(one.unmatched for one in differences),
        "detections_on_edge": sum(one.on_edge for one in differences),
    }
    return [
        case.row(method, "deterministic", name, "count", value, answer=answer)
        for name, value in counts.items()
    ]


@dataclass
class _Turn:
    """What one frame needs before a stage is timed: the frame, or what the stages before made of it."""

    bench: Bench
    stage: str
    ready: dict[str, Any] = field(default_factory=dict)

    def take(self, index: int) -> None:
        """Go to a frame."""
        frame = self.bench.camera.frame(index)
        for name, method in self.bench.inputs.items():
            item: Any = frame
            if self.stage in ("inference", "postprocess"):
                item = method.prepare(frame)
            if self.stage == "postprocess":
                item = self.bench.detector.infer(item)
            self.ready[name] = item

    def work(self, name: str) -> Callable[[], object]:
        """The stage by one method."""
        bench, method, ready = self.bench, self.bench.inputs[name], self.ready
        stages: dict[str, Callable[[], object]] = {
            "preprocess": lambda: method.prepare(ready[name]),
            "inference": lambda: bench.detector.infer(ready[name]),
            "postprocess": lambda: bench.detector.finish(ready[name], method.back),
            "end_to_end": lambda: bench.detect(method, ready[name]),
        }
        return stages[self.stage]


def _timed(context: Context, case: Case, bench: Bench, stage: str, answers: dict[str, str]) -> list[Row]:
    """Every frame by every method; the rows' block is the frame."""
    turn = _Turn(bench, stage)
    methods = [Method(name, turn.work(name)) for name in bench.inputs]
    methods.append(again(methods[0]))
    verdicts = {method.name: answers[method.name.removesuffix("-again")] for method in methods}
    if stage == "inference":
        verdicts = dict.fromkeys(verdicts, NO_ANSWER)
    limits = replace(context.budget, min_blocks=min(context.budget.min_blocks, case.n))
    return run_series(
        case, stage, "ms", methods, case.n, turn.take, context.host_clock(), limits, verdicts, context.seed
    )
