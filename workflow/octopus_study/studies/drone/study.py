"""Study `drone`: the crops of a video's detections, frame by frame, against the time that a frame has.

A frame begins on the host and ends as crops on the device (OpenCV's on the host). Frames come as fast as they can be
processed, each by all methods in random order (layer `host`), or at the camera's rate, the machine idle in between and
each method alone with the clip (layer `paced`). Beside a GPU the frames lie in page-locked memory, and back to back
each run follows an untimed one of the same frame; at the camera's rate nothing is warm.
"""

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from octopus_study.baselines.availability import make_all
from octopus_study.data.video import Clip, make_clips, panned
from octopus_study.measure import PacedClock, Row, again, run_series
from octopus_study.status import SAME
from octopus_study.studies.comparison import BASE, Comparison, Part
from octopus_study.studies.context import Context
from octopus_study.studies.crops import check, reference_of
from octopus_study.studies.drone.video import FRAME_METHODS, Footage, FrameMethod, Video

QUANTITY = "frame_time"
RING, STEP = 4, 8  # frames that differ, and how far the camera moves from one to the next in pixels
CHECKED_FRAMES = 3  # of a clip, with all their crops
PACED = ("octopus", "n-launches", "n-launches-published", "opencv", "opencv-table-threads")


def plan(context: Context) -> list[Part]:
    """A part for each clip."""
    settings = context.config.drone
    clips = make_clips(context.workload.pool, settings.seconds, settings.frame_rate, settings.detections, context.seed)
    footage = footage_of(context, RING, STEP)
    return [_clip_part(context, clip, footage, paced=settings.paced and clip is clips[-1]) for clip in clips]


def footage_of(context: Context, count: int, step: int = STEP) -> Footage:
    """Frames that differ, panned over the data set's, and the right crops of each."""
    ring = panned(context.workload.frame, count, step)
    return Footage(ring, [reference_of(context, frame) for frame in ring])


def _clip_part(context: Context, clip: Clip, footage: Footage, paced: bool) -> Part:
    case, names = context.case(clip.name, clip.detections), tuple(FRAME_METHODS)
    layers = {"host": names} | ({"paced": PACED} if paced else {})
    comparisons = (Comparison(case, QUANTITY, layer, methods) for layer, methods in layers.items())
    return Part(partial(_clip, clip, footage), tuple(comparisons))


def _clip(clip: Clip, footage: Footage, context: Context, part: Part) -> Iterator[Row]:
    """What a clip is, and the time of each of its frames."""
    frame_budget = 1e3 / context.config.drone.frame_rate
    yield part.case.row("clip", "deterministic", "detections", "count", clip.detections)
    yield part.case.row("clip", "deterministic", "frames", "count", len(clip.boxes))
    yield part.case.row("clip", "deterministic", "frame_budget", "ms", frame_budget)
    context.require_room(clip.most)
    video = video_of(context, clip, footage)
    methods, missing = make_all({name: partial(kind, video) for name, kind in FRAME_METHODS.items()})
    answers = {name: answer(video, method, footage) for name, method in methods.items()}
    for comparison in part.comparisons:
        chosen = {name: methods[name] for name in comparison.methods if name in methods}
        yield from _series(context, comparison, video, chosen, answers)
        yield from comparison.missing(missing)


def video_of(context: Context, clip: Clip, footage: Footage) -> Video:
    return Video(footage.ring, clip.boxes, **context.config.crop.model_dump(), device=context.device)


def answer(video: Video, method: FrameMethod, footage: Footage) -> str:
    """What a method's crops of a few frames say, of the first one that is not right."""
    for number in np.linspace(0, video.frames - 1, CHECKED_FRAMES).round().astype(int).tolist():
        video.turn(number)
        expected = footage.crops(number, method.job.boxes)
        verdict = check(method.job, [method.timed()], expected)[method.name]
        if verdict != SAME:
            return verdict
    return SAME


def _series(
    context: Context,
    comparison: Comparison,
    video: Video,
    chosen: Mapping[str, FrameMethod],
    answers: Mapping[str, str],
) -> list[Row]:
    """Every frame by every method: frame after frame, or at a pace each method by itself."""
    clock, together = context.host_clock(), comparison.layer == "host"
    if not together:
        clock = PacedClock(1e3 / context.config.drone.frame_rate, clock.synchronize, clock.throttle)
    methods = [method.timed() for method in chosen.values()]
    methods += [again(method) for method in methods if together and method.name == BASE]
    verdicts = {method.name: answers[method.name.removesuffix("-again")] for method in methods}
    return run_series(
        comparison.case, QUANTITY, "ms", methods, video.frames, video.turn, clock, context.budget, verdicts,
        context.seed, together=together,
    )  # fmt: skip
