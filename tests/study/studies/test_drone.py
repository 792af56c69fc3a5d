"""The study of the drone's video, run quickly on the CPU: who takes part in what, and what is only counted."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from selecting import chosen

from octopus_study.data.video import Clip
from octopus_study.studies.drone import frames as video_frames
from octopus_study.studies.drone import stream as drone_stream
from octopus_study.studies.drone import study as drone

SMALL = {"crop.size": [16, 24], "drone.frame_rate": 6, "drone.detections": [2, 5]}
ON_CPU = {
    "octopus", "octopus-again", "n-launches", "n-launches-published", "opencv", "opencv-table", "opencv-table-threads",
}  # fmt: skip


def measured(rows, **where):
    rows = chosen(rows, **where)
    return rows[rows.value.notna() & (rows.quantity != "discarded_blocks")]


@pytest.fixture(scope="module")
def rows(quick_rows):
    # Nothing is given up on a machine that does much besides.
    changes = {"drone.seconds": [1, 2], "drone.paced": True, "drone.frame_rate": 30}
    changes |= {"measure.give_up_seconds": 600}
    return quick_rows("drone", **SMALL | changes)


def test_clips_are_counted(rows):
    facts = rows[rows.layer == "deterministic"].set_index(["workload", "quantity"]).value
    assert facts["clip-1s", "frames"] == 30 and facts["clip-2s", "frames"] == 60
    assert facts["clip-1s", "frame_budget"] == pytest.approx(33.33, abs=0.01)
    for name in ("clip-1s", "clip-2s"):
        assert set(rows.n[rows.workload == name]) == {facts[name, "detections"]}
    assert set(rows.n[rows.workload == "second"]) == {facts["clip-1s", "detections"]}


def test_every_method_does_every_frame_of_every_clip(rows):
    for clip, frames in (("clip-1s", 30), ("clip-2s", 60)):
        found = measured(rows, workload=clip, layer="host", quantity="frame_time")
        assert set(found.method) == ON_CPU
        for _, series in found.groupby("method"):
            assert list(series.block) == list(range(frames))


def test_the_longest_clip_is_also_played_at_its_rate(rows):
    found = measured(rows, layer="paced")
    assert set(found.workload) == {"clip-2s"} and set(found.quantity) == {"frame_time"}
    assert set(found.method) == {
        "octopus", "n-launches", "n-launches-published", "opencv", "opencv-table-threads",
    }  # fmt: skip
    assert set(found.groupby("method").size()) == {60}


def test_answers_are_those_of_the_reference_and_the_published_rounding_is_told(rows):
    found = measured(rows, layer="host")
    published = found.method == "n-launches-published"
    assert set(found.answer[~published]) == {"same"}
    assert found.answer[published].str.contains("rounds to uint8").all()


def test_a_second_is_cropped_frame_by_frame_and_as_a_batch(rows):
    found = measured(rows, workload="second")
    assert set(found.method) == {"octopus", "octopus-again", "octopus-batch"}
    assert set(found.quantity) == {"clip_time"} and set(found.layer) == {"host"}


def test_what_needs_a_gpu_says_so(rows):
    gaps = rows[rows.value.isna() & (rows.quantity != "discarded_blocks")]
    found = set(zip(gaps.workload, gaps.layer, gaps.method, strict=True))
    streams = {("second", "pipelined", name) for name in drone_stream.NAMES}
    graphs = {(clip, "host", "octopus-graph") for clip in ("clip-1s", "clip-2s")}
    assert found == streams | graphs | {("clip-2s", "paced", "octopus-graph")}
    assert set(gaps.answer) == {"unavailable: needs a CUDA GPU"}


def test_generated_data_are_marked(rows):
    assert set(rows.dataset) == {"synthetic-visdrone"}


def test_what_does_not_fit_and_what_fails_have_rows(quick_rows, monkeypatch):
    class Broken(video_frames.OpenCvFrames):
        def __init__(self, video):
            raise RuntimeError("no such library")

    others = [kind for kind in video_frames.FRAME_METHODS if kind.name != "opencv"]
    monkeypatch.setattr(drone, "FRAME_METHODS", (*others, Broken))
    monkeypatch.setattr("octopus_study.studies.context.cpu.free_bytes", lambda: 1_000)
    small = quick_rows("drone", **SMALL)
    assert small[small.layer == "host"].answer.str.contains("1,000 are free").all()
    assert set(small.method[small.layer == "host"]) == {
        *(ON_CPU - {"octopus-again"}), "octopus-graph", "octopus-batch",
    }  # fmt: skip
    monkeypatch.setattr("octopus_study.studies.context.cpu.free_bytes", lambda: 1 << 40)
    broken = quick_rows("drone", **SMALL)
    (row,) = broken[broken.method == "opencv"].itertuples()
    assert row.answer == "unavailable: RuntimeError: no such library"


@pytest.fixture
def context(quick_context):
    return quick_context("drone", **SMALL)


def clip_of(context, name, frames):
    return Clip(name, tuple(context.workload.pool[k : k + 3] for k in range(frames)))


def test_a_wrong_answer_in_any_checked_frame_is_told(context):
    footage = drone.footage_of(context, 2)
    video = drone._video(context, clip_of(context, "clip-1s", 4), footage)
    good = video_frames.OctopusFrames(video)
    assert drone.answer(video, good, footage) == "same"
    run_well = good.run
    good.run = lambda: (run_well(), video.number == 3 and video.job.out.fill(7))
    assert drone.answer(video, good, footage).startswith("different: largest error")


def test_the_loops_of_the_stream_answer_rightly_on_the_cpu_too(context):
    footage, clip = drone.footage_of(context, 4), clip_of(context, "second", 5)
    methods, answers = drone_stream.loops(context, clip, footage)
    assert [method.name for method in methods] == list(drone_stream.NAMES)
    assert answers == {
        "stream-serial": "same", "stream-overlapped": "same", "upload-only": "n/a", "kernels-only": "same",
    }  # fmt: skip
    assert np.isfinite(footage.crops(0, clip.boxes[0])).all()


def test_the_stream_is_shared_by_several_processes(quick_context, monkeypatch):
    context = quick_context("drone", **SMALL, **{"measure.processes": 2})
    footage, clip = drone.footage_of(context, 4), clip_of(context, "second", 5)
    made, part = drone_stream.loops(context, clip, footage), drone.plan(context)[-1]
    on_gpu = dataclasses.replace(context, device="cuda")
    monkeypatch.setattr(type(context), "_synchronize", lambda self: None)
    monkeypatch.setattr(drone_stream, "loops", lambda *given: made)
    rows = list(drone_stream.stream_rows(clip, footage, on_gpu, part))
    assert {row.method for row in rows if row.quantity == "clip_time"} == {
        *drone_stream.NAMES,
        "stream-serial-again",
    }
    assert list(on_gpu.shared.values()) == [list(drone_stream.NAMES)]
