"""What all tests share."""

import fcntl
import gc
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of small products; more threads mostly wait for each other
ROOT = Path(__file__).resolve().parents[1]
# What takes longest begins first: in several processes the last file to begin decides when the tests end.
LONGEST = """
test_workflow test_figures test_contract test_damaged_rows test_verify test_flow test_pythons test_notebooks
test_selectors test_cases_simulator test_cases_cpu test_crop_kernels test_power_report
"""
CAPABILITIES = {"T4": (7, 5), "Jetson Orin": (8, 7), "RTX 4090": (8, 9), "H200": (9, 0)}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: tests wait for processes, locks and clocks now and then."""
    return min((os.cpu_count() or 1) + 1, 4)


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the files that take longest to the beginning, the longest first."""
    place = {name: index for index, name in enumerate(LONGEST.split())}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


@pytest.fixture(scope="module", autouse=True)
def little_to_collect() -> None:
    """Leave what is there when a file begins out of later collections of garbage. The code under test collects before
    it measures, which takes seconds in a process that has run a thousand tests."""
    gc.collect()
    gc.freeze()
    # While a kernel is compiled or rows are read, most of what is made stays.
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """Fill a folder once for all processes of a test run, and return it: who asks first does it, the others wait. Tests
    only read what is in it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def filled(name: str, fill: Callable[[Path], object]) -> Path:
        folder, done = shared / name, shared / f"{name}.done"
        with open(shared / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                folder.mkdir(exist_ok=True)  # one in which another process failed may be there
                fill(folder)
                done.touch()
        return folder

    return filled


@pytest.fixture(scope="session")
def reference_numbers(once: Callable[[str, Callable[[Path], object]], Path], root: Path) -> Path:
    """A folder with ``numbers.csv`` of the committed references, and its series."""
    from octopus_study.report.build import build_numbers

    data = root / "data"
    return once("numbers", lambda to: build_numbers(None, data / "reference", data / "published", to / "numbers.csv"))


@pytest.fixture(scope="session")
def runs(once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """A GPU and a CPU as references, and a CPU with synthetic data as this machine."""
    from committed_runs import CPU, GPU, write_run

    def fill(folder: Path) -> None:
        write_run(folder / "reference", GPU, "gpu")
        write_run(folder / "reference", CPU, "cpu")
        write_run(folder / "results", "laptop", "cpu", synthetic=True)

    return once("runs", fill)


@pytest.fixture
def little_room() -> Iterator[None]:
    """The system refuses files beyond 4 kB, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(params=CAPABILITIES.values(), ids=CAPABILITIES)
def capability(request, monkeypatch):
    """Each GPU that the artifact names, for kernels that differ by GPU or stand for the others."""
    return pretend_capability(request.param, monkeypatch)


@pytest.fixture
def capability_in_turn(request, monkeypatch):
    """One of them, another from case to case: what a kernel keeps in registers follows from its code, not from the GPU,
    so that every kernel is compiled once, and every GPU is compiled for."""
    turn = sum(request.node.callspec.indices.values()) if hasattr(request.node, "callspec") else 0
    return pretend_capability(list(CAPABILITIES.values())[turn % len(CAPABILITIES)], monkeypatch)


def pretend_capability(capability, monkeypatch):
    """Device functions ask the current device for its capability; here there is none to ask."""
    pytest.importorskip("numba_cuda")
    import numba.cuda.dispatcher

    device = SimpleNamespace(compute_capability=capability)
    monkeypatch.setattr(numba.cuda.dispatcher, "get_current_device", lambda: device)
    return capability


@pytest.fixture(scope="module")
def answers(request):
    """What the script that the test's module names as `SCRIPT` printed: answers of Numba's simulator."""
    script = Path(request.module.__file__).with_name(request.module.SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
