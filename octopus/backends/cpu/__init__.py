"""CPU backend: compiled kernels, the threads that run them, and how much memory is free."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from octopus.backends.cpu.threads import cores, get_num_threads, set_num_threads

__all__ = ["cores", "free_bytes", "get_num_threads", "set_num_threads"]

GROUPS = Path("/sys/fs/cgroup")
# Of a group's memory: the limit, what is used, and which line of `memory.stat` counts what is given back when needed.
_GROUP_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def free_bytes() -> int:
    """Host memory that is available without swapping, in bytes; where the system doesn't say, all that it has. Within a
    container its limit counts, not the machine's memory."""
    return max(min((_free_of_machine(), *_free_of_groups())), 0)


def _free_of_machine() -> int:
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):  # not Linux
        known = getattr(os, "sysconf_names", {})
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if "SC_PHYS_PAGES" in known else sys.maxsize


def _free_of_groups() -> Iterator[int]:
    """What each control group (v2 or v1) that this process belongs to may still take, where it has a limit."""
    for folder in _group_folders():
        for limit, used, inactive in _GROUP_FILES:
            try:
                most = (folder / limit).read_text().strip()
                if most != "max":
                    cached = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                    yield int(most) - int((folder / used).read_text()) + int(cached.get(inactive, 0))
            except (OSError, ValueError):
                continue


def _group_folders() -> Iterator[Path]:
    """This process's group and those around it; a container sees its own as the outermost."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory"):
            root = GROUPS / controllers
            own = root / path.lstrip("/")
            yield from (folder for folder in (own, *own.parents) if folder.is_relative_to(root))
