"""Collects what a lock pins for another machine, which has no network: `make wheelhouse PYTHON=3.12 GPU=cuda13`.

    python workflow/scripts/wheelhouse.py requirements.lock wheelhouse --python 3.12 cuda13 peers

There, `make paper WHEELHOUSE=wheelhouse` takes packages from the folder alone, and checks their hashes by the lock.
What has no wheel comes as its source, which the locked build tool builds there.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from install import BUILD, EVERY, chosen, entries
from pip._vendor.packaging.markers import Marker, default_environment

GLIBC = range(17, 40)  # a wheel names the oldest C library that it runs on


def environment(python: str, machine: str) -> dict[str, str]:
    """Return what markers ask of the other machine: Linux, with its Python and processor."""
    here = {name: str(value) for name, value in default_environment().items()}
    linux = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
    # No release is known there; a marker between two patch releases is rare, and the newest is what people have.
    version = {"python_version": python, "python_full_version": f"{python}.99"}
    return here | linux | version | {"platform_machine": machine, "extra": ""}


def wanted(lock: str, there: dict[str, str]) -> str:
    """Return the entries that the other machine needs, without their markers: pip would ask this machine."""
    kept = []
    for entry in entries(lock):
        head, newline, rest = entry.partition("\n")
        pin, semicolon, marker = head.rstrip(" \\").partition(" ; ")
        if not semicolon or Marker(marker).evaluate(there):
            kept.append(f"{pin} \\{newline}{rest}" if "--hash" in rest else entry)
    return "".join(kept)


def download(requirements: str, folder: Path, python: str, machine: str) -> None:
    """Let pip fetch files for the other machine; it checks their hashes."""
    platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in reversed(GLIBC)]
    platforms += [f"--platform={name}_{machine}" for name in ("manylinux2014", "linux")]
    options = [
        "--no-deps",
        "--require-hashes",
        f"--python-version={python}",
        "--implementation=cp",
        *platforms,
    ]
    with tempfile.TemporaryDirectory() as scratch:
        listing = Path(scratch) / "requirements.txt"
        listing.write_text(requirements)
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--dest",
            str(folder),
            *options,
            "-r",
            str(listing),
        ]
        subprocess.run(command, check=True)


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the arguments; without a version, also at the end of a path, the other machine has this Python's."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("lock", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default="", help="version of the other machine, such as 3.12")
    parser.add_argument("--machine", default="x86_64", help="x86_64 or aarch64")
    parser.add_argument("extras", nargs="*")
    given = parser.parse_intermixed_args(arguments)
    named = re.search(r"3\.\d+$", given.python)
    given.python = named[0] if named else "{}.{}".format(*sys.version_info)
    return given


def main() -> None:
    """Fill the folder."""
    given = parsed()
    lock = chosen(given.lock.read_text(), {EVERY, BUILD, *given.extras})
    there = environment(given.python, given.machine)
    download(wanted(lock, there), given.folder, given.python, given.machine)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as failed:
        sys.exit(failed.returncode)  # pip has said why
