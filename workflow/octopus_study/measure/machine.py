"""What was measured on: the machine's name, its fixed facts, and its state at a moment.

Nothing here names a person or a host (no serial numbers, no host name), since facts are committed with results; that
two runs had the same host, boot and GPU is told by digests. A fact that can't be read is None.
"""

import hashlib
import os
import platform
import re
from collections.abc import Collection
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from octopus.backends import resolve
from octopus.backends.cpu.threads import quota
from octopus_study.measure import _nvml
from octopus_study.measure.throttle import throttle_reasons

PACKAGES = (
    "numpy",
    "numba",
    "llvmlite",
    "numba-cuda",
    "cuda-core",
    "cuda-bindings",
    "cuda-toolkit",
    "nvidia-cuda-nvrtc",
    "nvidia-ml-py",
    "opencv-python-headless",
    "rasterio",
    "pandas",
)
CPU_ROOT = Path("/sys/devices/system/cpu")
DEVICE_TREE_MODEL = Path("/proc/device-tree/model")
HOST_ID = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SALT = "octopus"  # the digests are of no use beside those of other projects


def machine_id(device: str = "auto") -> str:
    """Name the machine after what is measured, as a folder name: the GPU (``nvidia-h200``; the board where it is part
    of one) for ``cuda``, else the CPU and the number of cores that may be used (``intel-xeon-2c``)."""
    if resolve(device) == "cuda":
        return _slug(board_model() or gpu_name() or "cuda-gpu")
    model = re.sub(r"\(.*?\)|@.*|\bCPU\b|\bProcessor\b|\b\d+-Core\b", " ", cpu_model())
    return f"{_slug(model)}-{available_cores()}c"


def machine_facts(device: str = "auto", threads: int | None = None) -> dict[str, Any]:
    """Return what the machine is, and its state now, as plain JSON values with units in the names of the fields. On
    ``cpu`` the GPU is left out; `threads` are those of the CPU methods, by default the cores that may be used."""
    kind = resolve(device)
    return {
        "id": machine_id(kind),
        "identity": identity(kind),
        "device": kind,
        "gpu": _gpu_facts() if kind == "cuda" else None,
        "cpu": {**_cpu_facts(), "threads": threads or available_cores()},
        "memory_bytes": int(psutil.virtual_memory().total),
        "os": _operating_system(),
        "python": platform.python_version(),
        "packages": package_versions(PACKAGES),
        "state": machine_state(kind),
    }


def machine_state(device: str = "auto") -> dict[str, Any]:
    """Return what changes from moment to moment: clocks, temperature, throttle reasons, load."""
    kind = resolve(device)
    return {
        "read_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "gpu": _gpu_state() if kind == "cuda" else None,
        "cpu": _cpu_state(),
    }


def identity(device: str = "auto") -> dict[str, str | None]:
    """Return 12 hex digits each for the host, its boot and the GPU: equal ones were the same. A virtual machine has the
    host that its image says, and a boot of its own."""
    gpu = _nvml.text(_nvml.read("nvmlDeviceGetUUID")) if resolve(device) == "cuda" else None
    host = next(filter(None, map(_text, HOST_ID)), None)
    found = {"host": host, "boot": _text(BOOT_ID), "gpu": gpu}
    return {kind: _digest(f"{_SALT} {kind} {name}") if name else None for kind, name in found.items()}


def package_versions(names: tuple[str, ...]) -> dict[str, str | None]:
    """Return the installed version of each package, None where it is not installed."""
    versions: dict[str, str | None] = {}
    for name in names:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = _version_beside(name)
    return versions


def _version_beside(name: str) -> str | None:
    """Return the version of a package in a folder of its own name, beside the one whose place it would take."""
    spec = find_spec(name.replace("-", "_"))
    places = list(spec.submodule_search_locations or []) if spec else []
    return next((found.version for found in metadata.distributions(name=name, path=places)), None)


def available_cores() -> int:
    """Return how many physical cores this process may use, by affinity and by the container's quota."""
    affinity = getattr(os, "sched_getaffinity", None)
    physical = _physical(affinity(0) if affinity else range(os.cpu_count() or 1))
    return max(1, min(physical, quota() or physical))


def _physical(logical: Collection[int]) -> int:
    """Count the cores that some logical CPUs are of; all of these where the machine doesn't tell."""
    places = [CPU_ROOT / f"cpu{number}" / "topology" for number in logical]
    cores = {tuple(_text(place / name) for name in ("physical_package_id", "core_id")) for place in places}
    return len(cores) if all(None not in core for core in cores) else len(logical)


@cache
def cpu_model() -> str:
    """Return the name of the CPU as the kernel tells it."""
    names = [
        line.partition(":")[2].strip()
        for line in (_text(Path("/proc/cpuinfo")) or "").splitlines()
        if line.startswith(("model name", "Model"))
    ]
    return next(filter(None, [*names, board_model(), platform.processor(), platform.machine()]), "unknown CPU")


def board_model() -> str | None:
    """Return the name of a board whose GPU has no card of its own (Jetson), else None."""
    model = _text(DEVICE_TREE_MODEL)
    return model if model and "nvidia" in model.lower() else None


def gpu_name() -> str | None:
    """Return the name of the GPU that CUDA uses."""
    try:
        from cuda.bindings import driver

        driver.cuInit(0)
        _, device = driver.cuDeviceGet(0)
        status, name = driver.cuDeviceGetName(128, device)
        found = name.split(b"\0")[0].decode() if status == driver.CUresult.CUDA_SUCCESS else None
    except Exception:  # whatever the bindings raise without a driver; NVML may still know
        found = None
    return found or _nvml.text(_nvml.read("nvmlDeviceGetName"))


def _gpu_facts() -> dict[str, Any]:
    memory = _nvml.read("nvmlDeviceGetMemoryInfo")
    cuda = _nvml.read_system("nvmlSystemGetCudaDriverVersion_v2")
    capability = _nvml.read("nvmlDeviceGetCudaComputeCapability")
    return {
        "name": gpu_name(),
        "board": board_model(),
        "driver": _nvml.text(_nvml.read_system("nvmlSystemGetDriverVersion")),
        "cuda": f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None,
        "compute_capability": ".".join(map(str, capability)) if capability else None,
        "memory_bytes": None if memory is None else int(memory.total),
        "power_limit_w": _nvml.scaled(_nvml.read("nvmlDeviceGetEnforcedPowerLimit"), 1e-3),
        "clock_sm_max_mhz": _nvml.read("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_SM"),
        "clock_memory_max_mhz": _nvml.read("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_MEM"),
    }


def _gpu_state() -> dict[str, Any]:
    reasons = throttle_reasons()
    return {
        "clock_sm_mhz": _nvml.read("nvmlDeviceGetClockInfo", "NVML_CLOCK_SM"),
        "clock_memory_mhz": _nvml.read("nvmlDeviceGetClockInfo", "NVML_CLOCK_MEM"),
        "temperature_c": _nvml.read("nvmlDeviceGetTemperature", "NVML_TEMPERATURE_GPU"),
        "throttle_reasons": None if reasons is None else list(reasons),
    }


def _cpu_facts() -> dict[str, Any]:
    return {
        "model": cpu_model(),
        "cores": available_cores(),
        "cores_installed": _physical(range(os.cpu_count() or 1)),
        "governor": _text(CPU_ROOT / "cpu0/cpufreq/scaling_governor"),
    }


def _cpu_state() -> dict[str, Any]:
    return {"load_average_1min": os.getloadavg()[0] if hasattr(os, "getloadavg") else None}


def _operating_system() -> str:
    try:
        release = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        release = platform.platform(aliased=True)
    return f"{release}, {platform.system()} {platform.release()}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "unknown"


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip("\0 \n") or None
    except OSError:
        return None
