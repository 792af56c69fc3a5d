"""Where the repository lies, and writing files whole or not at all."""

import errno
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import octopus_study
from octopus_study.errors import DataError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EIO)


def repository_root() -> Path:
    """Return the root of the checkout, which holds both packages."""
    return Path(octopus_study.__file__).resolve().parents[2]


@contextmanager
def atomic_text(path: Path) -> Iterator[TextIO]:
    """Open a UTF-8 text file that gets its final name only when the block ends without an exception."""
    with whole_files(path.parent) as folder, open(folder / path.name, "w", encoding="utf-8", newline="") as stream:
        yield stream


@contextmanager
def whole_files(folder: Path) -> Iterator[Path]:
    """Give a folder whose files get into `folder`, in place of those of their names, only when the block ends without
    an exception. `DataError` where there is no room for them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=folder) as unfinished:
            yield Path(unfinished)
            for path in sorted(Path(unfinished).iterdir()):
                path.replace(folder / path.name)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        reason = f"{error.strerror} ({error.filename or 'writing'})"
        raise DataError(f"Can't write into {folder}: {reason}. Is the disk full?") from error
