"""Files are written whole or not at all: what was there stays until the new one is complete."""

import errno
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from octopus_study.errors import DataError
from octopus_study.measure._files import atomic_text, whole_files
from octopus_study.measure.rows import Case, write_rows

ROWS = [Case("s", "d", "w", 1).row("m", "host", "time", "ms", 1.0, block=block) for block in range(1000)]


@contextmanager
def little_room(size: int = 4096) -> Iterator[None]:
    """Let the system refuse files beyond a size, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def write_text(path: Path) -> None:
    with atomic_text(path) as stream:
        stream.write("x" * 100_000)


def draw(path: Path) -> None:
    style = pytest.importorskip("octopus_study.report.charts.style")
    figure = style.empty("Nothing.")
    style.save(figure, path, style.finish(figure, "", synthetic=False))


WRITERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "text": ("a.csv", write_text),
    "rows": ("a.csv", lambda path: write_rows(path, ROWS)),
    "figure": ("a.pdf", draw),
}


@pytest.mark.parametrize(("name", "write"), WRITERS.values(), ids=WRITERS)
def test_a_full_disk_is_one_error_and_leaves_what_was_there(
    name: str, write: Callable[[Path], object], tmp_path: Path
) -> None:
    (tmp_path / name).write_text("old")
    with pytest.raises(DataError, match=r"Can't write into .*Is the disk full"), little_room():
        write(tmp_path / name)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "old")]


def test_an_error_of_the_writer_is_its_own(tmp_path: Path) -> None:
    with pytest.raises(KeyError), whole_files(tmp_path) as folder:
        (folder / "a.txt").write_text("new")
        raise KeyError
    with pytest.raises(FileNotFoundError), whole_files(tmp_path):
        raise FileNotFoundError(errno.ENOENT, "another file")
    assert list(tmp_path.iterdir()) == []
