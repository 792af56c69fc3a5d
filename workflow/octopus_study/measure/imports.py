"""Which files a piece of code runs: its own, and those of all modules that it imports, over any number of steps.

What is imported for type checkers alone doesn't count. What is imported by a name in a string does, as
``"octopus_study.peers.cvcuda:CvCuda"`` or behind ``python -m``, and ``f"octopus_study.peers.{name}"`` stands for all of
that package; any other name that a program puts together can't be seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from octopus.errors import InputError
from octopus_study.measure._files import repository_root
from octopus_study.measure.digest import CODE, files_in
from octopus_study.measure.source import source


def imported(
    paths: Iterable[str | Path], root: str | Path | None = None, without: Iterable[str] = ()
) -> list[Path]:
    """Return the files of `paths` and those of every module that they import, sorted.

    Parameters
    ----------
    paths : iterable of str or Path
        Files and folders, relative to `root`.
    root : str or Path, optional
        The checkout; the one of this package, by default.
    without : iterable of str
        Modules that neither count nor are followed where they are imported, such as ``octopus_study.config``.

    Raises
    ------
    InputError
        A path doesn't exist, or a Python file can't be parsed.
    """
    base = Path(root) if root is not None else repository_root()
    modules = _all_modules(base)
    left_out = {modules.get(name) for name in without}
    waiting = {file for path in paths for file in files_in(base, Path(path))}
    files: set[Path] = set()
    while waiting:
        files |= waiting
        sources = [file for file in waiting if file.suffix == ".py"]
        waiting = {named for file in sources for named in _files_named(file, modules)} - files - left_out
    return sorted(files)


def _files_named(file: Path, modules: Mapping[str, Path]) -> Iterator[Path]:
    """The files of all modules that a file names, their packages' included, and the data beside it that it names."""
    try:
        said = source(file.read_bytes())
    except SyntaxError as error:
        raise InputError(f"Can't follow the imports of {file}: {error}.") from error
    for name in said.names:
        yield from _modules(name, modules)
    yield from (file.parent / text for text in said.texts if (file.parent / text).is_file())


def _modules(name: str, modules: Mapping[str, Path]) -> Iterator[Path]:
    """The files of the modules on the way to a dotted name, and of the one from which a package takes the name."""
    words = name.split(".")
    for count in range(1, len(words) + 1):
        inner = ".".join(words[:count])
        if not words[count - 1]:  # the beginning of a name
            yield from (file for module, file in modules.items() if module.startswith(inner))
            return
        if inner not in modules:
            package = modules.get(".".join(words[: count - 1]))
            taken = _lazy(package) if package and package.name == "__init__.py" else {}
            if words[count - 1] in taken:
                yield from _modules(taken[words[count - 1]], modules)
            return
        yield modules[inner]


def _all_modules(base: Path) -> dict[str, Path]:
    """The files of all modules of the library and the artifact, by their names."""
    modules = {}
    for place in CODE:
        start = len((base / place).parent.parts)
        for file in files_in(base, Path(place)):
            if file.suffix == ".py":
                words = (*file.parts[start:-1], *([] if file.stem == "__init__" else [file.stem]))
                modules[".".join(words)] = file
    return modules


def _lazy(package: Path) -> dict[str, str]:
    try:
        return source(package.read_bytes()).lazy
    except SyntaxError:  # told when the file itself is followed
        return {}
