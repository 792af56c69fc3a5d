"""Facts about the real data; collected only where a mirror has them (see conftest.py)."""

from collections import Counter

import numpy as np
import pytest

from octopus_study.data import visdrone
from octopus_study.data.distributions import MEBIBYTE, padding_waste
from octopus_study.data.fetch import fetch
from octopus_study.data.manifest import read_manifest
from octopus_study.data.registry import load_registry
from octopus_study.data.sentinel2 import PINNED_WINDOW, read_band
from octopus_study.data.size_table import read_size_table, size_table
from octopus_study.data.workload import load_workload, sample_boxes


@pytest.fixture(scope="module")
def raw(tmp_path_factory, real_mirror):
    """The mirror's data, fetched as a run fetches them."""
    raw = tmp_path_factory.mktemp("raw")
    for name in ("visdrone-val", "sentinel2-b04"):
        fetch(name, raw_dir=raw, mode="real", mirror=real_mirror)
    return raw


@pytest.fixture(scope="module")
def workload(raw):
    return load_workload(raw / "visdrone-val.json")


def sides(boxes):
    return boxes[:, 2:] - boxes[:, :2]


def test_pool(raw, workload):
    assert (workload.dataset, workload.synthetic, workload.frame.shape) == ("visdrone-val", False, (1080, 1920, 3))
    assert visdrone.frame_path(raw / "visdrone-val").name == "0000001_02999_d_0000005.jpg"
    assert len(workload.pool) == 2045
    assert np.median(sides(workload.pool), axis=0).tolist() == [39, 56]
    # The published P95 is truncated: the percentiles are 162.4 and 151.8.
    assert np.percentile(sides(workload.pool), 95, axis=0).astype(int).tolist() == [162, 151]
    assert sides(workload.pool).max(axis=0).tolist() == [312, 313]


def test_sample_of_1000(workload):
    sample = sample_boxes(workload.pool, 1000)
    waste = padding_waste(sample, channels=3, itemsize=4)
    assert np.median(sides(sample), axis=0).tolist() == [41, 58]
    assert sides(sample).max(axis=0).tolist() == [312, 313]
    assert round(100 * waste.fraction, 1) == 94.9
    assert round(waste.padded_bytes / MEBIBYTE) == 1118


def test_image_sizes(raw, real_mirror):
    sizes = visdrone.image_sizes(raw / "visdrone-val")
    assert Counter(sizes.values()) == {(1360, 765): 408, (960, 540): 121, (1920, 1080): 19}
    table = (real_mirror / "visdrone_val" / "image_sizes.csv").read_text().split()[1:]
    for row in table:  # the headers of the images at hand agree with the table
        stem, width, height = row.split(",")
        assert sizes[stem] == (int(width), int(height))


def test_committed_size_table_is_that_of_the_real_pool(workload):
    np.testing.assert_allclose(read_size_table(), size_table(workload.pool), atol=0.006)


def test_sentinel2_window(raw):
    (path,) = (raw / "sentinel2-b04").glob("*.tif")
    band = read_band(path, PINNED_WINDOW)
    assert (band.nodata, band.crs) == (0, "EPSG:32622")
    assert (band.transform.c, band.transform.f, band.transform.a) == (597_580, 7_430_700, 10)
    assert (band.pixels.min(), band.pixels.max()) == (68, 8904)
    assert round(float(band.pixels.mean()), 1) == 4761.6


def test_manifests_hold_the_pinned_digests(raw):
    for name, dataset in load_registry().items():
        manifest = read_manifest(raw / f"{name}.json")
        assert (manifest.source, manifest.sha256) == ("mirror", dataset.content_sha256)
    assert "holds columns 9760..10760" in manifest.reason  # why it is a window's
    assert manifest.sha256 == "0e5084e3d2b33c558b05b5586caa22315f668eb18575e9211eb49753059558c9"
