"""Where compiled kernels are kept between processes, and under which key."""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import metadata
from pathlib import Path

log = logging.getLogger(__name__)

PATIENCE = 60.0  # much longer than a kernel takes, should the process that makes it be stopped
PACKAGE = Path(__file__).resolve().parents[1]


def cache_dir() -> Path:
    """Folder of compiled kernels: `OCTOPUS_CACHE_DIR`, else `octopus` in the user's cache folder.

    For a user without a home, as in some containers, it is `spare_dir`.
    """
    own = os.environ.get("OCTOPUS_CACHE_DIR")
    users = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
    if own:
        return Path(own)
    try:
        return Path(users).expanduser() / "octopus"
    except RuntimeError:
        return spare_dir() or Path(os.devnull)  # below which nothing is found, nor can be kept


def spare_dir() -> Path | None:
    """Folder for where `cache_dir` can't be written: this user's own among the temporary files, which nobody else may
    write to; None if that can't be had either."""
    folder = Path(tempfile.gettempdir()) / f"octopus-{os.getuid() if hasattr(os, 'getuid') else 'cache'}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        state = folder.lstat()
    except OSError:
        return None
    own = not hasattr(os, "getuid") or (state.st_uid == os.getuid() and not state.st_mode & 0o022)
    return folder if own and not folder.is_symlink() else None


def refusal(folder: Path) -> str:
    """Why no compiled code is taken from a folder, nor kept there; "" if it is this user's own, or not there yet."""
    try:
        state = folder.stat()
    except OSError:
        return ""
    if not hasattr(os, "getuid"):
        return ""
    if state.st_uid not in (os.getuid(), 0):
        return "it belongs to another user"
    return "others may write to it" if state.st_mode & 0o022 else ""


def own_dir() -> Path:
    """`cache_dir`, or `spare_dir` where others could put code into the first."""
    folder = cache_dir()
    return (spare_dir() or Path(os.devnull)) if refusal(folder) else folder


@cache
def kernel_digest(folder: str, *more: Path) -> str:
    """Digest of all that compiled kernels depend on: `source_digest`, and the versions of the compilers."""
    packages = ("numba", "llvmlite", "numba-cuda", "numba-cuda-mlir", "nvidia-nvvm")
    versions = [f"{package}={_version(package)}" for package in packages]
    versions.append(os.environ.get("OCTOPUS_COMPILER", ""))
    return hashlib.sha256("".join([source_digest(folder, *more), *versions]).encode()).hexdigest()[:16]


@cache
def source_digest(folder: str, *more: Path) -> str:
    """Digest of the kernels' sources and of how they are compiled.

    Every source file below `kernels/` of this kind counts, and each in the folders `more`.
    """
    digest = hashlib.sha256()
    folders = (PACKAGE / "kernels", PACKAGE / "kernels" / folder, *more)
    sources = [path for place in folders for path in place.glob("*.py")]
    compilers = ("compile.py", "language.py", "of_*.py")
    sources += [path for pattern in compilers for path in (PACKAGE / "backends" / folder).glob(pattern)]
    for path in sorted(sources):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"


def load(name: str) -> str | None:
    """The stored text of that name, or None."""
    stored = load_bytes(name)
    try:
        return None if stored is None else stored.decode()
    except UnicodeDecodeError:
        return None


def load_bytes(name: str) -> bytes | None:
    """What is stored under that name, or None."""
    folder = cache_dir()
    refused = refusal(folder)
    with suppress(OSError):
        if not refused:
            return (folder / name).read_bytes()
    spare = spare_dir()
    try:
        stored = (spare / name).read_bytes() if spare is not None else None
    except OSError:
        return None
    if stored is not None and not refused:
        with suppress(OSError):  # where it belongs, should that be writable by now
            _write(folder, name, stored)
    return stored


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Keep other processes waiting that would make what is stored under that name; up to `PATIENCE` seconds of each."""
    try:
        import fcntl

        file = _place(own_dir(), f"{name}.lock").open("w")
    except (ImportError, OSError):  # each makes its own
        yield
        return
    with file:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                time.sleep(0.02)
        yield


def store(name: str, content: str | bytes) -> None:
    """Keep `content`; a reader sees the whole file or none. A folder that can't be used costs a warning."""
    stored = content.encode() if isinstance(content, str) else content
    folder = cache_dir()
    reason = refusal(folder)
    if not reason:
        try:
            _write(folder, name, stored)
            return
        except OSError as error:
            reason = f"not writable: {error}"
    _store_elsewhere(name, stored, folder, reason)


def forget(name: str) -> None:
    """Keep nothing under that name any more."""
    for folder in (cache_dir(), spare_dir()):
        if folder is not None and not refusal(folder):
            with suppress(OSError):
                (folder / name).unlink()


def _store_elsewhere(name: str, content: bytes, folder: Path, reason: str) -> None:
    spare = spare_dir()
    try:
        if spare is not None:
            _write(spare, name, content)
    except OSError:
        spare = None
    _warn(folder, reason, spare)


@cache
def _warn(folder: Path, reason: str, spare: Path | None) -> None:
    """Once per process and reason."""
    where = f"are kept in {spare} instead" if spare else "are not kept, and each process compiles them again"
    log.warning("%s is not used (%s): compiled kernels %s; set OCTOPUS_CACHE_DIR", folder, reason, where)


def _place(folder: Path, name: str) -> Path:
    """Path of that name in a folder to which nobody else may write, whatever the umask."""
    path = folder / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def _write(folder: Path, name: str, content: bytes) -> None:
    path = _place(folder, name)
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")  # other hosts may share the folder
    part.write_bytes(content)
    part.replace(path)
