"""The study of the satellite's tiles, run quickly on the CPU: what is kept, what it takes to send, who is compared."""

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest
from quick import chosen, values

from octopus import otsu_threshold
from octopus_study.data.distributions import satellite_tiles
from octopus_study.data.scene import Scene, load_scene
from octopus_study.errors import DataError
from octopus_study.measure import read_rows
from octopus_study.studies.satellite import study as satellite
from octopus_study.studies.satellite.methods import METHODS, TileJob, methods

RULES = ("fixed", "otsu", "byte-budget")


@pytest.fixture(scope="module")
def rows(runs):
    return read_rows(runs["satellite"])


@pytest.fixture(scope="module")
def context(quick_context, scene_manifest):
    return quick_context("satellite", scene_manifest)


def test_kept_tiles_are_those_of_numpy(rows, scene_manifest):
    pixels = load_scene(scene_manifest).pixels
    tiles = satellite_tiles(pixels.shape[1], pixels.shape[0])
    means = np.array([pixels[y1:y2, x1:x2].mean() / 10_000 for x1, y1, x2, y2 in tiles.tolist()])
    window = rows[rows.workload == "window-uint16"]
    for name, side in zip(satellite.SIDES, tiles.T, strict=True):
        assert np.array_equal(values(window, method="tiles", quantity=name), side)
    assert np.array_equal(values(window, method="fixed", quantity="tile_kept"), means > 0.35)
    assert np.array_equal(values(window, method="otsu", quantity="tile_kept"), means > otsu_threshold(means))
    assert set(rows.status[rows.quantity == "kept_tiles"]) == {"same"}


def test_bytes_follow_from_pixels_and_times_from_the_downlink(rows):
    for workload, pixel in (("window-uint16", 2), ("window-rgb8", 3)):
        counted = chosen(rows, workload=workload, layer="deterministic").drop_duplicates(["method", "quantity"])
        found = counted.set_index(["method", "quantity"]).value
        assert found["scene", "scene_bytes"] == 1_000_000 * pixel
        assert found["scene", "scene_downlink_time"] == 1_000_000 * pixel * 8 / 2e6
        for rule in RULES:
            assert found[rule, "kept_downlink_time"] == found[rule, "kept_bytes"] * 8 / 2e6
        assert found["byte-budget", "kept_bytes"] <= 0.45 * found["scene", "scene_bytes"]
        assert 0 < found["otsu", "kept_tiles"] < found["scene", "tiles"]


def test_the_whole_scene_alone_is_cut_into_the_727_published_tiles(context):
    def cases(side):
        scene = Scene("sentinel2-b04", False, np.broadcast_to(np.uint16(5000), (side, side)), "0" * 64)
        return [part.case[1:4] for part in satellite.plan(dataclasses.replace(context, data=scene))]

    real, made = "sentinel2-b04", "synthetic"
    assert cases(10_980) == [(real, "full-uint16", 727), (real, "full-rgb8", 727)]
    assert [case[:2] for case in cases(10_979)] == [
        (real, "window-uint16"), (real, "window-rgb8"), (made, "scale-uint16"), (made, "scale-rgb8"),
    ]  # fmt: skip


def test_published_bytes_are_rounded_and_clipped():
    band = np.array([[0, 19, 20, 5000, 10_000, 65_535]], np.uint16)
    image, scale = satellite.as_variant(band, "rgb8")
    assert image.shape == (1, 6, 3) and scale == 255
    assert image[0, :, 1].tolist() == [0, 0, 1, 128, 255, 255]
    assert satellite.as_variant(band, "uint16")[0] is band


@pytest.mark.parametrize("shape", [(90, 70), (90, 70, 3)])
@pytest.mark.parametrize("name", methods("cpu"))
def test_every_method_sees_a_changed_scene(name, shape):
    random = np.random.default_rng(1)
    image = random.integers(0, 256, shape, np.uint8 if len(shape) == 3 else np.uint16)
    tiles = np.array([[0, 0, 5, 90], [5, 0, 70, 3], [5, 3, 70, 90], [69, 89, 70, 90]], np.int32)
    job = TileJob(image, tiles, 255.0, 0.45, "cpu")
    judge = METHODS[name](job)
    for top in (0, 60):
        image[:top] //= 2
        judge.run()
        right = [image[y1:y2, x1:x2].mean() / 255 > 0.45 for x1, y1, x2, y2 in tiles.tolist()]
        assert judge.flags.tolist() == right


def test_a_manifest_of_other_data_is_refused(quick_rows, manifest, scene_manifest, tmp_path):
    with pytest.raises(DataError, match="satellite needs the manifest of sentinel2-b04"):
        quick_rows("satellite", manifest)
    copied = shutil.copy(scene_manifest, tmp_path / "elsewhere.json")
    with pytest.raises(DataError):
        quick_rows("satellite", Path(copied))
