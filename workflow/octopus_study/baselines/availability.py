"""Whether a method can run here; where it can't, the reason becomes a row and never a crash."""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

from octopus.backends import cpu
from octopus.backends.cuda import memory
from octopus_study.errors import Unavailable
from octopus_study.measure.at_work import at_work
from octopus_study.measure.rows import describe

T = TypeVar("T")


def need(module: str, product: str, install: str = "") -> Any:
    """Import a package that Octopus doesn't depend on; `Unavailable` says `install`, how to get the `product`."""
    hint = f" ({install})" if install else ""
    if not _installed(module):
        raise Unavailable(f"{product} is not installed{hint}")
    try:
        package = import_module(module)
    except (ImportError, OSError) as error:
        raise Unavailable(f"{product} can't be loaded: {error}") from error
    if getattr(package, "__file__", None) is None:  # a folder of type stubs, which Python takes for a package
        raise Unavailable(f"{product} is not installed{hint}")
    return package


def need_torch(device: str, extra: str) -> Any:
    """Torch, able to work on `device` ("cpu" or "cuda"), with as many threads as the library has. By itself it has
    those of `OMP_NUM_THREADS`, which Snakemake sets to its `--cores`."""
    torch = need("torch", "PyTorch", f"pip install -e './workflow[{extra}]'")
    if device == "cuda" and not torch.cuda.is_available():
        raise Unavailable(f"PyTorch {torch.__version__} finds no GPU")
    torch.set_num_threads(cpu.get_num_threads())
    return torch


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of a package above it
        return False


def free_bytes(device: str) -> int:
    """Free memory where "cpu" or "cuda" works."""
    return memory.free_bytes() if device == "cuda" else cpu.free_bytes()


def require_room(product: str, device: str, needed: int) -> None:
    """Raise `Unavailable` if a batch needs more memory than is free where "cpu" or "cuda" works; it says both."""
    free, place = free_bytes(device), "GPU" if device == "cuda" else "host"
    if needed > free:
        raise Unavailable(f"{product} needs {needed:,} bytes on the {place} for this batch, {free:,} are free")


def make_all(makers: Mapping[str, Callable[[], T]]) -> tuple[dict[str, T], dict[str, str]]:
    """Make what is available here; return it by name, and why the others aren't. Any failure is a row, never the end of
    a study."""
    made, missing = {}, {}
    for name, make in makers.items():
        try:
            with at_work(name):
                made[name] = make()
        except Exception as error:
            missing[name] = describe(error)
    return made, missing
