"""What git remembers of a file."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from octopus_study.errors import MeasureError


def versions(path: Path) -> Iterator[tuple[str, str, bytes]]:
    """Yield commit, time and content of every committed version of a file, the oldest first.

    Raises
    ------
    MeasureError
        There is no history here.
    """
    log = _git(path, "log", "--reverse", "--topo-order", "--format=%H %cI", "--", path.name)
    for commit, changed in (line.split() for line in log.decode().splitlines()):
        content = version(path, commit)
        if content is not None:
            yield commit, changed, content


def version(path: Path, commit: str) -> bytes | None:
    """Return a file as it was in a commit; None where it wasn't."""
    try:
        return _git(path, "show", f"{commit}:./{path.name}")
    except MeasureError:
        return None


def _git(path: Path, *arguments: str) -> bytes:
    try:
        return subprocess.run(["git", *arguments], cwd=path.parent, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", b"") or str(error).encode()
        why = " ".join(said.decode(errors="replace").split())[:200]
        raise MeasureError(f"The history of {path} can't be read: {why}. It takes a full clone.") from error
