"""Where compiled kernels are kept between processes, and under which key."""

import hashlib
import logging
import os
import secrets
import sys
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
    """Folder of compiled kernels: `OCTOPUS_CACHE_DIR`, else `octopus` in the user's cache folder, or `spare_dir`."""
    own = os.environ.get("OCTOPUS_CACHE_DIR")
    users = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
    if own:
        return Path(own)
    try:
        return Path(users).expanduser() / "octopus"
    except RuntimeError:  # a user without a home, as in some containers
        return spare_dir() or Path(os.devnull)  # below which nothing is found, nor can be kept


def spare_dir() -> Path | None:
    """Folder in place of `cache_dir`: this user's own among the temporary files, closed to others; else None."""
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


def _folders() -> Iterator[Path]:
    """Where kernels are looked for and kept: `cache_dir` if others can't put code there, then `spare_dir`."""
    folder = cache_dir()
    if not refusal(folder):
        yield folder
    if spare := spare_dir():
        yield spare


def own_dir() -> Path:
    return next(_folders(), Path(os.devnull))


@cache
def announce() -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        print(
            "octopus: compiling kernels, once for this machine; octopus.warm_up() does it beforehand", file=sys.stderr
        )


@cache
def kernel_digest(folder: str, *more: Path) -> str:
    """Digest of all that compiled kernels depend on: `source_digest`, and the versions of the compilers."""
    packages = ("numba", "llvmlite", "numba-cuda", "numba-cuda-mlir", "nvidia-nvvm", "nvidia-cuda-nvcc-cu12")
    versions = [f"{package}={_version(package)}" for package in packages]
    versions.append(os.environ.get("OCTOPUS_COMPILER", ""))
    return hashlib.sha256("".join([source_digest(folder, *more), *versions]).encode()).hexdigest()[:16]


@cache
def source_digest(folder: str, *more: Path) -> str:
    """Digest of the sources of all kernels of a kind, of those in the folders `more`, and of how they are compiled."""
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
    stored = load_bytes(name)
    try:
        return None if stored is None else stored.decode()
    except UnicodeDecodeError:
        return None


def load_bytes(name: str) -> bytes | None:
    for folder in _folders():
        with suppress(OSError):
            stored = (folder / name).read_bytes()
            if folder != own_dir():
                with suppress(OSError):  # where it belongs, should that be writable by now
                    _write(own_dir(), name, stored)
            return stored
    return None


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
    folder, kept = cache_dir(), None
    reason = refusal(folder)
    for place in _folders():
        try:
            _write(place, name, content.encode() if isinstance(content, str) else content)
        except OSError as error:
            reason = reason or f"not writable: {error}"
        else:
            kept = place
            break
    if reason:
        _warn(folder, reason, kept)


@cache
def _warn(folder: Path, reason: str, spare: Path | None) -> None:
    where = f"are kept in {spare} instead" if spare else "are not kept, and each process compiles them again"
    log.warning("%s is not used (%s): compiled kernels %s; set OCTOPUS_CACHE_DIR", folder, reason, where)


def _place(folder: Path, name: str) -> Path:
    """Path of that name in a folder to which no other user may write, whatever the umask."""
    path = folder / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def _write(folder: Path, name: str, content: bytes) -> None:
    path = _place(folder, name)
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")  # other hosts may share the folder
    part.write_bytes(content)
    part.replace(path)
