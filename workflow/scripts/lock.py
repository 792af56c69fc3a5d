"""Writes both locks anew, with hashes and with the extras that need each package; needs uv.

Versions that are locked and still fit stay; with --upgrade, as `make lock` calls it, the newest are taken.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from install import BUILD, EVERY, entries

MAIN, CUDA12 = "requirements.lock", "requirements-cuda12.lock"
EVERYWHERE = ("docs", "test", "slurm", "notebooks", "release", "dev")
EXTRAS = {
    MAIN: (
        "cuda13", "compile", "torch", "transformers", "rapidocr", "baselines", "models", "arena-cuda13", *EVERYWHERE,
    ),
    CUDA12: ("cuda12", "compile12", *EVERYWHERE),
}  # fmt: skip
BACKEND = "setuptools"  # of both projects
UV = (
    "uv", "pip", "compile", "--universal", "--python-version", "3.11", "--no-emit-index-url",
    "--no-emit-package", "octopus-ragged", "--custom-compile-command", "make lock", "--quiet",
    "pyproject.toml", "workflow/pyproject.toml",
)  # fmt: skip


def compiled(extras: tuple[str, ...], *options: str) -> str:
    """What uv resolves for the projects with these extras."""
    named = [word for extra in extras for word in ("--extra", extra)]
    return subprocess.run([*UV, *named, *options], check=True, capture_output=True, text=True).stdout


def name(entry: str) -> str:
    """The package of an entry."""
    return entry.partition("==")[0]


def needed_by(lock: str) -> dict[str, set[str]]:
    """The packages that a plain run, the build and each extra need; an extra's without those of every run. By name:
    what one extra needs everywhere comes everywhere with another that needs it on some machines alone."""
    alone = {
        extra: {name(entry) for entry in entries(compiled((extra,) if extra else (), "-c", lock))}
        for extra in ("", *EXTRAS[lock])
    }
    plain = alone.pop("")
    return {EVERY: plain, BUILD: {BACKEND}} | {extra: names - plain for extra, names in alone.items()}


def mark(lock: str) -> None:
    """Write under each package who needs it, for `install.py` to choose by."""
    needs = needed_by(lock)
    text = Path(lock).read_text()
    for entry in entries(text):
        needing = " ".join(sorted(who for who, names in needs.items() if name(entry) in names))
        text = text.replace(entry, f"{entry.rstrip()}\n    # for {needing}\n")
    Path(lock).write_text(text)


def write(lock: str, *options: str) -> None:
    """Write a lock; versions in the file stay unless an option says otherwise."""
    compiled(EXTRAS[lock], "--generate-hashes", "-o", lock, *options)
    mark(lock)


if __name__ == "__main__":
    write(MAIN, *sys.argv[1:])
    shutil.copy(MAIN, CUDA12)  # what both have in common keeps its version
    write(CUDA12)
