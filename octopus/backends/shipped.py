"""Kernels that a wheel carries: PTX for GPUs, and the machine code of the few functions that a launch on one needs.

A wheel has a folder `octopus/kernels/shipped`, made by `workflow/scripts/wheel_kernels.py`: one file per kind of
kernel, and the digest of the sources that they were compiled from. A checkout has none, and nor do sources that differ.
"""

import json
import logging
import lzma
import platform
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from octopus.backends.cache import PACKAGE, source_digest

log = logging.getLogger(__name__)

FOLDER = PACKAGE / "kernels" / "shipped"
CAPABILITIES = ((7, 5), (8, 0))  # that PTX is made for; later GPUs take that of the last one before
MACHINE = "x86-64-v2"  # that machine code is made for: every processor since 2009


def group(name: str) -> str:
    """The file of a kernel: those of one kind compress well together, and reading one stays quick."""
    return "-".join(name.split("-")[:4])


def ptx(name: str, capability: tuple[int, int]) -> str | None:
    """The PTX of a kernel for a GPU of a compute capability; None if the wheel has none."""
    if not _fresh("cuda"):
        return None
    texts = _texts(group(name))
    made = [found for found in CAPABILITIES if found <= capability and key(name, found) in texts]
    return texts[key(name, made[-1])] if made else None


def key(name: str, capability: tuple[int, int]) -> str:
    return f"{name}-sm_{capability[0]}{capability[1]}"


def code(name: str) -> bytes | None:
    """The object code of a CPU kernel for this processor; None if the wheel has none."""
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64" or not _fresh("cpu"):
        return None
    text = _texts("cpu").get(name)
    return bytes.fromhex(text) if text else None


def save(folder: Path, kernels: Mapping[str, str], code: Mapping[str, bytes]) -> None:
    """Write a folder of kernels by `key`, and of object code by name."""
    files: dict[str, dict[str, str]] = {"cpu": {name: made.hex() for name, made in code.items()}}
    for name, text in kernels.items():
        files.setdefault(group(name), {})[name] = text
    folder.mkdir(parents=True, exist_ok=True)
    for name, texts in files.items():
        (folder / f"{name}.xz").write_bytes(lzma.compress(json.dumps(texts).encode(), preset=9))
    for kind in ("cuda", "cpu"):
        (folder / f"{kind}.digest").write_text(source_digest(kind) + "\n")


@cache
def _fresh(kind: str) -> bool:
    try:
        found = (FOLDER / f"{kind}.digest").read_text().strip()
    except OSError:
        return False
    if found != source_digest(kind):
        log.warning("the kernels in %s are of other sources and are not used", FOLDER)
        return False
    return True


@cache
def _texts(name: str) -> dict[str, str]:
    try:
        texts: dict[str, str] = json.loads(lzma.decompress((FOLDER / f"{name}.xz").read_bytes()))
    except OSError:
        return {}
    return texts
