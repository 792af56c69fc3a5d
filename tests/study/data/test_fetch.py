"""Data sets from a mirror or the network: what arrives, is resumed or refused, and what stands in for it."""

import hashlib
import logging
import mmap
import shutil
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import rasterio

from octopus.errors import InputError
from octopus_study.data import sentinel2
from octopus_study.data.download import CHUNK, check_reachable, download, find_fault
from octopus_study.data.fetch import fetch, parse_window
from octopus_study.data.manifest import read_manifest, write_manifest
from octopus_study.data.sentinel2 import FULL_SCENE, PINNED_WINDOW, Band, Window, pixel_digest, read_band, write_band
from octopus_study.data.visdrone import content_digest, load_frame, load_pool
from octopus_study.errors import DataError


def get(dataset, tmp_path, **options):
    return fetch(dataset.name, raw_dir=tmp_path / "raw", dataset=dataset, progress=False, **options)


def entries(folder):
    return sorted(path.name for path in folder.glob("*"))


OTHER = "not the expected data: its content digest is"
WRONG_FILES = {
    "annotation of letters": ("annotations/*.txt", lambda old: b"1,2,3,4,1,car,0,0\n", OTHER),
    "annotation that is a folder": ("annotations/*.txt", None, "Is a directory.*mirror/visdrone_val/annotations"),
    "frame cut in half": ("images/*.jpg", lambda old: old[: len(old) // 2], OTHER),
    "frame that is a page": ("images/*.jpg", lambda old: b"<html>", "mirror/visdrone_val/images/.* is not an image"),
    "sizes in no UTF-8": ("image_sizes.csv", lambda old: b"\xff\xfe" + old, "mirror/visdrone_val/image_sizes.csv: exp"),
}


class TestVisDrone:
    def test_mirror_with_the_unpacked_folder(self, drone_dataset, drone_root, tmp_path):
        manifest = get(drone_dataset, tmp_path, mirror=drone_root.parent, mode="real")
        assert (manifest.dataset, manifest.synthetic, manifest.source) == ("visdrone-val", False, "mirror")
        assert manifest.sha256 == drone_dataset.content_sha256
        assert manifest == read_manifest(tmp_path / "raw" / "visdrone-val.json")
        assert entries(tmp_path / "raw") == ["visdrone-val", "visdrone-val.json"]
        np.testing.assert_array_equal(load_pool(tmp_path / "raw" / manifest.path), load_pool(drone_root))

    def test_download(self, drone_dataset, drone_archive, tmp_path, server):
        url = server.put("drone.zip", drone_archive.read_bytes())
        server.faults[:] = ["cut"]
        manifest = get(replace(drone_dataset, url=url), tmp_path)
        assert (manifest.source, manifest.sha256) == ("download", drone_dataset.content_sha256)
        assert load_frame(tmp_path / "raw" / manifest.path).shape == (1080, 1920, 3)

    def test_data_at_hand_are_not_fetched_again(self, drone_dataset, drone_root, tmp_path):
        first = get(drone_dataset, tmp_path, mirror=drone_root.parent)
        assert get(drone_dataset, tmp_path, mode="real") == first
        (tmp_path / "raw" / "visdrone-val.json").unlink()
        assert get(drone_dataset, tmp_path, mode="real") == first
        for manifest in (tmp_path / "raw").rglob("*.json"):
            manifest.unlink()
        again = get(drone_dataset, tmp_path, mode="real")
        assert (again.source, again.sha256) == ("raw folder", first.sha256)

    def test_a_manifest_is_no_proof_where_there_is_a_pin(self, drone_dataset, drone_root, tmp_path):
        manifest = get(drone_dataset, tmp_path, mirror=drone_root.parent)
        folder = tmp_path / "raw" / manifest.path
        next((folder / "annotations").iterdir()).write_text("1,1,20,20,1,4,0,0\n")
        write_manifest(replace(manifest, sha256=content_digest(folder)), tmp_path / "raw" / "visdrone-val.json")
        with pytest.raises(DataError, match="has been changed since it was fetched"):
            get(drone_dataset, tmp_path, mode="real")

    @pytest.mark.parametrize(("name", "content", "message"), WRONG_FILES.values(), ids=WRONG_FILES)
    def test_a_wrong_file_of_a_mirror_is_refused(self, drone_dataset, drone_root, tmp_path, name, content, message):
        mirror = shutil.copytree(drone_root.parent, tmp_path / "mirror")
        path = sorted((mirror / "visdrone_val").glob(name))[0]
        before = path.read_bytes()
        path.unlink()
        path.mkdir() if content is None else path.write_bytes(content(before))
        with pytest.raises(DataError, match=message) as error:
            get(drone_dataset, tmp_path, mirror=mirror)
        assert "/raw/." not in str(error.value) and entries(tmp_path / "raw") == []

    def test_nothing_at_hand_gives_the_sample_loudly(self, drone_dataset, tmp_path, caplog):
        with caplog.at_level(logging.WARNING):
            manifest = get(drone_dataset, tmp_path)
        assert (manifest.dataset, manifest.synthetic, manifest.source) == ("synthetic-visdrone", True, "generated")
        for text in (manifest.reason, caplog.text):
            assert "no visdrone-val/ there yet" in text and "can't reach http://127.0.0.1:9" in text
        assert "SYNTHETIC DATA" in caplog.text

    @pytest.mark.parametrize("mode", ["auto", "real"])
    def test_a_mirror_that_is_named_is_no_reason_for_the_sample(self, drone_dataset, drone_root, tmp_path, mode):
        def refused(mirror, message):
            with pytest.raises(DataError, match=message) as error:
                get(drone_dataset, tmp_path, mirror=mirror, mode=mode)
            assert entries(tmp_path / "raw") == []
            return str(error.value)

        assert "download" not in refused(tmp_path / "absent", "the mirror that is named, .*absent, is no folder")
        assert "download" in refused(tmp_path, "neither drone.zip nor visdrone_val/")
        wrong = shutil.copytree(drone_root.parent, tmp_path / "wrong")
        next((wrong / "visdrone_val" / "annotations").iterdir()).unlink()
        assert "download" not in refused(wrong, "not the expected data: its content digest is")
        (wrong / "drone.zip").write_bytes(b"<html>")
        assert "download" not in refused(wrong, r"drone\.zip is not the expected file: it has 6 bytes")

    def test_sample_on_request_though_real_data_are_at_hand(self, drone_dataset, drone_root, tmp_path, caplog):
        get(drone_dataset, tmp_path, mirror=drone_root.parent)
        manifest = get(drone_dataset, tmp_path, mirror=drone_root.parent, mode="sample")
        assert manifest.synthetic and "asked for" in manifest.reason
        assert "SYNTHETIC" not in caplog.text
        assert get(drone_dataset, tmp_path, mode="sample").sha256 == manifest.sha256

    def test_real_mode_without_data_says_what_to_do(self, drone_dataset, tmp_path):
        with pytest.raises(DataError, match=r"asked for .* found none: .* internet; or put .* --mirror"):
            get(drone_dataset, tmp_path, mode="real")
        assert entries(tmp_path / "raw") == []


GEOREFERENCE = (sentinel2.window_transform(Window(9700, 6900, 40, 20)), sentinel2.SCENE_CRS, sentinel2.ATTRIBUTION)


def rewritten(path, pixels=None, **profile):
    """Write the band of a file anew, with other pixels or another profile."""
    with rasterio.open(path) as source:
        pixels, profile = source.read() if pixels is None else pixels, dict(source.profile) | profile
    path.unlink()
    with rasterio.open(path, "w", **profile) as target:
        target.write(pixels.astype(profile["dtype"]))


SHIFTED = sentinel2.window_transform(Window(9701, 6900, 1100, 1050))
ANOTHER = "clip.tif is not the expected scene"
WRONG_BANDS = {
    "a page": (lambda path: path.write_bytes(b"<html>"), "can't read a band from .*clip.tif"),
    "no data": (lambda path: rewritten(path, np.zeros((1, 1050, 1100))), ANOTHER),
    "float32": (lambda path: rewritten(path, dtype="float32"), "float32; expected one of uint16"),
    "shifted": (lambda path: rewritten(path, transform=SHIFTED), ANOTHER),
}


class TestSentinel2:
    @pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
    @pytest.mark.parametrize(("spoil", "message"), WRONG_BANDS.values(), ids=WRONG_BANDS)
    def test_a_wrong_band_of_a_mirror_is_refused(self, scene, tmp_path, spoil, message):
        mirror = shutil.copytree(scene[0], tmp_path / "mirror")
        spoil(mirror / "sentinel2" / "clip.tif")
        with pytest.raises(DataError, match=message):
            get(scene[1], tmp_path, mirror=mirror)
        assert entries(tmp_path / "raw") == []

    def test_pinned_window_from_a_mirror(self, scene, tmp_path):
        mirror, dataset, _ = scene
        manifest = get(dataset, tmp_path, mirror=mirror, mode="real")
        assert (manifest.dataset, manifest.source) == ("sentinel2-b04", "mirror")
        assert manifest.sha256 == dataset.content_sha256
        assert manifest.citation == sentinel2.ATTRIBUTION and "holds columns 9700..10800" in manifest.reason
        assert read_band(tmp_path / "raw" / manifest.path).pixels.shape == (1000, 1000)
        assert get(dataset, tmp_path, mode="real") == manifest

    def test_other_window_by_http(self, scene, tmp_path, server):
        mirror, dataset, pixels = scene
        url = server.put("B04.tif", (mirror / "sentinel2" / "clip.tif").read_bytes())
        dataset = replace(dataset, url=url)
        manifest = get(dataset, tmp_path, window=[9700, 6900, 40, 20])
        assert (manifest.source, manifest.sha256) == ("download", pixel_digest(pixels[:20, :40]))
        assert get(dataset, tmp_path, window=[9700, 6900, 40, 20], mode="real") == manifest

    def test_other_window_outlives_its_manifest(self, scene, tmp_path):
        """Snakemake deletes it before the job that writes it anew, and no mirror may be named then."""
        mirror, dataset, _ = scene
        manifest = get(dataset, tmp_path, mirror=mirror, window=[9700, 6900, 40, 20])
        (tmp_path / "raw" / "sentinel2-b04.json").unlink()
        assert get(dataset, tmp_path, window=[9700, 6900, 40, 20]) == manifest
        write_band(tmp_path / "raw" / manifest.path, Band(scene[2][:20, 1:41], 0, *GEOREFERENCE))
        assert get(dataset, tmp_path, window=[9700, 6900, 40, 20]).synthetic

    def test_a_window_stands_in_where_the_whole_scene_can_not_be_had(self, scene, tmp_path, server, caplog):
        """Here since the address has another file than the whole scene."""
        dataset = replace(scene[1], url=server.put("B04.tif", (scene[0] / "sentinel2" / "clip.tif").read_bytes()))
        manifest = get(dataset, tmp_path, mode="real")
        assert (manifest.synthetic, manifest.sha256) == (False, dataset.content_sha256)
        for text in (manifest.reason, caplog.text):
            assert "gave another file than expected: asked for columns 0..10980 and rows 0..10980" in text
        assert "A WINDOW of sentinel2-b04 takes the place of the whole scene" in caplog.text
        assert entries(tmp_path / "raw") == ["sentinel2-b04", "sentinel2-b04.json"]
        with pytest.raises(DataError, match=r"found none: raw folder: no S2A.*; download: .* gave another file"):
            get(dataset, tmp_path, mode="real", window="full")

    def test_nothing_at_hand_gives_a_georeferenced_sample(self, scene, tmp_path):
        manifest = get(scene[1], tmp_path, window=[100, 200, 64, 32])
        assert manifest.dataset == "synthetic-sentinel2" and manifest.synthetic
        band = read_band(tmp_path / "raw" / manifest.path, Window(100, 200, 64, 32))
        assert band.pixels.shape == (32, 64) and "Synthetic" in band.attribution


@pytest.fixture
def tile(tmp_path):
    """A file of the whole scene, of its full size: nearly all of it is a hole, and none of it is in memory."""
    options = {"driver": "GTiff", "dtype": "uint16", "count": 1, "nodata": 0, "crs": sentinel2.SCENE_CRS}
    options |= {"width": FULL_SCENE.width, "height": FULL_SCENE.height, "tiled": True, "blockxsize": 1024}
    options |= {"transform": sentinel2.window_transform(FULL_SCENE), "blockysize": 1024}
    pixels = np.arange(1_000_000, dtype=np.uint16).reshape(1000, 1000)
    with rasterio.open(tmp_path / "B04.tif", "w", **options) as target:
        target.write(pixels, 1, window=rasterio.windows.Window(*PINNED_WINDOW))
    with (
        (tmp_path / "B04.tif").open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        memoryview(mapped) as content,
    ):
        yield content, pixel_digest(pixels)
    shutil.rmtree(tmp_path)


def test_the_whole_scene_outlives_a_lie_and_cuts(scene, tile, tmp_path, server, caplog):
    """Each byte is loaded once, by two commands; the study gets the whole scene."""
    caplog.set_level(logging.INFO)
    content, digest = tile
    dataset = replace(scene[1], url=server.put("B04.tif", content), content_sha256=digest)
    part, size = tmp_path / "raw" / "whole.tif.part", len(content)
    server.faults[:] = ["lie"]
    said = f"offers {size:,} bytes instead of {size + 1000:,}: .* server is wrong. Try again later"
    with pytest.raises(DataError, match=said):
        get(dataset, tmp_path, mode="real", window="full")
    loaded = part.stat().st_size
    assert size > 240_000_000 and size // 2 - CHUNK <= loaded <= size // 2
    assert entries(tmp_path / "raw") == ["whole.tif.part"]
    server.faults[:] = ["cut", 503, "cut"]
    manifest = get(dataset, tmp_path)
    assert (manifest.source, manifest.reason, manifest.synthetic) == ("download", "", False)
    assert server.sent <= size + 3 * CHUNK and server.ranges[2] == f"bytes={loaded}-"
    needs = f": {size - loaded:,} bytes to load, "
    assert any(needs in line and "308,229,664 bytes of m" in line for line in caplog.messages)
    assert entries(tmp_path / "raw") == ["sentinel2-b04", "sentinel2-b04.json"]
    assert pixel_digest(read_band(tmp_path / "raw" / manifest.path, PINNED_WINDOW).pixels) == digest


@pytest.mark.parametrize("name", ["visdrone-val", "sentinel2-b04"])
@pytest.mark.usefixtures("little_room")
def test_a_full_disk_is_one_error_and_leaves_nothing(drone_dataset, scene, tmp_path, name):
    dataset = drone_dataset if name == "visdrone-val" else scene[1]
    with pytest.raises(DataError, match=r"can't write .* to .*raw") as error:
        get(dataset, tmp_path)
    assert "/raw/." not in str(error.value)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_unknown_mode_and_data_set(tmp_path):
    with pytest.raises(InputError, match="choose one of auto, real, sample"):
        fetch("visdrone-val", raw_dir=tmp_path, mode="fake")
    with pytest.raises(DataError, match="no data set 'coco'; known: sentinel2-b04, visdrone-val"):
        fetch("coco", raw_dir=tmp_path)


def test_windows():
    assert parse_window("auto") == [FULL_SCENE, PINNED_WINDOW] and parse_window("full") == [FULL_SCENE]
    assert parse_window([1, 2, 3, 4]) == [Window(1, 2, 3, 4)]
    for wrong in ([1, 2, 3], "all", [-1, 0, 5, 5], [0, 0, 0, 5], [10_970, 0, 11, 5]):
        with pytest.raises(InputError, match="window"):
            parse_window(wrong)


CONTENT = np.random.RandomState(0).bytes(300_000)
CHECK = partial(find_fault, size=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest())
EXPECTED = {"check": CHECK, "size": len(CONTENT), "progress": False}
UNKNOWN = EXPECTED | {"size": None}


def test_file_arrives_under_its_name_and_is_not_fetched_twice(server, tmp_path):
    url = server.put("data.bin", CONTENT)
    for _ in range(2):
        assert download(url, tmp_path / "sub" / "data.bin", **EXPECTED).read_bytes() == CONTENT
    assert len(server.ranges) == 1
    assert entries(tmp_path / "sub") == ["data.bin"]


# What lies there, faults of the server, and the ranges that are asked for.
CUT = ["cut", 503, "cut"]
RESUMED = [
    ({}, CUT, [None, "bytes=150000-", "bytes=150000-", "bytes=225000-"]),
    ({}, [404], [None, None]),
    ({"data.bin": CONTENT[:-1] + b"?"}, [], [None]),
    ({"data.bin.part": CONTENT[:100_000]}, [], ["bytes=100000-"]),
    ({"data.bin.part": CONTENT[:100_000]}, ["no-range"], ["bytes=100000-"]),
    ({"data.bin.part": b"x" * 100_000}, [], ["bytes=100000-", None]),
    ({"data.bin.part": b"x" * 300_000}, [], [None]),
    ({"data.bin.part": CONTENT + b"?"}, [], [None]),
]


@pytest.mark.parametrize(("there", "faults", "ranges"), RESUMED)
def test_broken_transfer_is_resumed_where_it_stopped(server, tmp_path, monkeypatch, there, faults, ranges):
    monkeypatch.setattr("octopus_study.data.download.CHUNK", 1000)
    for name, content in there.items():
        (tmp_path / name).write_bytes(content)
    server.faults[:] = faults
    path = download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **EXPECTED)
    assert path.read_bytes() == CONTENT and entries(tmp_path) == ["data.bin"]
    assert server.ranges == ranges
    until = time.monotonic() + 10
    while faults == CUT and server.sent < len(CONTENT) and time.monotonic() < until:
        time.sleep(0.01)  # the server counts what it sent after the client may have it
    assert faults != CUT or server.sent == len(CONTENT)


@pytest.mark.parametrize(("faults", "content", "message"), [
    (["html"], CONTENT, "answered with a web page"),
    (["bad-length"], CONTENT, "says that it sends 'abc' bytes"),
    (["endless"], CONTENT, "sends more than 300,000 bytes"),
    ([], CONTENT[:-1], "offers 299,999 bytes instead of 300,000"),
    ([], CONTENT[:-1] + b"?", "its SHA-256 is"), ([403], CONTENT, "answered 403"),
    ([404] * 5, CONTENT, "gave up .* answered 404"),
    ([500] * 5, CONTENT, "gave up .* answered 500"),
    (["to itself"] * 40, CONTENT, "can't reach .* 30 redirects"),
    (["to a file"], CONTENT, "can't reach .*file:///etc/hostname"),
])  # fmt: skip
def test_wrong_answer_is_refused_and_leaves_no_file(server, tmp_path, faults, content, message):
    server.faults[:] = faults
    with pytest.raises(DataError, match=message):
        download(server.put("data.bin", content), tmp_path / "data.bin", **EXPECTED)
    assert entries(tmp_path) == []


def test_file_of_unknown_size_has_a_limit(server, tmp_path, monkeypatch):
    monkeypatch.setattr("octopus_study.data.download.LARGEST", 1000)
    server.faults[:] = ["endless"]
    said = r"sends more than 1,000 bytes\. Try again later, or put the file into a folder"
    with pytest.raises(DataError, match=said):
        download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **UNKNOWN)
    assert entries(tmp_path) == []


def test_a_part_that_is_whole_is_not_loaded_again(server, tmp_path):
    (tmp_path / "data.bin.part").write_bytes(CONTENT)
    assert download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **UNKNOWN).read_bytes() == CONTENT
    assert (server.ranges, server.sent) == (["bytes=300000-"], 0)


@pytest.mark.parametrize("place", ["disk", "memory"])
def test_a_download_says_what_it_needs_and_asks_for_room_first(server, tmp_path, monkeypatch, caplog, place):
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:100_000])
    needs = {"unpacked": 7000, "memory": 5000} | EXPECTED
    with monkeypatch.context() as little:
        if place == "disk":
            little.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=206_999))
        else:
            little.setattr("octopus.backends.cpu.free_bytes", lambda: 4999)
        said = f"too little {place} for data.bin: 200,000 bytes .*; free some and run the"
        with pytest.raises(DataError, match=said):
            download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **needs)
    assert (tmp_path / "data.bin.part").read_bytes() == CONTENT[:100_000]
    caplog.clear()
    with caplog.at_level(logging.INFO):
        download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **needs)
    said = [line for line in caplog.messages if "bytes of memory" in line]
    assert len(said) == 1 and "200,000 bytes to load, 207,000 bytes of disk in" in said[0] and "5,000 bytes" in said[0]


@pytest.mark.parametrize(("faults", "longest", "message"), [
    (["cut"] * 5, 1000.0, "gave up .* after 5 attempts: the connection .*run the same command"),
    ([], 0.0, "takes longer than 0 s; run the same command to resume"),
])  # fmt: skip
def test_a_download_that_is_given_up_keeps_its_part(server, tmp_path, monkeypatch, faults, longest, message):
    monkeypatch.setattr("octopus_study.data.download.LONGEST", longest)
    server.faults[:] = faults
    with pytest.raises(DataError, match=message):
        download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **EXPECTED)
    assert entries(tmp_path) == ["data.bin.part"]


@pytest.mark.parametrize("host", ["127.0.0.1:9", "no-such-host.invalid"])
def test_no_network_fails_at_once(tmp_path, host):
    start = time.monotonic()
    with pytest.raises(DataError, match=f"can't reach http://{host}/x"):
        download(f"http://{host}/x", tmp_path / "x", **EXPECTED)
    with pytest.raises(DataError, match="can't reach"):
        check_reachable(f"http://{host}/x")
    assert time.monotonic() - start < 5
    assert entries(tmp_path) == []


@pytest.mark.usefixtures("little_room")
def test_a_disk_that_is_full_on_the_way_keeps_the_part(server, tmp_path):
    with pytest.raises(DataError, match=r"can't write .*part: .*; make room for it and run the same"):
        download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **EXPECTED)
    loaded = (tmp_path / "data.bin.part").read_bytes()
    assert loaded == CONTENT[: len(loaded)] != b"" and entries(tmp_path) == ["data.bin.part"]


def test_unwritable_place_is_an_error_of_ours(server, tmp_path):
    (tmp_path / "data.bin.part").mkdir()
    with pytest.raises(DataError, match="can't write"):
        download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **EXPECTED)
