"""Unpacks a downloaded archive without letting it write anywhere else."""

from __future__ import annotations

import shutil
import stat
import zipfile
from pathlib import Path, PurePosixPath

from octopus_study.errors import DataError


def unpack_zip(archive: str | Path, folder: str | Path) -> Path:
    """Unpack a zip file into the new or empty `folder`, without the top folder that all members share.

    Every member is checked before the first is written.

    Raises
    ------
    DataError
        The archive is damaged, or a member is a link, has an absolute name or leaves the folder.
    """
    folder = Path(folder)
    try:
        with zipfile.ZipFile(archive) as source:
            members = [member for member in source.infolist() if not member.is_dir()]
            names = [_safe_name(member, archive) for member in members]
            shared = _shares_top_folder(names)
            for member, name in zip(members, names, strict=True):
                _extract(source, member, folder.joinpath(*name.parts[shared:]))
    except (zipfile.BadZipFile, EOFError, OSError) as error:
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


def _shares_top_folder(names: list[PurePosixPath]) -> bool:
    return len({name.parts[0] for name in names}) == 1 and all(len(name.parts) > 1 for name in names)


def _extract(source: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open(member) as packed, target.open("xb") as file:
        shutil.copyfileobj(packed, file)
