"""Baselines that are C++ sources: fetched from a pinned commit, checked, and compiled where there is a compiler.

Nothing that is fetched becomes part of this project. What is not in the cache comes from ``peers_src/<name>`` beside
the mirror of the data sets, where there is one, else from the public repository.
"""

import csv
import ctypes
import hashlib
import os
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from octopus.backends.cache import cache_dir
from octopus_study.baselines.availability import Unavailable
from octopus_study.data.download import download, find_fault
from octopus_study.errors import DataError

HERE = Path(__file__).parent / "native"
ADDRESS = "https://raw.githubusercontent.com/{repository}/{commit}/{path}"
MIRROR, MIRRORED = "OCTOPUS_MIRROR", "peers_src"
FLAGS = ("-O3", "-std=c++17", "-shared", "-Xcompiler", "-fPIC")
LONGEST = 900  # seconds that a compiler may take

# By name of a source: its commit, its compiler, and the digest of what that made.
_loaded: dict[str, dict[str, str]] = {}


class Source(NamedTuple):
    """A repository at one commit."""

    name: str  # also of our file in the folder `native` that is compiled
    # On GitHub
    repository: str
    commit: str
    # Path in the repository: where it is put, as its includes name it, and its SHA-256
    files: dict[str, tuple[str, str]]


def sources() -> dict[str, Source]:
    """The sources by name, as `native_sources.tsv` pins them."""
    with Path(__file__).with_name("native_sources.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    found = {row["name"]: Source(row["name"], row["repository"], row["commit"], {}) for row in rows}
    for row in rows:
        found[row["name"]].files[row["path"]] = (row["place"], row["sha256"])
    return found


def library(source: Source) -> ctypes.CDLL:
    """A source as a library, compiled at its first use on a machine; `Unavailable` without a compiler or the source."""
    compiler = _compiler(source.name)
    folder = cache_dir() / MIRRORED / source.name
    fetch(source, folder)
    own = HERE / f"{source.name}.cu"
    flags = (*FLAGS, f"-arch={_device()}")
    version = _version_of(compiler)
    digest = hashlib.sha256(own.read_bytes() + " ".join((source.commit, version, *flags)).encode())
    built = folder / f"{digest.hexdigest()[:16]}.so"
    if not built.exists():
        _compile(source.name, [compiler, *flags, "-I", str(folder), str(own)], built)
    made = hashlib.sha256(built.read_bytes()).hexdigest()
    _loaded[source.name] = {"commit": source.commit, "compiler": version, "sha256": made}
    return ctypes.CDLL(str(built))


def loaded() -> dict[str, Any]:
    """What this process runs of the sources, for the provenance; empty if it is none."""
    return {"native": dict(_loaded)} if _loaded else {}


def fetch(source: Source, folder: Path) -> None:
    """Put the files of a source into a folder, each checked; those that are there stay. One that isn't available, or is
    another than it was, is `Unavailable`."""
    mirror = os.environ.get(MIRROR)
    for path, (name, sha256) in source.files.items():
        target = folder / name
        copy = Path(mirror).parent / MIRRORED / source.name / Path(path).name if mirror else None
        if not target.exists() and copy is not None and copy.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(copy, target)
        check = partial(find_fault, size=None, sha256=sha256)
        try:
            if target.exists() and (fault := check(target)):
                raise DataError(f"{target}: {fault}; delete it")
            address = ADDRESS.format(repository=source.repository, commit=source.commit, path=path)
            download(address, target, check, progress=False)
        except DataError as error:
            raise Unavailable(f"the source of {source.name} can't be fetched: {error}") from error


def _compiler(name: str) -> str:
    homes = [os.environ.get(variable) for variable in ("CUDA_HOME", "CUDA_PATH")]
    found = [shutil.which("nvcc"), *(shutil.which("nvcc", path=f"{home}/bin") for home in homes if home)]
    compiler = next(filter(None, found), None)
    if compiler is None:
        raise Unavailable(f"{name} is C++, and there is no compiler for it (nvcc on the path, or CUDA_HOME)")
    return compiler


def _version_of(compiler: str) -> str:
    """The last line of what a compiler says of its version."""
    said = subprocess.run([compiler, "--version"], capture_output=True, text=True, timeout=LONGEST).stdout
    return (said.strip().splitlines() or ["unknown"])[-1]


def _device() -> str:
    """The kind of device in use, as the compiler names it."""
    from octopus.backends.cuda.device import current

    major, minor = current().compute_capability
    return f"sm_{major}{minor}"


def _compile(name: str, command: list[str], built: Path) -> None:
    part = built.with_suffix(f".{os.getpid()}.part")
    try:
        subprocess.run([*command, "-o", str(part)], check=True, capture_output=True, text=True, timeout=LONGEST)
    except (OSError, subprocess.SubprocessError) as error:
        lines = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        raise Unavailable(f"{name} can't be compiled: {lines[0] if lines else 'no message'}") from error
    part.replace(built)
