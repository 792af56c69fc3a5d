"""Study `drone`: the crops of a video's detections, frame by frame, against the time that a frame has.

A frame begins on the host and ends as crops on the device (OpenCV's on the host). Frames come as fast as they can be
processed, each by all methods in random order (layer `host`), or at the camera's rate, the machine idle in between and
each method alone with the clip (layer `paced`). Beside a GPU the frames lie in page-locked memory, and back to back
each run follows an untimed one of the same frame; at the camera's rate nothing is warm.
"""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from octopus_study.data.video import Clip, make_clips, panned
from octopus_study.measure import Case, Clock, Method, PacedClock, Row, again, run_series, unavailable
from octopus_study.measure.rows import SAME, describe
from octopus_study.peers.availability import Unavailable
from octopus_study.studies.contest import BASE, Entry, ReferenceCrops, check, compare
from octopus_study.studies.context import Context
from octopus_study.studies.drone import stream as drone_stream
from octopus_study.studies.drone.clips import BatchOfFrames, WholeClip
from octopus_study.studies.drone.frames import CONTENDERS, Contender
from octopus_study.studies.drone.video import Video

log = logging.getLogger(__name__)
STUDY = "drone"
QUANTITY, WHOLE = "frame_time", "clip_time"
SECOND = "second"
RING, STEP = 4, 8  # frames that differ, and how far the camera moves from one to the next in pixels
CHECKED_FRAMES = 3  # of a clip, with all their crops
CHECK_EVERY = 10  # of the crops of a second
PACED = ("octopus", "octopus-graph", "n-launches", "opencv")


def rows(context: Context) -> list[Row]:
    """All rows of the study; progress goes to the log."""
    settings = context.config.drone
    lengths = (settings.seconds, settings.frame_rate, settings.detections, context.seed)
    clips = make_clips(context.workload.pool, *lengths)
    ring = panned(context.workload.frame, RING, STEP)
    crop = context.config.crop
    right = [ReferenceCrops(frame, crop.size, crop.mean, crop.std) for frame in ring]
    found = []
    for clip in clips:
        log.info("%s: %d detections", clip.name, clip.detections)
        found += _clip_rows(context, clip, ring, right, paced=settings.paced and clip is clips[-1])
    second = clips[0].head(SECOND, settings.frame_rate)
    found += _second_rows(context, second, ring, right)
    return found + drone_stream.rows(context, case_of(context, second), second, ring, right)


def case_of(context: Context, clip: Clip) -> Case:
    """A clip as a case, with its detections as size."""
    return Case(STUDY, context.workload.dataset, clip.name, clip.detections)


def _clip_rows(
    context: Context, clip: Clip, ring: NDArray[np.uint8], right: list[ReferenceCrops], paced: bool
) -> list[Row]:
    """What a clip is, and the time of each of its frames."""
    case, budget = case_of(context, clip), 1e3 / context.config.drone.frame_rate
    found = [
        case.row("clip", "deterministic", "detections", "count", clip.detections),
        case.row("clip", "deterministic", "frames", "count", len(clip.boxes)),
        case.row("clip", "deterministic", "frame_budget", "ms", budget),
    ]
    missing = context.shortage(clip.most)
    if missing:
        return found + [unavailable(case, kind.name, "host", QUANTITY, "ms", missing) for kind in CONTENDERS]
    video, host = _video(context, clip, ring), context.host_clock()
    contenders, gaps = _gather(video)
    answers = {each.name: _answer(video, each, right) for each in contenders}
    found += _series(context, case, video, contenders, host, answers)
    found += [unavailable(case, name, "host", QUANTITY, "ms", why) for name, why in gaps.items()]
    if paced:
        clock = PacedClock(budget, host.synchronize, host.throttle)
        chosen = [each for each in contenders if each.name in PACED]
        found += _series(context, case, video, chosen, clock, answers)
        found += [
            unavailable(case, name, "paced", QUANTITY, "ms", why)
            for name, why in gaps.items()
            if name in PACED
        ]
    return found


def _video(context: Context, clip: Clip, ring: NDArray[np.uint8], keep: bool = False) -> Video:
    crop = context.config.crop
    return Video(ring, clip.boxes, crop.size, crop.mean, crop.std, context.device, keep)


def _gather(video: Video) -> tuple[list[Contender], dict[str, str]]:
    """The contenders that can be had here, and why the others can't."""
    contenders: list[Contender] = []
    missing = {}
    for kind in CONTENDERS:
        try:
            contenders.append(kind(video))
        except Unavailable as error:
            missing[kind.name] = str(error)
        except Exception as error:  # any failure of a contender is a row, never the end of the study
            missing[kind.name] = describe(error)
    return contenders, missing


def _answer(video: Video, contender: Contender, right: list[ReferenceCrops]) -> str:
    """What a contender's crops of a few frames say, of the first one that is not right."""
    for number in np.linspace(0, video.frames - 1, CHECKED_FRAMES).round().astype(int).tolist():
        video.turn(number)
        job = contender.job
        entry = Entry(contender.name, contender.run, why_different=contender.why_different)
        answer = check(job, [entry], right[number % len(right)].of(job.boxes))[contender.name]
        if answer != SAME:
            return answer
    return SAME


def _series(
    context: Context,
    case: Case,
    video: Video,
    contenders: list[Contender],
    clock: Clock,
    answers: dict[str, str],
) -> list[Row]:
    """Every frame by every contender: frame after frame, or at a pace each contender by itself."""
    methods = [Method(each.name, each.run) for each in contenders]
    together = clock.layer == "host"
    if together and any(method.name == BASE for method in methods):
        methods.append(again(next(method for method in methods if method.name == BASE)))
    verdicts = {method.name: answers[method.name.removesuffix("-again")] for method in methods}
    return run_series(
        case, QUANTITY, "ms", methods, video.frames, video.turn, clock, context.budget, verdicts, context.seed,
        together=together,
    )  # fmt: skip


def _second_rows(
    context: Context, clip: Clip, ring: NDArray[np.uint8], right: list[ReferenceCrops]
) -> list[Row]:
    """A second of frames one by one, and as one batch."""
    case = case_of(context, clip)
    missing = context.shortage(clip.detections)
    if missing:
        return [
            unavailable(case, kind.name, "host", WHOLE, "ms", missing) for kind in (WholeClip, BatchOfFrames)
        ]
    video = _video(context, clip, ring, keep=True)
    owners = np.repeat(np.arange(video.frames), [job.count for job in video.jobs])[::CHECK_EVERY]
    boxes = video.whole_job().boxes[::CHECK_EVERY]
    expected = np.concatenate(
        [right[owner % len(right)].of(box[None]) for owner, box in zip(owners.tolist(), boxes, strict=True)]
    )
    entries = [Entry(kind.name, kind(video).run) for kind in (WholeClip, BatchOfFrames)]
    answers = check(video.whole_job(), entries, expected, CHECK_EVERY)
    budget = context.budget_within(context.config.drone.max_seconds)
    return compare(context, case, WHOLE, entries, context.host_clock(), answers, budget)
