"""A copy of the repository, in which a test changes files, and which finds what the repository's cache has."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from numba.core.caching import UserProvidedCacheLocator

from octopus.backends import cache
from octopus_study.measure.digest import kept_in

IGNORED = shutil.ignore_patterns("__pycache__", "build", ".*", "*.egg-info")
STUDY_KERNELS = "workflow/octopus_study/kernels/cpu"
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
    share_cache(root, folder)
    return folder


def share_cache(root: Path, copy: Path) -> None:
    """Let the copy's processes find what sources say, and the CPU kernels that were compiled for the repository. The
    library's lie in a folder that is named after their sources. Those of the studies are Numba's, in a folder that is
    named after the path of their source, so that a copy would begin with none."""
    digest = cache.kernel_digest("cpu")
    kept, own = cache.cache_dir().resolve(), copy / CACHE
    theirs, ours = (
        UserProvidedCacheLocator.get_suitable_cache_subpath(str(base / STUDY_KERNELS / "any.py"))
        for base in (root, copy)
    )
    pairs = {f"cpu-{digest}": f"cpu-{digest}", f"numba-{digest}/{theirs}": f"numba-{digest}/{ours}"}
    pairs[kept_in()] = kept_in()
    for there, here in pairs.items():
        (kept / there).mkdir(parents=True, exist_ok=True)
        (own / here).parent.mkdir(parents=True, exist_ok=True)
        (own / here).symlink_to(kept / there)
