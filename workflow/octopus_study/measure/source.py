"""What one Python file says: a digest of its code, and what it imports.

It is kept beside the compiled kernels under the digest of the file's content, since each start of the workflow and each
study asks for the same hundreds of files.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from octopus.backends import cache as files

_NAMED = re.compile(r"octopus_study(?:\.\w+)+(?:\.$)?")


class Source(NamedTuple):
    """What a Python file says.

    Attributes
    ----------
    meaning : str
        SHA-256 of its syntax tree without docstrings.
    names : list of str
        Dotted names of what it imports or names in strings.
    texts : list of str
        Its strings that may be names of files.
    lazy : dict
        Names that it takes from others for type checkers, which are those that it imports on first use, and where they
        are.
    """

    meaning: str
    names: list[str]
    texts: list[str]
    lazy: dict[str, str]


@cache
def source(content: bytes) -> Source:
    """Return what a file of that content says.

    Raises
    ------
    SyntaxError
        It is no Python.
    """
    name = f"{folder()}/{hashlib.sha256(content).hexdigest()}.json"
    try:
        return Source(**json.loads(files.load(name) or ""))
    except (ValueError, TypeError):  # there is none, or it is damaged
        made = _read(ast.parse(content))
        files.store(name, json.dumps(made._asdict()))
        return made


@cache
def folder() -> str:
    """Where it is kept: under the digest of what reads a source, this file and Python's grammar."""
    reader = Path(__file__).read_bytes() + repr(sys.version_info[:2]).encode()
    return f"sources-{hashlib.sha256(reader).hexdigest()[:16]}"


def _read(tree: ast.Module) -> Source:
    nodes = list(_running(tree))
    names = {item.name for node in nodes if isinstance(node, ast.Import) for item in node.names}
    names.update(whole for _, whole in _taken(nodes))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    names.update(*map(_NAMED.findall, texts))
    blocks = filter(_for_type_checkers, tree.body)
    lazy = dict(_taken(node for block in blocks for node in ast.walk(block)))
    of_files = sorted(text for text in texts if re.fullmatch(r"\w+\.\w+", text))
    return Source(hashlib.sha256(canonical(tree).encode()).hexdigest(), sorted(names), of_files, lazy)


def _taken(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """What ``from`` imports take, with the dotted name of each."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            yield from ((item.name, f"{node.module}.{item.name}") for item in node.names)


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree that do something when they run: neither docstrings nor imports for type checkers."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += (
            child
            for child in ast.iter_child_nodes(node)
            if not _says_nothing(child) and not _for_type_checkers(child)
        )


def _for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def canonical(node: Any) -> str:
    """Write a syntax tree without positions, docstrings and empty fields.

    ``ast.dump`` won't do: which empty fields exist, and which it prints, changes from one Python version to
    the next.
    """
    if isinstance(node, ast.AST):
        kept = []
        for name in node._fields:
            value = getattr(node, name, None)
            if value is not None and value != [] and name not in ("kind", "type_comment"):
                kept.append(f"{name}={canonical(value)}")
        return f"{type(node).__name__}({','.join(kept)})"
    if isinstance(node, list):
        return "[" + ",".join([canonical(item) for item in node if not _says_nothing(item)]) + "]"
    return repr(node)


def _says_nothing(node: Any) -> bool:
    """Tell a statement that does nothing when it runs: a docstring, any other bare constant, or ``pass``."""
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
