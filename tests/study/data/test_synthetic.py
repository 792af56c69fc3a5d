import time

import numpy as np

from octopus_study.data import synthetic, visdrone

MEDIAN, P95 = (39, 56), (162, 151)
"""Width and height of the published pool, in pixels."""


def sides(boxes):
    return boxes[:, 2:] - boxes[:, :2]


def test_pool_has_the_published_sizes_within_5_per_cent(drone_root):
    pool = visdrone.load_pool(drone_root)
    assert len(pool) == 2045
    np.testing.assert_allclose(np.median(sides(pool), axis=0), MEDIAN, rtol=0.05)
    np.testing.assert_allclose(np.percentile(sides(pool), 95, axis=0), P95, rtol=0.05)


def test_pool_obeys_the_rule_of_the_real_one(drone_root):
    pool = synthetic.drone_pool()
    assert sides(pool).min() >= 16 and sides(pool).max() <= 320
    assert (pool[:, :2] >= 1).all() and (pool[:, 2:] < visdrone.CANONICAL_FRAME).all()
    # Reading applies the rule again, so every generated box must survive it, in order.
    np.testing.assert_array_equal(visdrone.load_pool(drone_root), pool)


def test_sample_is_fast_and_always_the_same(drone_root, tmp_path):
    start = time.perf_counter()
    again = synthetic.write_drone_sample(tmp_path / "again")
    assert time.perf_counter() - start < 2
    assert visdrone.content_digest(again) == visdrone.content_digest(drone_root)
    assert sorted(p.name for p in again.iterdir()) == ["annotations", "image_sizes.csv", "images"]


def test_frame_has_texture_and_objects():
    boxes = synthetic.drone_pool()[:40]
    frame = synthetic.drone_frame(boxes).astype(int)
    assert frame.shape == (1080, 1920, 3)
    assert np.abs(np.diff(frame, axis=1)).mean() > 2  # neighbours differ everywhere, not only at edges
    assert (frame.std(axis=(0, 1)) > 30).all()
    empty = synthetic.drone_frame(boxes[:0]).astype(int)
    inside = np.zeros(frame.shape[:2], dtype=bool)
    for left, top, right, bottom in boxes:
        inside[top:bottom, left:right] = True
    change = np.abs(frame - empty).mean(axis=2)
    assert change[inside].mean() > 3 * change[~inside].mean()


def test_greenland_band():
    band = synthetic.greenland_band()
    assert band.shape == (1000, 1000) and band.dtype == np.uint16
    assert band.min() > 0 and band.max() <= 10_000
    np.testing.assert_allclose(band.mean(), 4762, rtol=0.05)
    dark, bright = (band < 1000).mean(), (band > 6500).mean()
    assert 0.002 < dark < 0.05 and 0.005 < bright < 0.10
    np.testing.assert_array_equal(band, synthetic.greenland_band())
    assert synthetic.greenland_band(30, 70).shape == (30, 70)
