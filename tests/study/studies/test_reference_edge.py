"""The committed reference runs of the edge scenarios and the companion studies: what they hold, whoever is faster."""

from __future__ import annotations

import pytest
from quick import values
from test_reference import read


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
def test_the_published_grid_has_727_tiles_and_all_flags_are_numpys(kind):
    rows = read(kind, "satellite")
    tiles = rows[rows.quantity == "tiles"].set_index("workload").value
    assert tiles["scale-uint16"] == tiles["scale-rgb8"] == 727
    kept = rows[rows.quantity == "kept_tiles"]
    assert set(kept.method) == {"fixed", "otsu", "byte-budget"} and set(kept.answer) == {"same"}
    real = rows[rows.workload.str.startswith("window")]
    assert set(real.dataset) == {"sentinel2-b04"} and set(rows.dataset) == {"sentinel2-b04", "synthetic"}


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
def test_the_clips_have_the_published_detections(kind):
    rows = read(kind, "drone")
    found = rows[(rows.method == "clip") & (rows.quantity == "detections")].set_index("workload").value
    assert found["clip-1s"] == 851 and found["clip-10s"] == 8347


def test_every_frame_of_the_longest_clip_was_timed():
    rows = read("cuda", "drone")
    for layer in ("host", "paced"):
        times = values(rows, method="octopus", workload="clip-10s", layer=layer, quantity="frame_time")
        assert len(times) == 300 and (times > 0).all()


def test_detections_were_compared_on_all_frames():
    rows = read("cuda", "detector")
    differing = rows[(rows.quantity == "frames_differing") & (rows.method == "opencv")]
    assert len(differing) and differing.value.between(0, differing.n).all()
    timed = rows[(rows.quantity == "end_to_end") & (rows.method == "opencv")]
    assert timed.n.unique().tolist() == [200]


def test_the_arm_of_mps_had_its_clients_and_all_arms_were_compared():
    rows = read("cuda", "concurrency")
    assert rows[rows.quantity == "mps_clients"].value.tolist() == [2]
    spans = rows[(rows.quantity == "makespan") & rows.value.notna()]
    assert {"sequential", "two-streams", "two-threads", "cuda-graphs", "pipeline", "prefetch", "no-prefetch",
            "two-processes", "two-processes-mps"} <= set(spans.method)  # fmt: skip
    assert spans.answer.str.match("same|different: ").all()


def test_splits_and_peaks_of_drunet_were_counted_at_the_published_widths():
    rows = read("cuda", "image_shape")
    splits = rows[(rows.quantity == "split_calls") & rows.workload.str.startswith("drunet-step")]
    assert len(splits) > 30 and (splits.value >= 0).all()
    peaks = rows[(rows.quantity == "allocated_peak") & (rows.workload == "drunet-interventions")]
    assert set(peaks.n) == {1228, 1296} and peaks.value.notna().any()
    assert {"as-published", "padded-whole", "forced-split", "cudnn-benchmark"} <= set(peaks.method)
