"""A copy of the repository, in which a test changes files, and which needn't compile anew what is compiled."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from numba.core.caching import UserProvidedCacheLocator

from octopus.kernels.cpu import _folder

IGNORED = shutil.ignore_patterns("__pycache__", "build", ".*", "*.egg-info")
KERNELS = ("octopus/kernels/cpu", "workflow/octopus_study/kernels/cpu")
CACHE = "cache"  # the copy's OCTOPUS_CACHE_DIR


def copied(root: Path, folder: Path, names: Iterable[str]) -> Path:
    """Copy what is there of these files and folders, with the dates of the files, and return the copy."""
    for name in names:
        source, target = root / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=IGNORED)
        elif source.is_file():
            shutil.copy2(source, target)
    share_kernels(root, folder)
    return folder


def share_kernels(root: Path, copy: Path) -> None:
    """Let the copy's processes find the CPU kernels that were compiled for the repository.

    Numba keeps them in a folder that is named after the path of their source, so that a copy would begin with none.
    """
    kept = _folder()
    if kept is None:
        return
    own = copy / CACHE / kept.name
    own.mkdir(parents=True)
    for place in KERNELS:
        theirs, ours = (
            UserProvidedCacheLocator.get_suitable_cache_subpath(str(base / place / "any.py"))
            for base in (root, copy)
        )
        (kept / theirs).mkdir(exist_ok=True)
        (own / ours).symlink_to(kept / theirs)
