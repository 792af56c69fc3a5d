"""Digests of what a result depends on: the code as it runs, and the configuration.

A change of comments, docstrings or formatting gives the same digest, so it doesn't make a measurement stale.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from octopus.errors import InputError
from octopus_study.measure._files import repository_root
from octopus_study.measure.source import source

# Where files lie, and the folder's name, don't change what is measured; paths are of one machine only.
LOCAL_KEYS = frozenset({"mirror", "raw_dir", "results_dir", "reference_dir", "machine"})
CODE = ("octopus", "workflow/octopus_study")  # the library and the artifact, in a checkout
_GENERATED = (".pyc", ".pyo", ".so", ".pyd", ".nbi", ".nbc")


def source_digest(paths: Iterable[str | Path] = CODE, root: str | Path | None = None) -> str:
    """Return the SHA-256 of the code in `paths`.

    Python files count by their syntax tree without docstrings, so that comments, formatting and the Python
    version don't matter; all other files count by their bytes. Names of files count, their dates don't.

    Parameters
    ----------
    paths : iterable of str or Path
        Files and folders, relative to `root`; such as ``["octopus/crop/api.py", "octopus/kernels"]``. Order and
        overlap don't matter.
    root : str or Path, optional
        The folder that holds the package, by default.

    Raises
    ------
    InputError
        A path doesn't exist, or a Python file can't be parsed.
    """
    base = Path(root) if root is not None else repository_root()
    paths = [paths] if isinstance(paths, str | Path) else list(paths)
    files = {file.relative_to(base).as_posix(): file for path in paths for file in files_in(base, Path(path))}
    total = hashlib.sha256()
    for name in sorted(files):
        total.update(f"{name} {_content(files[name])}\n".encode())
    return total.hexdigest()


def science(config: Any) -> dict[str, Any]:
    """Return the part of a configuration that decides what is measured, as plain JSON values.

    Parameters
    ----------
    config : mapping or pydantic model
    """
    plain = config.model_dump(mode="json") if hasattr(config, "model_dump") else config
    if not isinstance(plain, Mapping):
        raise InputError(f"Expected a mapping or a pydantic model as config, found {type(config).__name__}.")
    return {key: value for key, value in plain.items() if key not in LOCAL_KEYS}


def config_digest(config: Any) -> str:
    """Return the SHA-256 of :func:`science`, whatever the order of the keys."""
    text = json.dumps(science(config), sort_keys=True, separators=(",", ":"), allow_nan=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def files_in(base: Path, path: Path) -> Iterator[Path]:
    target = base / path
    if target.is_file():
        yield target
    elif target.is_dir():
        # By names as texts: each start of the workflow asks for all files a dozen times.
        for folder, folders, names in os.walk(target):
            folders[:] = [name for name in folders if not _ignored(name)]
            paths = (os.path.join(folder, name) for name in names if not _ignored(name))
            yield from (Path(file) for file in paths if os.path.isfile(file))
    else:
        raise InputError(f"Can't digest {path.as_posix()}: there is no such file or folder in {base}.")


def _ignored(name: str) -> bool:
    hidden = name.startswith(".") or name == "__pycache__"
    return hidden or name.endswith(("~", *_GENERATED))


def _content(file: Path) -> str:
    """Return the digest of one file."""
    content = file.read_bytes()
    if file.suffix != ".py":
        return hashlib.sha256(content).hexdigest()
    try:
        return source(content).meaning
    except SyntaxError as error:
        raise InputError(f"Can't digest {file}: {error}.") from error
