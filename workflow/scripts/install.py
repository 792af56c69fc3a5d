"""Installs both projects with what a lock pins; pip checks the SHA-256 of every file that it takes from the index.

    python workflow/scripts/install.py requirements.lock baselines notebooks

Extras follow the lock; without one, a plain run gets what it needs. With `--download=FOLDER` the packages go into that
folder, for a machine without a network. pip refuses hashes beside a project that is
installed in place, so the packages come first, by their hashes, and then the projects, which fetch nothing more.
"""

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = (3, 11), (3, 14)  # from this one on, and below that one
# Marks beside the names of the extras: what every run needs, and what builds the projects
EVERY, BUILD = "every-run", "build"


def entries(lock: str) -> list[str]:
    """The packages of a lock, each with its hashes and comments."""
    return re.split(r"^(?=\w)", lock, flags=re.MULTILINE)[1:]


def marks(entry: str) -> set[str]:
    """Who needs a package, as `make lock` has written it under the hashes."""
    found = re.search(r"^ +# for (.+)$", entry, re.MULTILINE)
    return set(found[1].split()) if found else set()


def chosen(lock: str, wanted: Iterable[str]) -> str:
    """The part of a lock that somebody wanted needs."""
    needed_by = {entry: marks(entry) for entry in entries(lock)}
    known, wanted = set().union(*needed_by.values()), set(wanted)
    if wanted - known:
        missing, there = (", ".join(sorted(names)) for names in (wanted - known, known))
        sys.exit(f"The lock has nothing for {missing}; it has {there}.")
    return "".join(entry for entry, needing in needed_by.items() if needing & wanted)


def pip(command: str, *arguments: str | Path, cwd: Path | None = None) -> None:
    """Run the pip of this Python, which is shown only where it fails."""
    called = [sys.executable, "-m", "pip", command, "--disable-pip-version-check", *arguments]
    done = subprocess.run(called, check=False, text=True, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        print(done.stdout, file=sys.stderr)
        done.check_returncode()


def compile_modules() -> None:
    """Compile what was installed: where PYTHONDONTWRITEBYTECODE is set, as images of containers often have it, nobody
    else would keep what is compiled, and every process would begin anew.

    pip would do it too, on one core and with the packages' own tests, for a third of its time. Files that are no module
    of this Python, as templates, are passed over, as by pip.
    """
    folders = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    options = ["-q", "-q", "-j", str(min(os.cpu_count() or 1, 8)), "-x", r"[/\\]tests?[/\\]"]
    subprocess.run([sys.executable, "-m", "compileall", *options, *folders], check=False)


def install_checked(requirements: str, *options: str | Path, command: str = "install") -> None:
    """Install (or download) requirements of a lock; pip stops at a file whose hash is not among them."""
    with tempfile.TemporaryDirectory() as folder:
        listing = Path(folder) / "requirements.txt"
        listing.write_text(requirements)
        pip(command, "--require-hashes", *options, "-r", listing)


def check_python() -> None:
    """End where this Python is too old or too new; pip would say that some package has no fitting version."""
    lowest, beyond = PYTHONS
    if not lowest <= sys.version_info[:2] < beyond:
        sys.exit(
            "Octopus needs Python 3.11, 3.12 or 3.13, and this is {}.{}: remove {}, and name another by "
            "make PYTHON=/path/to/python3.12 ...".format(*sys.version_info[:2], sys.prefix)
        )


def main(lock: str, *extras: str) -> None:
    """Install the build tool, the packages and the projects."""
    check_python()
    text = Path(lock).read_text()
    folder = "".join(word.partition("=")[2] for word in extras if word.startswith("--download="))
    extras = tuple(word for word in extras if not word.startswith("--"))
    packages, begin = chosen(text, {EVERY, *extras}), time.monotonic()
    if folder:
        return install_checked(chosen(text, {BUILD, EVERY, *extras}), "--no-deps", "--dest", folder, command="download")
    print(f"installing {len(entries(packages))} locked packages into {sys.prefix}", flush=True)
    # pip would fetch a build tool by itself, unchecked, for a package that has no wheel and for the projects.
    install_checked(chosen(text, {BUILD}))
    install_checked(packages, "--no-compile", "--no-build-isolation")
    compile_modules()
    # By relative paths: pip takes a bracket in the path of a clone for an extra.
    pip("install", "--no-deps", "--no-build-isolation", "-e", ".", "-e", "./workflow", cwd=ROOT)
    print(f"installed in {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except subprocess.CalledProcessError as failed:
        sys.exit(failed.returncode)  # pip has said why
