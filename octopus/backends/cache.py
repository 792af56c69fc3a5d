"""Where compiled kernels are kept between processes, and under which key."""

from __future__ import annotations

import hashlib
import logging
import os
from functools import cache
from importlib import metadata
from pathlib import Path

log = logging.getLogger(__name__)

PACKAGE = Path(__file__).resolve().parents[1]


def cache_dir() -> Path:
    """Folder of compiled kernels: `OCTOPUS_CACHE_DIR`, else `octopus` in the user's cache folder."""
    own = os.environ.get("OCTOPUS_CACHE_DIR")
    users = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
    return Path(own) if own else Path(users).expanduser() / "octopus"


@cache
def kernel_digest(folder: str, *more: Path) -> str:
    """Digest of all that compiled kernels depend on: the kernels' sources and the compiler's version.

    Numba's own cache looks at the file of the outermost function alone, so that a change in `geometry.py`
    would go unnoticed; here every source file below `kernels/` of this kind counts, and each in the folders `more`.
    """
    digest = hashlib.sha256()
    folders = (PACKAGE / "kernels", PACKAGE / "kernels" / folder, *more)
    for path in sorted(path for folder in folders for path in folder.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    for package in ("numba", "llvmlite", "numba-cuda", "nvidia-nvvm"):
        digest.update(f"{package}={_version(package)}".encode())
    return digest.hexdigest()[:16]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"


def load(name: str) -> str | None:
    """The stored text of that name, or None."""
    try:
        return (cache_dir() / name).read_text()
    except (OSError, UnicodeDecodeError):
        return None


def store(name: str, text: str) -> None:
    """Keep `text`; a reader sees the whole file or none. An unwritable folder only costs the next compilation."""
    path = cache_dir() / name
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text)
        part.replace(path)
    except OSError as error:
        log.warning("compiled kernels are not kept: %s is not writable (%s)", path.parent, error)
