"""Digests of what a result depends on: the configuration, and the code that runs, over any number of imports.

A change of comments, docstrings or formatting gives the same digest and makes no result stale; neither does code that a
result doesn't run. What each Python file says is kept beside the compiled kernels under the digest of its content,
since each start of the workflow asks for the same hundreds of files.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from octopus.backends import cache as files
from octopus.errors import InputError
from octopus_study.measure._files import repository_root

# Where files lie, and the folder's name, don't change what is measured; paths are of one machine only.
LOCAL_KEYS = frozenset({"mirror", "raw_dir", "results_dir", "reference_dir", "machine"})
CODE = LIBRARY, ARTIFACT = "octopus", "workflow/octopus_study"
# The settings come as parameters of a rule; the list of the studies, names and units decide no value.
NOT_OF_STUDIES = tuple(f"octopus_study.{name}" for name in ("config", "studies", "names", "units"))
_GENERATED = (".pyc", ".pyo", ".so", ".pyd", ".nbi", ".nbc")
_path = cache(Path)  # so that each is taken apart and hashed once
_NAMED = re.compile(r"octopus_study(?:\.\w+)+(?:\.$)?")


def data_code(root: Path | None = None) -> str:
    """Digest of what gets the data; `root` is the checkout, the one of this package by default."""
    return _code("data", root=root)


def study_code(study: str, named: Iterable[str] = (), root: Path | None = None) -> str:
    """Digest of what a study runs: its folder, how it is measured, the baselines that it names, and the library.
    `named` is further code, in the artifact's folder, which the study has by names that no source spells out."""
    shared = (f"studies/{name}.py" for name in ("comparison", "context", "processes"))
    parts = (f"studies/{study}", *shared, "measure", *named)
    return _code(*parts, root=root, without=NOT_OF_STUDIES, also=(LIBRARY,))


def report_code(root: Path | None = None) -> str:
    """Digest of what makes numbers, tables, figures, claims and the paper of stored rows."""
    return _code("report", root=root)


def source_digest(paths: Iterable[str | Path] = CODE, root: str | Path | None = None) -> str:
    """Return the SHA-256 of the code in `paths`, files and folders relative to `root`, whatever their order. Python
    files count by their syntax tree without docstrings, so that the Python version doesn't matter either; all other
    files count by their bytes. Names of files count, their dates don't."""
    base = Path(root or repository_root())
    paths = [paths] if isinstance(paths, str | Path) else paths
    found = {file.relative_to(base).as_posix(): file for path in paths for file in _files_in(base, path)}
    total = hashlib.sha256()
    for name in sorted(found):
        is_code = found[name].suffix == ".py"
        content = _said(found[name]).meaning if is_code else _sha256(found[name].read_bytes())
        total.update(f"{name} {content}\n".encode())
    return total.hexdigest()


def science(config: Any) -> dict[str, Any]:
    """Return the part of a configuration, a mapping or pydantic model, that decides what is measured, as plain JSON."""
    plain = config.model_dump(mode="json") if hasattr(config, "model_dump") else config
    if not isinstance(plain, Mapping):
        raise InputError(f"Expected a mapping or a pydantic model as config, found {type(config).__name__}.")
    return {key: value for key, value in plain.items() if key not in LOCAL_KEYS}


def config_digest(config: Any) -> str:
    """Return the SHA-256 of :func:`science`, whatever the order of the keys."""
    text = json.dumps(science(config), sort_keys=True, separators=(",", ":"), allow_nan=False, default=str)
    return _sha256(text.encode())


def imported(paths: Iterable[str | Path], root: str | Path | None = None, without: Iterable[str] = ()) -> list[Path]:
    """Return the files of `paths`, relative to `root`, and those of every module that they import, sorted.

    What is imported for type checkers alone doesn't count. What is imported by a name in a string does, as
    ``"octopus_study.baselines.cvcuda:CvCuda"`` or behind ``python -m``, and ``f"octopus_study.baselines.{name}"``
    stands for all of that package; any other name that a program puts together can't be seen. Modules in `without`,
    such as ``octopus_study.config``, neither count nor are followed.
    """
    base = Path(root or repository_root())
    modules = _all_modules(base)
    left_out = {modules.get(name) for name in without}
    waiting = {file for path in paths for file in _files_in(base, path)}
    found: set[Path] = set()
    while waiting:
        found |= waiting
        sources = [file for file in waiting if file.suffix == ".py"]
        waiting = {named for file in sources for named in _files_named(file, modules)} - found - left_out
    return sorted(found)


def _code(*parts: str, root: Path | None, without: Iterable[str] = (), also: Iterable[str] = ()) -> str:
    return source_digest([*imported([f"{ARTIFACT}/{part}" for part in parts], root, without), *also], root)


def _files_in(base: Path, path: str | Path) -> Iterator[Path]:
    target = base / path
    if target.is_file():
        yield target
    elif target.is_dir():
        # By names as texts: each start of the workflow asks for all files a dozen times.
        for folder, folders, names in os.walk(target):
            folders[:] = [name for name in folders if not _ignored(name)]
            paths = (os.path.join(folder, name) for name in names if not _ignored(name))
            yield from (_path(file) for file in paths if os.path.isfile(file))
    else:
        raise InputError(f"Can't digest {path}: there is no such file or folder in {base}.")


def _ignored(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__" or name.endswith(("~", *_GENERATED))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _all_modules(base: Path) -> dict[str, Path]:
    """The files of all modules of the library and the artifact, by their names."""
    modules = {}
    for place in CODE:
        start = len((base / place).parent.parts)
        for file in _files_in(base, place):
            if file.suffix == ".py":
                words = (*file.parts[start:-1], *([] if file.stem == "__init__" else [file.stem]))
                modules[".".join(words)] = file
    return modules


def _files_named(file: Path, modules: Mapping[str, Path]) -> Iterator[Path]:
    """The files of all modules that a file names, their packages' included, and the data beside it that it names."""
    said = _said(file)
    for name in said.names:
        yield from _modules(name, modules)
    yield from (file.parent / text for text in said.texts if (file.parent / text).is_file())


def _modules(name: str, modules: Mapping[str, Path]) -> Iterator[Path]:
    """The files of the modules on the way to a dotted name, and of the one from which a package takes the name."""
    words = name.split(".")
    for count, word in enumerate(words):
        inner = ".".join(words[: count + 1])
        if not word:  # the beginning of a name
            yield from (file for module, file in modules.items() if module.startswith(inner))
            return
        if inner not in modules:
            package = modules.get(".".join(words[:count]))
            lazy = _said(package).lazy if package and package.name == "__init__.py" else {}
            if word in lazy:
                yield from _modules(lazy[word], modules)
            return
        yield modules[inner]


class Source(NamedTuple):
    """What a Python file says: the SHA-256 of its syntax tree, dotted names of what it imports or names in strings, its
    strings that may be names of files, and by name where what it imports for type checkers is: on first use."""

    meaning: str
    names: list[str]
    texts: list[str]
    lazy: dict[str, str]


def _said(file: Path) -> Source:
    try:
        return source(file.read_bytes())
    except SyntaxError as error:
        raise InputError(f"Can't parse {file}: {error}.") from error


@cache
def source(content: bytes) -> Source:
    """Return what a file of that content says; raises `SyntaxError` where it is no Python."""
    name = f"{kept_in()}/{_sha256(content)}.json"
    try:
        return Source(**json.loads(files.load(name) or ""))
    except (ValueError, TypeError):  # there is none, or it is damaged
        made = _read(ast.parse(content))
        files.store(name, json.dumps(made._asdict()))
        return made


@cache
def kept_in() -> str:
    """A folder under the digest of what reads a source: this file and Python's grammar."""
    return f"sources-{_sha256(Path(__file__).read_bytes() + repr(sys.version_info[:2]).encode())[:16]}"


def _read(tree: ast.Module) -> Source:
    nodes = list(_running(tree))
    names = {item.name for node in nodes if isinstance(node, ast.Import) for item in node.names}
    names.update(whole for _, whole in _taken(nodes))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    names.update(*map(_NAMED.findall, texts))
    lazy = dict(_taken(node for block in filter(_for_type_checkers, tree.body) for node in ast.walk(block)))
    of_files = sorted(text for text in texts if re.fullmatch(r"\w+\.\w+", text))
    return Source(_sha256(canonical(tree).encode()), sorted(names), of_files, lazy)


def _taken(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """What ``from`` imports take, with the dotted name of each."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            yield from ((item.name, f"{node.module}.{item.name}") for item in node.names)


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree that do something when they run: neither docstrings nor imports for type checkers."""
    waiting = [tree]
    while waiting:
        yield (node := waiting.pop())
        for child in ast.iter_child_nodes(node):
            if not _says_nothing(child) and not _for_type_checkers(child):
                waiting.append(child)


def _for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def canonical(node: Any) -> str:
    """Write a syntax tree without positions, docstrings and empty fields, which change with the version of Python."""
    if isinstance(node, ast.AST):
        fields = ((name, getattr(node, name, None)) for name in node._fields)
        kept = (
            f"{name}={canonical(value)}"
            for name, value in fields
            if value is not None and value != [] and name not in ("kind", "type_comment")
        )
        return f"{type(node).__name__}({','.join(kept)})"
    if isinstance(node, list):
        return "[" + ",".join(canonical(item) for item in node if not _says_nothing(item)) + "]"
    return repr(node)


def _says_nothing(node: Any) -> bool:
    """Tell a statement that does nothing when it runs: a docstring, any other bare constant, or ``pass``."""
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
