"""The arena's roads, frames of video, affine maps and counts: what is planned, that wrong answers are seen, and that
claims and tables name what is planned."""

from __future__ import annotations

import dataclasses
import re
from itertools import chain
from pathlib import Path

import cv2
import numpy as np
import pytest

import octopus
from octopus_study.config import load_config
from octopus_study.data.workload import Workload
from octopus_study.errors import Unavailable
from octopus_study.names import INPUTS, ROADS
from octopus_study.peers.native_methods import from_nv12, to_nv12
from octopus_study.reference import crops as reference
from octopus_study.report.claims.rules import load_claims
from octopus_study.studies.arena import counts, roads, video, warp
from octopus_study.studies.crops import reference_of

CONFIG = Path(__file__).parents[3] / "config"
CPU = {"crop.size": [20, 24]}
FAST = ("bfloat16", "uint8-nhwc", "float16-320", "to-32", "frames", "frames-antialias")


@pytest.fixture(scope="module")
def context(quick_context):
    return quick_context("arena", **CPU)


@pytest.fixture
def on_gpu(context, monkeypatch):
    """What is planned on a GPU, at full effort; nothing is measured."""
    monkeypatch.setattr("octopus_study.studies.context.cuda_memory.total_bytes", lambda: 80 << 30)
    return dataclasses.replace(context, device="cuda", config=load_config(CONFIG / "config.yaml"))


def planned(context):
    crops = reference_of(context)
    every = (roads.parts(context), video.parts(context), warp.parts(context), counts.parts(context, crops))
    return [comparison for part in chain(*every) for comparison in part.comparisons]


def answers(rows):
    return {row.method: row.answer for row in rows if row.unit == "ms"}


def part_of(context, name, count):
    found = (part for part in roads.parts(context) if part.case[2:4] == (f"{roads.PREFIX}-{name}", count))
    return next(found)


def test_claims_and_tables_name_what_is_planned(on_gpu):
    asked = planned(on_gpu)
    assert {each.case.workload for each in asked if each.case.workload in ROADS} == set(ROADS)
    assert {name for name in INPUTS if "1thread" not in name} <= {each.case.workload for each in asked}
    ids = {
        f"{{run}}.arena.{each.case.workload}.n{each.case.n}.{method}.{each.quantity}.{each.layer}"
        for each in asked
        for method in each.methods
    }
    claims = [
        claim for claim in load_claims(CONFIG / "claims.yaml") if re.match("own-(road|video|count)", claim.id)
    ]
    named = [name for claim in claims for name in claim.ids("{run}")]
    assert len(named) > 20
    for name in named:
        number, _, derived = name.rpartition(".") if "_of_" in name or "_over_" in name else (name, "", "")
        assert number in ids, name
        other = derived.partition("_over_")[2]
        assert not other or f"{number.replace('.octopus.', f'.{other}.')}" in ids, name


@pytest.mark.parametrize("name", FAST)
def test_a_road_is_right_and_beside_its_bounds(context, name):
    for count in roads.ROADS[name].counts(context)[:1]:
        found = answers(part_of(context, name, count).rows(context))
        assert found == {
            "octopus": "same", "octopus-again": "same", "write-bound": "n/a"
        }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("bfloat16", {"edge": "image"}),
        ("frames-antialias", {"antialias": False}),
        ("to-32", {"antialias": True}),
    ],
)
def test_an_answer_to_other_options_is_seen(context, monkeypatch, name, options):
    right = roads.OnRoad.right

    def asked_otherwise(self, every):
        self._road = self._road._replace(options=dict(self._road.options) | options)
        return right(self, every)

    monkeypatch.setattr(roads.OnRoad, "right", asked_otherwise)
    found = answers(part_of(context, name, roads.ROADS[name].counts(context)[0]).rows(context))
    assert found["octopus"].startswith("different: largest error")


def test_memory_that_is_left_alone_is_seen(context, monkeypatch):
    monkeypatch.setattr(roads.OnRoad, "kernels", lambda self: None)
    found = answers(part_of(context, "bfloat16", 6).rows(context))
    assert "NaN" in found["octopus"]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("frames", 720),  # of 1080: two for each of the 360 rows that 1920 x 1080 become in 640 x 640
        ("frames-antialias", 1080),
    ],
)
def test_bytes_read_of_a_frame(context, name, rows):
    own = roads.OnRoad(roads._job(context, roads.ROADS[name], 2), roads.ROADS[name])
    assert context.workload.frame.shape == (1080, 1920, 3)
    assert own.bytes_read() == 2 * rows * 1920 * 3


def test_bytes_that_boxes_share_are_read_once(context):
    own = roads.OnRoad(roads._job(context, roads.Road(), 2), roads.Road())
    boxes = np.array(
        [[10, 10, 30, 40], [20, 10, 40, 40]], np.int32
    )  # enlarged or nearly so: all rows are needed
    own.job = dataclasses.replace(own.job, boxes=boxes, size=(40, 40))
    assert own.bytes_read() == 30 * 30 * 3


@pytest.mark.parametrize("levels", ["full", "limited"])
def test_nv12_there_and_back_is_the_library_s_and_opencv_s(levels):
    grey = np.repeat(np.arange(256, dtype=np.uint8).reshape(16, 16, 1), 3, axis=2)
    groups = (
        np.random.default_rng(2).integers(0, 256, (8, 8, 3), np.uint8).repeat(2, axis=0).repeat(2, axis=1)
    )
    for frame in (grey, groups):  # both chroma values are rounded, at half the scale of blue
        nv12 = to_nv12(frame, levels)
        exact = from_nv12(nv12, levels)
        assert np.abs(exact - frame).max() < 2
        whole = np.array([[0, 0, 16, 16]])
        own = octopus.NV12(nv12[:16], nv12[16:], matrix="bt601", range=levels)
        found = octopus.crop_resize(own, whole, (16, 16), layout="NHWC", device="cpu")[0]
        assert np.abs(found - exact).max() < 1e-3
        if levels == "limited":
            assert np.abs(cv2.cvtColor(nv12, cv2.COLOR_YUV2RGB_NV12) - exact).max() < video.ROUNDED


def test_frames_of_video_are_right_on_a_cpu(context):
    (part,) = video.parts(context)
    assert part.case[2:4] == ("nv12-1thread", 3)
    assert answers(part.rows(context)) == dict.fromkeys(
        ("octopus", "octopus-again", "octopus-rgb", "octopus-converted", "opencv-table"), "same"
    )


def test_video_in_another_range_is_seen(context, monkeypatch):
    (part,) = video.parts(context)
    monkeypatch.setattr(video, "LEVELS", {"cpu": "full"})  # which OpenCV does not read
    found = answers(part.rows(context))
    assert found["octopus"] == found["octopus-rgb"] == "same"
    assert found["opencv-table"].startswith("different") and found["octopus-converted"].startswith(
        "different"
    )


def test_frames_that_no_conversion_takes_say_so(context):
    frame = context.workload.frame[:, :1918]
    data = Workload("synthetic-visdrone", True, frame, context.workload.pool, "")
    (part,) = video.parts(context)
    found = answers(part.rows(dataclasses.replace(context, data=data)))
    assert set(found.values()) == {
        "unavailable: NV12 has even sides and the conversion ahead reads words; the frame is 1918 x 1080"
    }
    with pytest.raises(Unavailable):
        video.coded(frame[:1079], "full")


def test_maps_are_turned_and_scaled_about_points_of_the_frame():
    maps = warp.rotated_maps(500, 1920, 1080, (20, 24), 42).astype(np.float64)
    scales = np.sqrt(np.linalg.det(maps[:, :, :2]))
    assert 0.3 <= scales.min() < 0.35 and 2.7 < scales.max() <= 3
    turned = maps[:, :, :2] / scales[:, None, None]
    assert np.allclose(turned @ turned.transpose(0, 2, 1), np.eye(2), atol=1e-5)
    assert turned[:, 0, 0].min() < -0.99 and turned[:, 0, 0].max() > 0.99  # any angle
    middles = maps @ (11.5, 9.5, 1)
    assert (middles >= -1e-3).all() and (middles <= (1919.001, 1079.001)).all()
    assert np.array_equal(warp.rotated_maps(500, 1920, 1080, (20, 24), 42), maps.astype(np.float32))


def test_affine_grid_gets_the_same_maps():
    (height, width), (rows, columns) = (1080, 1920), (20, 24)
    maps = warp.rotated_maps(5, width, height, (rows, columns), 1)
    theta = warp.in_its_units(maps, (rows, columns), (height, width)).astype(np.float64)
    # As PyTorch documents affine_grid with align_corners=False: -1 and 1 are the outer edges of the corner pixels.
    x, y = ((2 * np.arange(side) + 1) / side - 1 for side in (columns, rows))
    grid = np.stack([*np.meshgrid(x, y), np.ones((rows, columns))]).reshape(3, -1)
    found = ((theta @ grid + 1) * np.array([[width], [height]]) - 1) / 2
    pixels = np.stack([*np.meshgrid(np.arange(columns), np.arange(rows)), np.ones((rows, columns))]).reshape(
        3, -1
    )
    assert np.abs(found - maps.astype(np.float64) @ pixels).max() < 1e-3


def test_affine_maps_are_right_on_a_cpu(context, monkeypatch):
    (part,) = warp.parts(context)
    found = answers(part.rows(context))
    assert found.pop("opencv-table").endswith(
        "rounds to uint8 before it normalises, and in older versions positions to 1/32 of a pixel"
    )
    assert found == {"octopus": "same", "octopus-again": "same"}
    right = reference.warp
    monkeypatch.setattr(
        reference, "warp", lambda frame, maps, *rest: right(frame, maps + np.float32(0.05), *rest)
    )
    assert answers(part.rows(context))["octopus"].startswith("different")


@pytest.mark.gpu
@pytest.mark.parametrize("module", [roads, video, warp])
def test_on_a_gpu_octopus_is_right(quick_context, module):
    context = quick_context("arena", device="cuda", **CPU)
    for part in module.parts(context):
        found = answers(part.rows(context))
        own = {name: answer for name, answer in found.items() if name.startswith("octopus")}
        assert set(own.values()) == {"same"}, part.case
        # Whoever is there has a time, and who reads the same NV12 the same answer.
        assert not {name for name in found if name.endswith("bound") and found[name] != "n/a"}
        assert found.get("cuframe", "same") == "same" or found["cuframe"].startswith("unavailable")


@pytest.mark.gpu
def test_counts_on_a_gpu_are_obeyed(quick_context):
    context = quick_context("arena", device="cuda", **CPU)
    for part in counts.parts(context, reference_of(context)):
        rows = list(part.rows(context))
        assert set(answers(rows).values()) == {"same"}, part.case
        assert {(row.quantity, row.layer) for row in rows if row.value is not None and row.unit == "ms"} == {
            ("kernel", "device"), ("submit", "host"), ("end_to_end_alone", "host"),
        }  # fmt: skip
