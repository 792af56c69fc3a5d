from __future__ import annotations

import stat
import zipfile

import pytest

from octopus_study.data.archive import unpack_zip
from octopus_study.errors import DataError


def make_zip(path, members):
    with zipfile.ZipFile(path, "w") as target:
        for name, content in members:
            target.writestr(name, content)
    return path


def files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_without_a_shared_top_folder_names_stay(tmp_path):
    archive = make_zip(tmp_path / "a.zip", [("a/x.txt", "x"), ("y.txt", "y")])
    assert files(unpack_zip(archive, tmp_path / "out")) == ["a/x.txt", "y.txt"]


@pytest.mark.parametrize(
    "name", ["../evil.txt", "top/../../evil.txt", "/evil.txt", "..\\evil.txt", "C:\\evil.txt"]
)
def test_member_that_leaves_the_folder_is_refused_before_anything_is_written(tmp_path, name):
    archive = make_zip(tmp_path / "a.zip", [("good.txt", "x"), (name, "x")])
    with pytest.raises(DataError, match="leaves its folder; nothing was unpacked"):
        unpack_zip(archive, tmp_path / "out")
    assert files(tmp_path) == ["a.zip"]


def test_symbolic_link_is_refused(tmp_path):
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    archive = make_zip(tmp_path / "a.zip", [(link, "/etc/passwd")])
    with pytest.raises(DataError, match="link or a special file"):
        unpack_zip(archive, tmp_path / "out")


def test_encrypted_member_is_an_error_of_ours(tmp_path):
    archive = make_zip(tmp_path / "a.zip", [("x.txt", "x")])
    content = bytearray(archive.read_bytes())
    for start, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(start) + flags] |= 1
    archive.write_bytes(content)
    with pytest.raises(DataError, match=r"can't unpack .* encrypted"):
        unpack_zip(archive, tmp_path / "out")


def test_unknown_compression_is_an_error_of_ours(tmp_path):
    archive = make_zip(tmp_path / "a.zip", [("x.txt", "x")])
    content = bytearray(archive.read_bytes())
    for start, method in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        content[content.index(start) + method] = 99
    archive.write_bytes(content)
    with pytest.raises(DataError, match=r"can't unpack .* compression"):
        unpack_zip(archive, tmp_path / "out")


def test_archive_that_unpacks_to_far_more_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr("octopus_study.data.archive.ALWAYS_ALLOWED", 1000)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("x.txt", b"x" * 1_000_000)
    with pytest.raises(DataError, match="would unpack to 1,000,000 bytes; nothing was unpacked"):
        unpack_zip(tmp_path / "a.zip", tmp_path / "out")
    assert files(tmp_path) == ["a.zip"]


def test_damaged_archive_is_an_error_of_ours(tmp_path):
    archive = make_zip(tmp_path / "a.zip", [("x.txt", "x" * 100)])
    archive.write_bytes(archive.read_bytes().replace(b"x" * 100, b"x" * 99 + b"y"))
    with pytest.raises(DataError, match="can't unpack"):
        unpack_zip(archive, tmp_path / "out")
    archive.write_bytes(b"<html>")
    with pytest.raises(DataError, match="can't unpack"):
        unpack_zip(archive, tmp_path / "out2")


def fifo():
    member = zipfile.ZipInfo("pipe")
    member.external_attr = (stat.S_IFIFO | 0o644) << 16
    return member


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("good.txt", "x"), (fifo(), "")], "link or a special file"),
        ([("a.txt", "x"), ("a.txt", "y")], "can't unpack"),
        ([("a", "a file"), ("a/x.txt", "in a folder")], "can't unpack"),
    ],
    ids=["fifo", "twice", "file as folder"],
)
def test_members_that_can_not_be_files_are_refused(tmp_path, members, message):
    archive = make_zip(tmp_path / "a.zip", members)
    with pytest.raises(DataError, match=message):
        unpack_zip(archive, tmp_path / "out")
