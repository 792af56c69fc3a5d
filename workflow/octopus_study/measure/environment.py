"""What a run was told and what was installed: its command, the digests of locks and packages, and the claims' rules."""

from __future__ import annotations

import hashlib
import re
import shlex
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from octopus_study.measure._files import repository_root

LOCKS = ("requirements.lock", "requirements-cuda12.lock")
RULES = "config/claims.yaml"
# Of a distribution's metadata, which are as an e-mail: headers, an empty line, and the description.
_HEAD = re.compile(r"\r?\n\r?\n")
_NAME, _VERSION = (re.compile(rf"^{name}: *(\S+)", re.MULTILINE | re.IGNORECASE) for name in ("Name", "Version"))
# An absolute path begins a word, or follows what separates words within an argument.
_ABSOLUTE = re.compile(r"(?<![^\s=\"',:;\[({])(?:~|[A-Za-z]:)?[/\\][^\s\"',;\])}]*")


def command_line(arguments: Sequence[str] | None = None, root: Path | None = None) -> str:
    """Return the command of this process as a shell would read it, without the folders of this machine.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of this process, the program first, by default. Of the program only the name is kept.
    root : Path, optional
        Paths below it become relative to it; of other absolute paths the last part is kept.
    """
    program, *others = sys.argv if arguments is None else arguments
    folder = (root or repository_root()).resolve()
    kept = [_ABSOLUTE.sub(lambda path: _local(path[0], folder), argument) for argument in others]
    return shlex.join([Path(program).name, *kept])


def environment() -> dict[str, Any]:
    """Return the digests of the lock files and of everything that is installed (``pip freeze``, as names and versions).

    A lock that is missing is None.
    """
    installed = installed_distributions()
    listing = "".join(f"{line}\n" for line in installed)
    return {
        "locks": {name: file_digest(repository_root() / name) for name in LOCKS},
        "installed": {"sha256": hashlib.sha256(listing.encode()).hexdigest(), "count": len(installed)},
    }


def installed_distributions() -> list[str]:
    """Return ``name==version`` of every installed distribution, sorted; names are normalised."""
    heads = (_HEAD.split(_metadata(item), 1)[0] for item in metadata.distributions())
    said = ((_NAME.search(head), _VERSION.search(head)) for head in heads)
    found = {
        f"{re.sub(r'[-_.]+', '-', name[1]).lower()}=={version[1] if version else None}"
        for name, version in said
        if name
    }
    return sorted(found)


def _metadata(item: metadata.Distribution) -> str:
    """Return what a distribution says of itself: as a text, since parsing hundreds of descriptions takes longer than a
    quick study."""
    return item.read_text("METADATA") or item.read_text("PKG-INFO") or ""


def claims_rules() -> dict[str, str | None]:
    """Return the file of the claims and its digest, so that a run tells by which rules it was measured."""
    return {"file": RULES, "sha256": file_digest(repository_root() / RULES)}


def file_digest(path: Path) -> str | None:
    """Return the SHA-256 of a file's bytes, None where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _local(text: str, folder: Path) -> str:
    path = Path(text)
    if path.is_relative_to(folder):
        return path.relative_to(folder).as_posix()
    return ".../" + re.split(r"[/\\]", text.rstrip("/\\"))[-1]
