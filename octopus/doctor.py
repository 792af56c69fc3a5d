"""What this machine has, one finding per thing that a run may need; a missing one says what would provide it.

Every check stands alone, and one that breaks becomes a finding itself, so that the doctor always answers. Other
packages add checks as entry points of the group `octopus.checks`, each under the name of its part.
"""

import csv
import platform
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from importlib.resources import files
from typing import NamedTuple

OK, MISSING, BROKEN = "ok", "missing", "broken"
COLORS = {OK: "\033[32m", MISSING: "\033[33m", BROKEN: "\033[31m"}
PARTS = ("machine", "device", "backend", "data", "baseline", "sensor", "storage")


class Finding(NamedTuple):
    """One line of the diagnosis."""

    part: str  # heading, one of `PARTS`
    name: str  # what was looked for
    state: str  # `OK`, `MISSING` or `BROKEN`
    detail: str  # what was found, or why nothing was
    remedy: str = ""  # what would provide it; empty where nothing is missing


Check = Callable[[], Iterable[Finding]]


def diagnose() -> list[Finding]:
    """Run every check; an exception inside one becomes a finding. Sorted by `PARTS`, what is in none at the end."""
    findings: list[Finding] = []
    added = [(entry.name, entry) for entry in entry_points(group="octopus.checks")]
    for part, check in (*CHECKS, *added):
        try:
            findings.extend(check.load()() if isinstance(check, EntryPoint) else check())
        except Exception as error:  # the doctor must answer also on an unforeseen machine
            text = f"{type(error).__name__}: {error}"
            findings.append(Finding(part, "check", BROKEN, text, "please report this as a bug"))
    return sorted(findings, key=lambda finding: (*PARTS, finding.part).index(finding.part))


def lines(findings: list[Finding], colored: bool = False) -> Iterator[str]:
    """One line per finding, in columns; in colour for a terminal. The same remedy is said once."""
    said: dict[str, str] = {}
    wide = max((len(finding.name) for finding in findings), default=0)
    for part, name, state, detail, remedy in findings:
        shown = f"{COLORS[state]}{state:<7}\033[0m" if colored else f"{state:<7}"
        known = said.setdefault(remedy, name)
        more = f"; provided by: {remedy if known == name else f'as {known}'}" if remedy else ""
        yield f"{part:<8}  {name:<{wide}}  {shown}  {detail}{more}"


def package(part: str, name: str, remedy: str) -> Finding:
    """Whether a package is installed, in which version."""
    try:
        return Finding(part, name, OK, version(name))
    except PackageNotFoundError:
        return Finding(part, name, MISSING, "not installed", remedy)


def _machine() -> Iterator[Finding]:
    yield Finding("machine", "system", OK, f"{platform.system()} {platform.release()}, {platform.machine()}")
    yield Finding("machine", "Python", OK, platform.python_version())


def _device() -> Iterator[Finding]:
    from octopus.backends import cuda

    why = cuda.missing()
    if why:
        remedy = "an NVIDIA GPU with its driver, and an extra (cuda12 or cuda13)"
        yield Finding("device", "GPU", MISSING, why, remedy)
        return
    from octopus.backends.cuda.memory import total_bytes

    yield Finding("device", "GPU", OK, cuda.device.current().name)
    capability = ".".join(map(str, cuda.compute_capability()))
    yield Finding("device", "compute capability", OK, capability)
    yield Finding("device", "memory", OK, f"{total_bytes() / 2**30:.0f} GiB")
    if why := cuda.device.outdated():
        yield Finding("device", "driver", BROKEN, why, cuda.device.INSTALL)


def _backend() -> Iterator[Finding]:
    from octopus.backends.cpu import get_num_threads
    from octopus.backends.cuda.device import COMPILER, INSTALL, compiler_problem

    yield package("backend", "numba", 'pip install "octopus-ragged"')
    yield Finding("backend", "CPU threads", OK, f"up to {get_num_threads()}")
    for name in ("cuda-core", "cuda-bindings"):
        yield package("backend", name, INSTALL)
    for name in ("numba-cuda", "cuda-toolkit"):
        yield package("backend", name, COMPILER)
    if why := compiler_problem():
        yield Finding("backend", "compiler of GPU kernels", MISSING, why, COMPILER)
    yield from _known_faults()


def _known_faults() -> Iterator[Finding]:
    """Installed versions of other packages that are known to be wrong, see `docs/limitations.md`."""
    table = files("octopus").joinpath("known_faults.tsv").read_text(encoding="utf-8")
    for name, first, fixed, machines, what, link in csv.reader(table.splitlines()[1:], delimiter="\t"):
        with suppress(PackageNotFoundError):
            found = version(name)
            bad = _numbers(first) <= _numbers(found) and (not fixed or _numbers(found) < _numbers(fixed))
            if bad and (not machines or platform.machine() in machines.split()):
                yield Finding("backend", name, BROKEN, f"{found}: {what} ({link})")


def _numbers(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", text)]


def _storage() -> Iterator[Finding]:
    from octopus.backends.cache import cache_dir, refusal

    folder, why = cache_dir(), ""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            why = refusal(folder)
    except OSError as error:
        why = f"no file can be made there: {error.strerror}"
    if why:
        remedy = "OCTOPUS_CACHE_DIR=<a folder that you alone may write to>"
        yield Finding("storage", "kernel cache", MISSING, f"{folder}: {why}", remedy)
        return
    files = sum(1 for path in folder.rglob("*") if path.is_file())
    yield Finding("storage", "kernel cache", OK, f"{folder}, {files} files")


CHECKS: tuple[tuple[str, Check], ...] = (
    ("machine", _machine), ("device", _device), ("backend", _backend), ("storage", _storage),
)  # fmt: skip
