"""Which files a piece of code runs: its own, and those of all modules that it imports, over any number of steps.

What is imported for type checkers alone doesn't count. What is imported by a name in a string does, as
``"octopus_study.peers.cvcuda:CvCuda"`` or behind ``python -m``, and ``f"octopus_study.peers.{name}"`` stands for all of
that package; any other name that a program puts together can't be seen.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from octopus.errors import InputError
from octopus_study.measure._files import repository_root
from octopus_study.measure.digest import CODE, files_in, meaning, says_nothing

_NAMED = re.compile(r"octopus_study(?:\.\w+)+(?:\.$)?")


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
        names, texts = _names(file.read_bytes())
    except SyntaxError as error:
        raise InputError(f"Can't follow the imports of {file}: {error}.") from error
    for name in names:
        yield from _modules(name, modules)
    yield from (file.parent / text for text in texts if (file.parent / text).is_file())


@cache
def _names(source: bytes) -> tuple[frozenset[str], frozenset[str]]:
    """Dotted names of what a source imports or names in strings, and its strings that may be names of files."""
    tree = ast.parse(source)
    meaning(source, tree)  # who asks what is imported asks for the digest next
    nodes = list(_running(tree))
    names = {item.name for node in nodes if isinstance(node, ast.Import) for item in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{item.name}" for item in node.names}
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    names.update(*map(_NAMED.findall, texts))
    return frozenset(names), frozenset(text for text in texts if re.fullmatch(r"\w+\.\w+", text))


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree that do something when they run: neither docstrings nor imports for type checkers."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += (
            child
            for child in ast.iter_child_nodes(node)
            if not says_nothing(child) and not _for_type_checkers(child)
        )


def _for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


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
            taken = _lazy(package.read_bytes()) if package and package.name == "__init__.py" else {}
            if words[count - 1] in taken:
                yield from _modules(taken[words[count - 1]], modules)
            return
        yield modules[inner]


def _all_modules(base: Path) -> dict[str, Path]:
    """The files of all modules of the library and the artifact, by their names."""
    modules = {}
    for package in (base / place for place in CODE):
        for file in package.rglob("*.py"):
            words = file.relative_to(package.parent).with_suffix("").parts
            modules[".".join(words[:-1] if words[-1] == "__init__" else words)] = file
    return modules


@cache
def _lazy(source: bytes) -> dict[str, str]:
    """Names that a module takes from others for type checkers, which are those that it imports on first use."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # told when the file itself is followed
        return {}
    blocks = [node for node in ast.walk(tree) if _for_type_checkers(node)]
    imports = [node for block in blocks for node in ast.walk(block) if isinstance(node, ast.ImportFrom)]
    return {item.name: f"{node.module}.{item.name}" for node in imports for item in node.names}
