"""What the artifact adds to `octopus doctor`: the machine's facts, data, baselines, power sensors and the disk."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from octopus.doctor import MISSING, OK, Finding, package
from octopus_study.config import MIRROR_VARIABLE
from octopus_study.errors import MeasureError
from octopus_study.names import CROP_METHODS, LIBRARIES
from octopus_study.power.choose import Kind, SourceSpec

RAW = Path("data/raw")
FREE_BYTES_NEEDED = 2 * 10**9
DEPENDENCY = "python workflow/scripts/install.py requirements.lock"
INSTALL = f"{DEPENDENCY} {{}}"
EXTRAS = {"baselines": INSTALL.format("baselines"), "arena-cuda13": f"{INSTALL.format('arena-cuda13')} (needs a GPU)"}
SENSORS: dict[Kind, str] = {
    "nvml": "an NVIDIA GPU with its driver, and an extra (cuda12 or cuda13)",
    "ina3221": "a Jetson module with the rail VDD_IN (no AGX Orin, no AGX Xavier), read permission on its files in "
    "/sys/class/hwmon",
}


# What the driver tells beyond the name, the compute capability and the memory, which the library shows.
GPU_FACTS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "board": ("board", str),
    "driver": ("driver", str),
    "cuda": ("CUDA of the driver", str),
    "power_limit_w": ("power limit", lambda value: f"{value:.0f} W"),
    "clock_sm_max_mhz": ("highest SM clock", lambda value: f"{value} MHz"),
    "clock_memory_max_mhz": ("highest memory clock", lambda value: f"{value} MHz"),
}


def machine() -> Iterator[Finding]:
    """The CPU, and the folder of this machine's results."""
    from octopus_study.measure.machine import available_cores, cpu_model, machine_id

    yield Finding("machine", "CPU", OK, f"{cpu_model()}, {available_cores()} cores usable")
    yield Finding("machine", "results folder", OK, f"data/results/{machine_id('auto')}")


def device() -> Iterator[Finding]:
    """The facts of the GPU's board; one that the driver doesn't tell is left out."""
    from octopus.backends import cuda
    from octopus_study.measure.machine import machine_facts

    facts = {} if cuda.missing() else machine_facts("cuda")["gpu"] or {}
    for fact, (label, form) in GPU_FACTS.items():
        if facts.get(fact) is not None:
            yield Finding("device", label, OK, form(facts[fact]))


def data() -> Iterator[Finding]:
    """Whether each data set was fetched, or lies in the mirror."""
    from octopus_study.data.manifest import read_manifest
    from octopus_study.data.registry import load_registry

    mirror = os.environ.get(MIRROR_VARIABLE)
    for name, dataset in load_registry().items():
        manifest = RAW / f"{name}.json"
        if manifest.is_file():
            found = read_manifest(manifest)
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


def baseline() -> Iterator[Finding]:
    """Which of the libraries are installed that the studies compare with."""
    compared = {row.library for row in CROP_METHODS}
    for library in LIBRARIES:
        if library.extra in EXTRAS or library.name in compared:
            remedy = library.install or EXTRAS.get(library.extra, DEPENDENCY)
            yield package("baseline", library.packages[0], remedy)


def sensor() -> Iterator[Finding]:
    """Which power sensors answer."""
    for kind, remedy in SENSORS.items():
        yield _opened(SourceSpec(kind), remedy)


def _opened(spec: SourceSpec, remedy: str) -> Finding:
    """A sensor as a run opens it: by a reading. Whether it follows a load is for the power-on test to say."""
    try:
        source = spec.open()
        sample = source.read()
    except MeasureError as error:
        return Finding("sensor", spec.title, MISSING, str(error), remedy)
    counter = [] if sample.counter is None else [f"energy counter {sample.counter}"]
    found = ", ".join([source.scope, f"power {sample.power}", *counter])
    return Finding("sensor", spec.title, OK, f"{found} (test it: octopus power-selftest)")


def storage() -> Iterator[Finding]:
    """Whether the disk has room for a run."""
    free = shutil.disk_usage(".").free
    enough = free >= FREE_BYTES_NEEDED
    remedy = "" if enough else f"about {FREE_BYTES_NEEDED / 1e9:.0f} GB for packages, data and results"
    yield Finding("storage", "disk", OK if enough else MISSING, f"{free / 1e9:.1f} GB free", remedy)
