"""Unpacks a downloaded archive without letting it write anywhere else."""

from __future__ import annotations

import shutil
import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from octopus_study.errors import DataError

ALWAYS_ALLOWED = 64 << 20
MOST_TIMES = 20
"""Bytes that any archive may unpack to, and how often its own size a larger one; images and text are far below."""


def unpack_zip(archive: str | Path, folder: str | Path) -> Path:
    """Unpack a zip file into the new or empty `folder`, without the top folder that all members share.

    Every member is checked before the first is written.

    Raises
    ------
    DataError
        The archive is damaged, encrypted, packed in an unknown way or unpacks to far more than its size, or a member is
        a link, has an absolute name or leaves the folder.
    """
    folder = Path(folder)
    try:
        with zipfile.ZipFile(archive) as source:
            members = [member for member in source.infolist() if not member.is_dir()]
            names = [_safe_name(member, archive) for member in members]
            _check_size(members, Path(archive))
            shared = _shares_top_folder(names)
            for member, name in zip(members, names, strict=True):
                _extract(source, member, folder.joinpath(*name.parts[shared:]))
    except DataError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as error:
        raise DataError(f"can't unpack {archive} ({error}); delete it and fetch again") from error
    return folder


def _safe_name(member: zipfile.ZipInfo, archive: str | Path) -> PurePosixPath:
    name = PurePosixPath(member.filename.replace("\\", "/"))
    # A drive letter would make the name absolute on Windows.
    leaves = not name.parts or name.is_absolute() or ".." in name.parts or ":" in name.parts[0]
    kind = stat.S_IFMT(member.external_attr >> 16)
    if leaves or kind not in (0, stat.S_IFREG):
        what = "leaves its folder" if leaves else "is a link or a special file"
        raise DataError(f"{archive}: the member {member.filename!r} {what}; nothing was unpacked")
    return name


def _check_size(members: list[zipfile.ZipInfo], archive: Path) -> None:
    # No member can give more than it says: zipfile stops there.
    size = sum(member.file_size for member in members)
    if size > max(ALWAYS_ALLOWED, MOST_TIMES * archive.stat().st_size):
        raise DataError(f"{archive} would unpack to {size:,} bytes; nothing was unpacked")


def _shares_top_folder(names: list[PurePosixPath]) -> bool:
    return len({name.parts[0] for name in names}) == 1 and all(len(name.parts) > 1 for name in names)


def _extract(source: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open(member) as packed, target.open("xb") as file:
        shutil.copyfileobj(packed, file)
