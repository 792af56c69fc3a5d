"""What this machine has, one finding per thing that a run may need; a missing one says what would provide it.

Every check stands alone, and one that breaks becomes a finding itself, so that the doctor always answers.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Column, Table

from octopus_study.config import MIRROR_VARIABLE
from octopus_study.errors import MeasureError
from octopus_study.methods import LIBRARIES, METHODS
from octopus_study.power.choose import Kind, SourceSpec

OK, MISSING, BROKEN = "ok", "missing", "broken"
MARKS = {OK: "[green]ok[/]", MISSING: "[yellow]missing[/]", BROKEN: "[red]broken[/]"}
RAW = Path("data/raw")
FREE_BYTES_NEEDED = 2 * 10**9
GPU_EXTRA = 'pip install -c requirements.lock -e ".[cuda13]" (cuda12 with requirements-cuda12.lock)'
DEPENDENCY = "pip install -c requirements.lock -e ."
EXTRAS = {
    "peers": 'pip install -c requirements.lock -e ".[peers]"',
    "arena-cuda13": 'pip install -c requirements.lock -e ".[arena-cuda13]" (needs a GPU)',
}
SENSORS: dict[Kind, str] = {
    "nvml": "an NVIDIA GPU with its driver, and an extra (cuda12 or cuda13)",
    "ina3221": "a Jetson module with the rail VDD_IN (no AGX Orin, no AGX Xavier), read permission on its files in "
    "/sys/class/hwmon",
    "rapl": "a bare-metal x86 CPU, read permission on /sys/class/powercap/*/energy_uj",
}


class Finding(NamedTuple):
    """One line of the diagnosis.

    Attributes
    ----------
    part
        Heading: machine, device, backend, data, peer, sensor or storage.
    name, state
        What was looked for; ``ok``, ``missing`` or ``broken``.
    detail
        What was found, or why nothing was.
    remedy
        What would provide it; empty where nothing is missing.
    """

    part: str
    name: str
    state: str
    detail: str
    remedy: str = ""


def diagnose() -> list[Finding]:
    """Run every check; an exception inside one becomes a finding."""
    findings: list[Finding] = []
    for check in CHECKS:
        part = check.__name__.removeprefix("_")
        try:
            findings.extend(check())
        except Exception as error:  # the doctor must answer also on a machine that nobody foresaw
            text = f"{type(error).__name__}: {error}"
            findings.append(Finding(part, "check", BROKEN, text, "please report this as a bug"))
    return findings


def render(findings: list[Finding], console: Console) -> None:
    """Print the findings: as a table in a terminal, else one line each, so that nothing is cut."""
    if not console.is_terminal:
        for finding in findings:
            remedy = f"; provided by: {finding.remedy}" if finding.remedy else ""
            text = f"{finding.part}: {finding.name}: {finding.state}: {finding.detail}{remedy}"
            console.print(text, markup=False, highlight=False, soft_wrap=True)
        return
    columns = [
        Column(name, overflow="fold") for name in ("part", "what", "state", "found", "what would provide it")
    ]
    table = Table(*columns, title="octopus doctor")
    previous = ""
    for finding in findings:
        if previous and finding.part != previous:
            table.add_section()
        part = "" if finding.part == previous else finding.part
        cells = [_plain(cell) for cell in (part, finding.name, finding.detail, finding.remedy)]
        table.add_row(cells[0], cells[1], MARKS[finding.state], cells[2], cells[3])
        previous = finding.part
    console.print(table)


def _plain(text: str) -> str:
    return text.replace("[", r"\[")


GPU_FACTS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "name": ("GPU", str),
    "board": ("board", str),
    "driver": ("driver", str),
    "cuda": ("CUDA of the driver", str),
    "compute_capability": ("compute capability", str),
    "memory_bytes": ("memory", lambda value: f"{value / 2**30:.0f} GiB"),
    "power_limit_w": ("power limit", lambda value: f"{value:.0f} W"),
    "clock_sm_max_mhz": ("highest SM clock", lambda value: f"{value} MHz"),
    "clock_memory_max_mhz": ("highest memory clock", lambda value: f"{value} MHz"),
}


def _machine() -> Iterator[Finding]:
    from octopus_study.measure.machine import available_cores, cpu_model, machine_id

    yield Finding("machine", "CPU", OK, f"{cpu_model()}, {available_cores()} cores usable")
    yield Finding("machine", "system", OK, f"{platform.system()} {platform.release()}, {platform.machine()}")
    yield Finding("machine", "Python", OK, platform.python_version())
    yield Finding("machine", "results folder", OK, f"data/results/{machine_id('auto')}")


def _device() -> Iterator[Finding]:
    from octopus.backends import cuda
    from octopus_study.measure.machine import machine_facts

    why = cuda.missing()
    if why:
        remedy = f"an NVIDIA GPU with its driver; then {GPU_EXTRA}"
        yield Finding("device", "GPU", MISSING, why, remedy)
        return
    facts = machine_facts("cuda")["gpu"] or {}
    for fact, (label, form) in GPU_FACTS.items():
        if facts.get(fact) is not None:  # what the driver doesn't tell is left out
            yield Finding("device", label, OK, form(facts[fact]))


def _backend() -> Iterator[Finding]:
    yield _package("backend", "numba", DEPENDENCY)
    for name in ("numba-cuda", "cuda-core", "cuda-toolkit"):
        yield _package("backend", name, GPU_EXTRA)


def _data() -> Iterator[Finding]:
    from octopus_study.data.receipt import read_receipt
    from octopus_study.data.registry import load_registry

    mirror = os.environ.get(MIRROR_VARIABLE)
    for name, dataset in load_registry().items():
        receipt = RAW / f"{name}.json"
        if receipt.is_file():
            found = read_receipt(receipt)
            yield Finding("data", name, OK, f"{found.dataset} in {RAW} (source: {found.source})")
        elif mirror and _holds(Path(mirror), dataset.filename, dataset.mirror):
            yield Finding("data", name, OK, f"in the mirror {mirror}")
        else:
            remedy = f"octopus fetch {name} (network), or {MIRROR_VARIABLE}=<folder with {dataset.filename}>"
            looked = f"not in the mirror {mirror}" if mirror else f"no mirror ({MIRROR_VARIABLE} is not set)"
            where = f"not in {RAW}; {looked}"
            yield Finding("data", name, MISSING, f"{where}; to be downloaded from {dataset.url}", remedy)


def _holds(mirror: Path, filename: str, unpacked: str) -> bool:
    return (mirror / filename).is_file() or any(mirror.glob(unpacked))


def _peer() -> Iterator[Finding]:
    compared = {row.library for row in METHODS}
    for library in LIBRARIES:
        if library.extra in EXTRAS or library.name in compared:
            remedy = library.install or EXTRAS.get(library.extra, DEPENDENCY)
            yield _package("peer", library.packages[0], remedy)


def _sensor() -> Iterator[Finding]:
    for kind, remedy in SENSORS.items():
        yield _opened(SourceSpec(kind), remedy)


def _opened(spec: SourceSpec, remedy: str) -> Finding:
    """A sensor as a run opens it: by a reading. Whether it follows a load is for the power-on test to say."""
    try:
        source = spec.open()
        sample = source.read()
    except MeasureError as error:
        return Finding("sensor", spec.title, MISSING, str(error), remedy)
    power = [] if sample.power is None else [f"power {sample.power}"]
    counter = [] if sample.counter is None else [f"energy counter {sample.counter}"]
    found = ", ".join([source.scope, *power, *counter])
    return Finding("sensor", spec.title, OK, f"{found} (test it: octopus power-selftest)")


def _storage() -> Iterator[Finding]:
    from octopus.backends.cache import cache_dir

    folder = cache_dir()
    files = sum(1 for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else 0
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    state = OK if os.access(nearest, os.W_OK) else MISSING
    remedy = "" if state == OK else "OCTOPUS_CACHE_DIR=<a folder that you may write to>"
    yield Finding("storage", "kernel cache", state, f"{folder}, {files} files", remedy)
    free = shutil.disk_usage(".").free
    enough = free >= FREE_BYTES_NEEDED
    remedy = "" if enough else f"about {FREE_BYTES_NEEDED / 1e9:.0f} GB for packages, data and results"
    yield Finding("storage", "disk", OK if enough else MISSING, f"{free / 1e9:.1f} GB free", remedy)


def _package(part: str, name: str, remedy: str) -> Finding:
    try:
        return Finding(part, name, OK, version(name))
    except PackageNotFoundError:
        return Finding(part, name, MISSING, "not installed", remedy)


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _machine,
    _device,
    _backend,
    _data,
    _peer,
    _sensor,
    _storage,
)
