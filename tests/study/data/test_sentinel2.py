import hashlib
from dataclasses import replace

import numpy as np
import pytest
import rasterio
import rasterio.shutil

from octopus_study.data import sentinel2
from octopus_study.data.sentinel2 import Window, pixel_digest, read_band
from octopus_study.errors import DataError


@pytest.fixture(scope="module")
def clip(scene) -> tuple:
    return scene[0] / "sentinel2" / "clip.tif", scene[2]


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch):
    monkeypatch.setitem(sentinel2.OPTIONS, "GDAL_HTTP_RETRY_DELAY", 0.01)


def test_window_is_counted_in_the_scene(clip):
    path, pixels = clip
    band = read_band(path, Window(9710, 6920, 30, 40))
    np.testing.assert_array_equal(band.pixels, pixels[20:60, 10:40])
    assert (band.transform.c, band.transform.f) == (499_980 + 97_100, 7_500_000 - 69_200)


@pytest.mark.parametrize(
    "window", [(9699, 6900, 10, 10), (9700, 6899, 10, 10), (10795, 6900, 6, 10), (9700, 7945, 10, 6)]
)
def test_window_outside_the_file_says_what_the_file_holds(clip, window):
    with pytest.raises(DataError, match=r"holds columns 9700\.\.10800 and rows 6900\.\.7950"):
        read_band(clip[0], Window(*window))


def test_window_over_http_fetches_a_part_of_the_file(clip, server):
    path, pixels = clip
    band = read_band(server.put("B04.tif", path.read_bytes()), Window(9700, 6900, 100, 100))
    np.testing.assert_array_equal(band.pixels, pixels[:100, :100])
    assert 0 < server.sent < path.stat().st_size / 2


def test_what_is_no_band_is_refused(tmp_path, server):
    (tmp_path / "page.tif").write_text("<html>")
    for name in (tmp_path / "page.tif", tmp_path / "missing.tif", server.address + "/missing.tif"):
        with pytest.raises(DataError, match="can't read a band from"):
            read_band(name)


def test_pixels_of_another_size_are_refused(clip, tmp_path):
    band = read_band(clip[0])
    coarse = replace(band, transform=band.transform @ rasterio.Affine.scale(2))
    with pytest.raises(DataError, match="has pixels of 20 x 20 m; expected 10 x 10 m"):
        read_band(sentinel2.write_band(tmp_path / "coarse.tif", coarse))


def test_a_file_that_points_to_another_is_refused(clip, tmp_path):
    """A VRT may name any file or address."""
    rasterio.shutil.copy(clip[0], tmp_path / "there.vrt", driver="VRT")
    disguised = (tmp_path / "there.vrt").rename(tmp_path / "B04.tif")
    with rasterio.open(disguised) as source:
        assert source.driver == "VRT"
    with pytest.raises(DataError, match="can't read a band from"):
        read_band(disguised)


def test_pixel_digest_depends_on_values_only():
    pixels = np.arange(6, dtype=np.uint16).reshape(2, 3)
    expected = hashlib.sha256(bytes([0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0])).hexdigest()
    for same in (pixels, np.asfortranarray(pixels), pixels.astype(">u2"), np.repeat(pixels, 2, axis=1)[:, ::2]):
        assert pixel_digest(same) == expected
    assert pixel_digest(pixels + np.uint16(1)) != expected
