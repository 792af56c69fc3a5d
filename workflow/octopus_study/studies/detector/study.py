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
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.availability import Unavailable, make_all, need_torch
from octopus_study.baselines.job import TOLERANCE_LEVELS
from octopus_study.measure import Case, Method, Row, again, check_answers
from octopus_study.measure.rows import describe
from octopus_study.measure.series import run_series
from octopus_study.status import NO_ANSWER, SAME, different
from octopus_study.studies.comparison import BASE, Comparison, Part
from octopus_study.studies.context import Context
from octopus_study.studies.detector.inputs import INPUT_METHODS, InputJob, InputMethod
from octopus_study.studies.detector.model import NAME, Detections, Detector, reproducible

log = logging.getLogger(__name__)

STUDY = "detector"
STAGES = ("preprocess", "inference", "postprocess", "end_to_end")
COUNTS = ("detections", "detections_unmatched")
PAN = 8  # pixels from frame to frame
EXAMPLES = 4  # frames that set the detector's statistics
CHECKED = 8  # frames on which Octopus's own detections are compared with those of the float64 reference
SMALLER = 32  # pixels by which the second input is smaller; a multiple of the network's coarsest step
# People read boxes in whole pixels and scores in percent. What rounding does is far less, and other pixels under a box
# change more.
BOX_TOLERANCE, SCORE_TOLERANCE = 1.0, 0.005  # the former in pixels of the frame
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
    counts = (
        Comparison(case, quantity, "deterministic", methods, "count")
        for quantity, methods in zip(COUNTS, (names, names[1:]), strict=True)
    )
    return [Part(_measure, (*stages, *counts))]


def _measure(context: Context, part: Part) -> Iterator[Row]:
    try:
        torch = need_torch(context.device, "models")
        bench = _make_bench(context, context.config.detector.size)
    except Exception as error:  # a missing or broken package is a row, never the end of the study
        raise Unavailable(describe(error)) from error
    context.notes["detector"] = {
        "model": f"torchvision {NAME}",
        "weights": "random, from the study's seed; batch normalisation set by example frames",
        "same_within": {"box_px": BOX_TOLERANCE, "score": SCORE_TOLERANCE},
    }
    with reproducible(torch):
        for comparison in part.comparisons:
            yield from comparison.missing(bench.missing)
        inputs = _input_answers(bench)
        rows, answers = _detections(part.case, bench)
        yield from rows
        for stage in STAGES:
            log.info("%s", stage)
            yield from _timed(context, part.case, bench, stage, inputs if stage == "preprocess" else answers)
        yield from _interpolated(context, part.case)


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
    alone: dict[str, list[int]] = {name: [] for name in bench.inputs}
    for index in range(case.n):
        frame = bench.camera.frame(index)
        results = {name: bench.detect(method, frame) for name, method in bench.inputs.items()}
        for name, result in results.items():
            counts[name] += len(result.boxes)
            if name != BASE:
                alone[name].append(unmatched(result, results[BASE]))
        if index < CHECKED:
            alone[BASE].append(unmatched(results[BASE], bench.expected(frame)))
    answers = {name: _verdict(of_frames, bench.inputs[name]) for name, of_frames in alone.items()}
    values = [(name, "detections", count) for name, count in counts.items()]
    values += [(name, "detections_unmatched", sum(alone[name])) for name in alone if name != BASE]
    rows = [
        case.row(name, "deterministic", quantity, "count", value, answer=answers[name])
        for name, quantity, value in values
    ]
    return rows, answers


def _verdict(alone: list[int], method: InputMethod) -> str:
    if not (wrong := sum(count > 0 for count in alone)):
        return SAME
    why = f"; {method.why_different}" if method.why_different else ""
    return different(f"other detections in {wrong} of {len(alone)} frames{why}")


def unmatched(result: Detections, expected: Detections) -> int:
    """How many detections of either result for one frame have no partner in the other, in whatever order they come.

    The nearest are partners first, and each detection has one at most. One whose score falls on the other side of the
    detector's threshold, since the inputs of two methods differ by rounding, has none.
    """
    box = np.abs(result.boxes[:, None] - expected.boxes[None]).max(axis=2, initial=0)
    score = np.abs(result.scores[:, None] - expected.scores[None])
    same = (box <= BOX_TOLERANCE) & (score <= SCORE_TOLERANCE)
    here, there = np.nonzero(same & (result.labels[:, None] == expected.labels[None]))
    ours, theirs = set(range(len(result.boxes))), set(range(len(expected.boxes)))
    for pair in np.argsort(box[here, there], kind="stable"):
        if here[pair] in ours and there[pair] in theirs:
            ours.remove(here[pair])
            theirs.remove(there[pair])
    return len(ours) + len(theirs)


def _timed(context: Context, case: Case, bench: Bench, stage: str, answers: dict[str, str]) -> list[Row]:
    """Every frame by every method; the rows' block is the frame."""
    ready: dict[str, Any] = {}  # what a stage starts from: the frame, or what the stages before made of it

    def turn(index: int) -> None:
        frame = bench.camera.frame(index)
        for name, method in bench.inputs.items():
            item: Any = frame
            if stage in ("inference", "postprocess"):
                item = method.prepare(frame)
            if stage == "postprocess":
                item = bench.detector.infer(item)
            ready[name] = item

    def work(name: str) -> Callable[[], object]:
        detector, method = bench.detector, bench.inputs[name]
        return {
            "preprocess": lambda: method.prepare(ready[name]),
            "inference": lambda: detector.infer(ready[name]),
            "postprocess": lambda: detector.finish(ready[name], method.back),
            "end_to_end": lambda: bench.detect(method, ready[name]),
        }[stage]

    methods = [Method(name, work(name)) for name in bench.inputs]
    methods.append(again(methods[0]))
    verdicts = {method.name: answers[method.name.removesuffix("-again")] for method in methods}
    if stage == "inference":
        verdicts = dict.fromkeys(verdicts, NO_ANSWER)
    limits = replace(context.budget, min_blocks=min(context.budget.min_blocks, case.n))
    clock = context.host_clock()
    return run_series(case, stage, "ms", methods, case.n, turn, clock, limits, verdicts, context.seed)
