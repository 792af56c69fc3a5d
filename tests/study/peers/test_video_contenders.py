"""Contenders on a video: every frame's own crops, whichever frame was worked on before, and clips as a whole."""

from __future__ import annotations

import numpy as np
import pytest
from octopus_study.data.video import make_clips, panned
from octopus_study.peers.availability import Unavailable
from octopus_study.studies.drone.clips import (
    BUFFERS,
    BatchOfFrames,
    KernelsAlone,
    Streamed,
    UploadsAlone,
    WholeClip,
)
from octopus_study.studies.drone.frames import CONTENDERS, OctopusGraphs
from octopus_study.studies.drone.video import Video

from octopus import crop_resize

SIZE, MEAN, STD = (20, 28), (123.7, 116.3, 103.5), (58.4, 57.1, 57.4)
FRAME = np.random.default_rng(1).integers(0, 256, (120, 160, 3), np.uint8)
RING = panned(FRAME, 3, step=5)
POOL = np.array(
    [[x, y, x + 9 + x % 13, y + 5 + y % 17] for x in range(0, 130, 7) for y in range(0, 90, 8)], np.int32
)
CLIP = make_clips(POOL, (1,), frame_rate=8, detections=(1, 6))[0]
OPTIONS = {"size": SIZE, "mean": MEAN, "std": STD}
ON_CPU = [kind for kind in CONTENDERS if kind is not OctopusGraphs]


def video(keep=False):
    return Video(RING, CLIP.boxes, SIZE, MEAN, STD, "cpu", keep)


def right(number, ring=3):
    return crop_resize(RING[number % ring], CLIP.boxes[number], SIZE, mean=MEAN, std=STD, device="cpu")


@pytest.mark.parametrize("kind", ON_CPU)
def test_a_contender_makes_the_crops_of_the_frame_that_the_video_was_turned_to(kind):
    clip = video()
    contender = kind(clip)
    tolerance = 0.01 if contender.why_different else 1e-4  # the published passes round to uint8
    for number in (3, 0, 7, 4):
        clip.turn(number)
        contender.job.poison()
        contender.run()
        assert np.abs(contender.job.result() - right(number)).max() < tolerance


def test_graphs_are_for_gpus():
    with pytest.raises(Unavailable, match="needs a CUDA GPU"):
        OctopusGraphs(video())


def test_crops_of_all_frames_share_memory_unless_they_are_kept():
    shared, kept = video(), video(keep=True)
    assert shared.out.shape[0] == CLIP.most and kept.out.shape[0] == CLIP.detections
    assert np.shares_memory(shared.jobs[0].out, shared.jobs[1].out)
    assert not np.shares_memory(kept.jobs[0].out, kept.jobs[1].out)


@pytest.mark.parametrize("kind", [WholeClip, BatchOfFrames])
def test_a_clip_frame_by_frame_and_as_one_batch(kind):
    clip = video(keep=True)
    way, job = kind(clip), clip.whole_job()
    job.poison()
    way.run()
    assert len(job.boxes) == CLIP.detections
    assert np.abs(job.result() - np.concatenate([right(k) for k in range(8)])).max() < 1e-4


@pytest.mark.parametrize("way", ["overlapped", "serial", "resident"])
def test_streams_end_with_the_crops_of_the_last_two_frames(way):
    inputs = (RING, CLIP.boxes, OPTIONS, "cpu")
    made = KernelsAlone(*inputs) if way == "resident" else Streamed(*inputs, overlap=way == "overlapped")
    made.poison()
    made.run()
    expected = np.concatenate([right(number, BUFFERS) for number in (6, 7)])
    assert np.array_equal(made.result(), expected)


def test_uploads_alone_hand_over_every_frame_and_leave_the_crops():
    streamed = Streamed(RING, CLIP.boxes, OPTIONS, "cpu", overlap=True)
    streamed.run()
    before = streamed.result().copy()
    UploadsAlone(streamed).run()
    assert np.array_equal(streamed.result(), before)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", CONTENDERS)
def test_on_a_gpu_every_contender_makes_every_frames_crops(kind):
    clip = Video(RING, CLIP.boxes, SIZE, MEAN, STD, "cuda")
    contender = kind(clip)
    for _ in range(2):
        for number in (3, 0, 7, 4):
            clip.turn(number)
            contender.job.poison()
            contender.run()
            assert np.abs(contender.job.result() - right(number)).max() < 0.01


@pytest.mark.gpu
def test_on_a_gpu_whole_clips_and_streams_give_the_same_crops():
    clip = Video(RING, CLIP.boxes, SIZE, MEAN, STD, "cuda", keep=True)
    for way in (WholeClip(clip), BatchOfFrames(clip)):
        clip.whole_job().poison()
        way.run()
        assert np.abs(clip.out.copy_to_host() - np.concatenate([right(k) for k in range(8)])).max() < 1e-3
    inputs = (RING, CLIP.boxes, OPTIONS, "cuda")
    expected = np.concatenate([right(number, BUFFERS) for number in (6, 7)])
    for made in (Streamed(*inputs, overlap=True), Streamed(*inputs, overlap=False), KernelsAlone(*inputs)):
        made.poison()
        made.run()
        assert np.abs(made.result() - expected).max() < 1e-3
