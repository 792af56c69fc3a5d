import hashlib
import logging
import shutil
import time
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from octopus_study.data.download import check_reachable, download, find_fault
from octopus_study.errors import DataError

CONTENT = np.random.RandomState(0).bytes(300_000)
CHECK = partial(find_fault, size=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest())
EXPECTED = {"check": CHECK, "size": len(CONTENT), "progress": False}
UNKNOWN = EXPECTED | {"size": None}


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_file_arrives_under_its_name_and_is_not_fetched_twice(server, tmp_path):
    url = server.put("data.bin", CONTENT)
    for _ in range(2):
        assert download(url, tmp_path / "sub" / "data.bin", **EXPECTED).read_bytes() == CONTENT
    assert len(server.ranges) == 1
    assert names(tmp_path / "sub") == ["data.bin"]


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
    assert path.read_bytes() == CONTENT and names(tmp_path) == ["data.bin"]
    assert server.ranges == ranges
    assert faults != CUT or server.sent == len(CONTENT)


def test_endless_interruptions_keep_the_part_and_no_file(server, tmp_path):
    server.faults[:] = ["cut"] * 5
    with pytest.raises(DataError, match=r"gave up .* after 5 attempts: the connection .*run the same command"):
        download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **EXPECTED)
    assert names(tmp_path) == ["data.bin.part"]


@pytest.mark.parametrize(
    ("faults", "content", "message"),
    [
        (["html"], CONTENT, "answered with a web page"),
        (["bad-length"], CONTENT, "says that it sends 'abc' bytes"),
        (["endless"], CONTENT, "sends more than 300,000 bytes"),
        ([], CONTENT[:-1], "offers 299,999 bytes instead of 300,000"),
        ([], CONTENT[:-1] + b"?", "its SHA-256 is"),
        ([403], CONTENT, "answered 403"),
        ([404] * 5, CONTENT, "gave up .* answered 404"),
        ([500] * 5, CONTENT, "gave up .* answered 500"),
        (["to itself"] * 40, CONTENT, "can't reach .* 30 redirects"),
        (["to a file"], CONTENT, "can't reach .*file:///etc/hostname"),
    ],
)
def test_wrong_answer_is_refused_and_leaves_no_file(server, tmp_path, faults, content, message):
    server.faults[:] = faults
    with pytest.raises(DataError, match=message):
        download(server.put("data.bin", content), tmp_path / "data.bin", **EXPECTED)
    assert names(tmp_path) == []


def test_file_of_unknown_size_has_a_limit(server, tmp_path, monkeypatch):
    monkeypatch.setattr("octopus_study.data.download.LARGEST", 1000)
    server.faults[:] = ["endless"]
    with pytest.raises(
        DataError, match=r"sends more than 1,000 bytes\. Try again later, or put the file into a folder"
    ):
        download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **UNKNOWN)
    assert names(tmp_path) == []


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
        with pytest.raises(
            DataError, match=f"too little {place} for data.bin: 200,000 bytes .*; free some and run the"
        ):
            download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **needs)
    assert (tmp_path / "data.bin.part").read_bytes() == CONTENT[:100_000]
    caplog.clear()
    with caplog.at_level(logging.INFO):
        download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **needs)
    said = [line for line in caplog.messages if "bytes of memory" in line]
    assert len(said) == 1 and "200,000 bytes to load, 207,000 bytes of disk in" in said[0] and "5,000 bytes" in said[0]


def test_download_that_takes_too_long_keeps_its_part(server, tmp_path, monkeypatch):
    monkeypatch.setattr("octopus_study.data.download.LONGEST", 0.0)
    with pytest.raises(DataError, match="takes longer than 0 s; run the same command to resume"):
        download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **EXPECTED)
    assert names(tmp_path) == ["data.bin.part"]


@pytest.mark.parametrize("host", ["127.0.0.1:9", "no-such-host.invalid"])
def test_no_network_fails_at_once(tmp_path, host):
    start = time.monotonic()
    with pytest.raises(DataError, match=f"can't reach http://{host}/x"):
        download(f"http://{host}/x", tmp_path / "x", **EXPECTED)
    with pytest.raises(DataError, match="can't reach"):
        check_reachable(f"http://{host}/x")
    assert time.monotonic() - start < 5
    assert names(tmp_path) == []


@pytest.mark.usefixtures("little_room")
def test_a_disk_that_is_full_on_the_way_keeps_the_part(server, tmp_path):
    with pytest.raises(DataError, match=r"can't write .*part: .*; make room for it and run the same"):
        download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **EXPECTED)
    loaded = (tmp_path / "data.bin.part").read_bytes()
    assert loaded == CONTENT[: len(loaded)] != b"" and names(tmp_path) == ["data.bin.part"]


def test_unwritable_place_is_an_error_of_ours(server, tmp_path):
    (tmp_path / "data.bin.part").mkdir()
    with pytest.raises(DataError, match="can't write"):
        download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **EXPECTED)
