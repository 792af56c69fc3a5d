from __future__ import annotations

import hashlib
import time

import numpy as np
import pytest

from octopus_study.data.download import check_reachable, download
from octopus_study.errors import DataError

CONTENT = np.random.RandomState(0).bytes(300_000)
EXPECTED = {"size": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest(), "progress": False}


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_file_arrives_under_its_name_and_is_not_fetched_twice(server, tmp_path):
    url = server.put("data.bin", CONTENT)
    for _ in range(2):
        assert download(url, tmp_path / "sub" / "data.bin", **EXPECTED).read_bytes() == CONTENT
    assert len(server.ranges) == 1
    assert names(tmp_path / "sub") == ["data.bin"]


def test_broken_transfer_is_resumed_where_it_stopped(server, tmp_path, monkeypatch):
    monkeypatch.setattr("octopus_study.data.download.CHUNK", 1000)
    url = server.put("data.bin", CONTENT)
    server.faults[:] = ["cut", 503, "cut"]
    assert download(url, tmp_path / "data.bin", **EXPECTED).read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=150000-", "bytes=150000-", "bytes=225000-"]
    assert server.sent == len(CONTENT)


def test_part_of_an_earlier_run_is_resumed(server, tmp_path):
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:100_000])
    download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **EXPECTED)
    assert server.ranges == ["bytes=100000-"]


def test_server_that_ignores_ranges_sends_all_again(server, tmp_path):
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:100_000])
    server.faults[:] = ["no-range"]
    path = download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **EXPECTED)
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("stale", [b"x" * 100_000, b"x" * 300_000, b"x" * 300_001])
def test_wrong_part_of_an_earlier_run_is_dropped(server, tmp_path, stale):
    (tmp_path / "data.bin.part").write_bytes(stale)
    path = download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **EXPECTED)
    assert path.read_bytes() == CONTENT
    assert names(tmp_path) == ["data.bin"]


def test_damaged_file_under_the_final_name_is_replaced(server, tmp_path):
    (tmp_path / "data.bin").write_bytes(CONTENT[:-1] + b"?")
    path = download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **EXPECTED)
    assert path.read_bytes() == CONTENT


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
    for message in ("sends more than 1,000 bytes$", "sends more than 1,000 bytes: 300,000$"):
        with pytest.raises(DataError, match=message):
            download(server.put("data.bin", CONTENT), tmp_path / "data.bin", progress=False)
    assert names(tmp_path) == []


def test_download_that_takes_too_long_keeps_its_part(server, tmp_path, monkeypatch):
    monkeypatch.setattr("octopus_study.data.download.LONGEST", 0.0)
    with pytest.raises(DataError, match="takes longer than 0 s; run the same command to resume"):
        download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **EXPECTED)
    assert names(tmp_path) == ["data.bin.part"]


def test_part_that_is_too_long_is_dropped_whatever_the_server_says(server, tmp_path):
    (tmp_path / "data.bin.part").write_bytes(CONTENT + b"?")
    download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **EXPECTED)
    assert server.ranges == [None]


def test_object_store_that_answers_404_once_is_asked_again(server, tmp_path):
    server.faults[:] = [404]
    assert download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **EXPECTED).is_file()


@pytest.mark.parametrize("host", ["127.0.0.1:9", "no-such-host.invalid"])
def test_no_network_fails_at_once(tmp_path, host):
    start = time.monotonic()
    with pytest.raises(DataError, match=f"can't reach http://{host}/x"):
        download(f"http://{host}/x", tmp_path / "x", **EXPECTED)
    with pytest.raises(DataError, match="can't reach"):
        check_reachable(f"http://{host}/x")
    assert time.monotonic() - start < 5
    assert names(tmp_path) == []


def test_unwritable_place_is_an_error_of_ours(server, tmp_path):
    (tmp_path / "data.bin.part").mkdir()
    with pytest.raises(DataError, match="can't write"):
        download(server.put("data.bin", CONTENT), tmp_path / "data.bin", **EXPECTED)
