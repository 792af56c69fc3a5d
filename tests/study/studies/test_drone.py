"""The study of the drone's video: who takes part in what, what is only counted, and every frame's own crops."""

import numpy as np
import pytest

from octopus import crop_resize
from octopus_study.data.video import Clip, make_clips, panned
from octopus_study.measure import read_rows
from octopus_study.studies.drone import study as drone
from octopus_study.studies.drone.video import FRAME_METHODS, OctopusFrames, Video


def test_clips_are_counted_and_every_method_does_every_frame(runs):
    rows = read_rows(runs["drone"])
    facts = rows[rows.layer == "deterministic"].set_index(["workload", "quantity"]).value
    assert facts["clip-1s", "frames"] == 30
    assert facts["clip-1s", "frame_budget"] == pytest.approx(33.33, abs=0.01)
    assert set(rows.n) == {facts["clip-1s", "detections"]}
    timed = rows[rows.value.notna() & (rows.quantity == "frame_time")]
    assert set(timed.layer) == {"host", "paced"} and len(timed.method.unique()) == 7
    assert {tuple(series.block) for _, series in timed.groupby(["layer", "method"])} == {tuple(range(30))}


@pytest.fixture
def context(quick_context):
    return quick_context("drone")


def test_a_wrong_answer_in_any_checked_frame_is_told(context):
    footage = drone.footage_of(context, 2)
    clip = Clip("clip-1s", tuple(context.workload.pool[k : k + 3] for k in range(4)))
    video = drone.video_of(context, clip, footage)
    good = OctopusFrames(video)
    assert drone.answer(video, good, footage) == "same"
    run_well = good.run
    good.run = lambda: (run_well(), video.number == 3 and video.job.out.fill(7))
    assert drone.answer(video, good, footage).startswith("different: by as much as")


SIZE, MEAN, STD = (20, 28), (123.7, 116.3, 103.5), (58.4, 57.1, 57.4)
FRAME = np.random.default_rng(1).integers(0, 256, (120, 160, 3), np.uint8)
RING = panned(FRAME, 3, step=5)
POOL = np.array([[x, y, x + 9 + x % 13, y + 5 + y % 17] for x in range(0, 130, 7) for y in range(0, 90, 8)], np.int32)
CLIP = make_clips(POOL, (1,), frame_rate=8, detections=(1, 6))[0]


def right(number):
    return crop_resize(RING[number % 3], CLIP.boxes[number], SIZE, mean=MEAN, std=STD, device="cpu")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("name", FRAME_METHODS)
def test_a_method_makes_the_crops_of_the_frame_that_the_video_was_turned_to(name, device):
    clip = Video(RING, CLIP.boxes, SIZE, MEAN, STD, device)
    method = FRAME_METHODS[name](clip)
    tolerance = 0.01 if method.why_different or device == "cuda" else 1e-4  # the published passes round to uint8
    for number in (3, 0, 7, 4) * 2:
        clip.turn(number)
        method.job.poison()
        method.run()
        assert np.abs(method.job.result() - right(number)).max() < tolerance
