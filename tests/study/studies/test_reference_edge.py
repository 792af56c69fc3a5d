"""The committed reference runs of the edge scenarios and the companion studies: what the project says of them."""

from __future__ import annotations

import pytest
from selecting import values
from test_reference import ratio, read


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
def test_the_published_grid_has_727_tiles_and_all_flags_are_numpys(kind):
    rows = read(kind, "satellite")
    tiles = rows[rows.quantity == "tiles"].set_index("workload").value
    assert tiles["scale-uint16"] == tiles["scale-rgb8"] == 727
    kept = rows[rows.quantity == "kept_tiles"]
    assert set(kept.method) == {"fixed", "otsu", "byte-budget"} and set(kept.answer) == {"same"}
    real = rows[rows.workload.str.startswith("window")]
    assert set(real.dataset) == {"sentinel2-b04"} and set(rows.dataset) == {"sentinel2-b04", "synthetic"}


@pytest.mark.parametrize("workload", ["scale-uint16", "scale-rgb8"])
def test_tiles_are_judged_near_the_time_to_read_them(workload):
    rows = read("cuda", "satellite")
    case = {"workload": workload, "layer": "device", "quantity": "keep_tiles"}
    assert ratio(rows, "read-bound", "octopus", **case) >= 0.75
    assert ratio(rows, "padded", "octopus", **case) > 1.5
    assert ratio(rows, "n-launches", "octopus", **case) > 50


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
def test_the_clips_have_the_published_detections(kind):
    rows = read(kind, "drone")
    found = rows[(rows.method == "clip") & (rows.quantity == "detections")].set_index("workload").value
    assert found["clip-1s"] == 851 and found["clip-10s"] == 8347


def test_no_frame_is_late_and_the_upload_hides_the_kernels_on_the_h200():
    rows = read("cuda", "drone")
    for layer in ("host", "paced"):
        assert (
            values(rows, method="octopus", workload="clip-10s", layer=layer, quantity="frame_time").max()
            < 33.3
        )
    case = {"workload": "second", "layer": "pipelined", "quantity": "clip_time"}
    assert ratio(rows, "stream-serial", "stream-overlapped", **case) > 1.05


def test_the_detections_are_identical():
    rows = read("cuda", "detector")
    differing = rows[(rows.quantity == "frames_differing") & (rows.method == "opencv")]
    assert len(differing) and (differing.value == 0).all()
    timed = rows[(rows.quantity == "end_to_end") & (rows.method == "opencv")]
    assert timed.n.unique().tolist() == [200] and set(timed.answer) == {"same"}


def test_the_arm_of_mps_had_its_clients_and_all_arms_gave_the_same():
    rows = read("cuda", "concurrency")
    assert rows[rows.quantity == "mps_clients"].value.tolist() == [2]
    spans = rows[(rows.quantity == "makespan") & rows.value.notna()]
    assert {"sequential", "two-streams", "two-threads", "cuda-graphs", "pipeline", "prefetch", "no-prefetch",
            "two-processes", "two-processes-mps"} <= set(spans.method)  # fmt: skip
    assert set(spans.answer) == {"same"}


def test_drunet_is_split_exactly_where_a_side_is_no_multiple_of_8_and_that_is_the_jump():
    rows = read("cuda", "image_shape")
    splits = rows[(rows.quantity == "split_calls") & rows.workload.str.startswith("drunet-step")]
    assert len(splits) > 30 and ((splits.value > 0) == (splits.n % 8 != 0)).all()
    peaks = rows[(rows.quantity == "allocated_peak") & (rows.workload == "drunet-interventions")]
    peak = peaks.set_index(["n", "method"]).value
    assert peak[1228, "padded-whole"] > 2 * peak[1228, "as-published"]
    assert peak[1296, "forced-split"] < 0.5 * peak[1296, "as-published"]
    for width in (1228, 1296):
        assert peak[width, "cudnn-benchmark"] == pytest.approx(peak[width, "cudnn-no-benchmark"], rel=0.05)
