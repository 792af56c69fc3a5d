"""The study of the drone's video, run quickly on the CPU: who takes part in what, and what is only counted."""

from __future__ import annotations

import pytest

from octopus_study.data.video import Clip
from octopus_study.measure import read_rows
from octopus_study.studies.drone import study as drone
from octopus_study.studies.drone.video import OctopusFrames


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


def clip_of(context, name, frames):
    return Clip(name, tuple(context.workload.pool[k : k + 3] for k in range(frames)))


def test_a_wrong_answer_in_any_checked_frame_is_told(context):
    footage = drone.footage_of(context, 2)
    video = drone.video_of(context, clip_of(context, "clip-1s", 4), footage)
    good = OctopusFrames(video)
    assert drone.answer(video, good, footage) == "same"
    run_well = good.run
    good.run = lambda: (run_well(), video.number == 3 and video.job.out.fill(7))
    assert drone.answer(video, good, footage).startswith("different: by as much as")
