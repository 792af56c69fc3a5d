"""What all studies share: configuration, device, data, clocks, budget, and how a run is stored."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from octopus import backends
from octopus.backends import cpu
from octopus.backends.cuda import memory as cuda_memory
from octopus.backends.cuda.device import current, driver
from octopus_study import names
from octopus_study.baselines import native_build, onnx_runtime
from octopus_study.baselines.availability import require_room
from octopus_study.data.manifest import Manifest, read_manifest
from octopus_study.data.scene import Scene, load_scene
from octopus_study.data.workload import Workload, load_workload
from octopus_study.errors import DataError, MeasureError
from octopus_study.measure import (
    Budget,
    Case,
    Clock,
    CpuThrottle,
    GpuThrottle,
    HostClock,
    Row,
    available_cores,
    machine_facts,
    source_digest,
    write_provenance,
    write_rows,
)
from octopus_study.measure.dependence import LAYERS
from octopus_study.measure.provenance import claims_rules, provenance

if TYPE_CHECKING:
    from octopus_study.config import Config

# Libraries that keep memory of the GPU for later, and the function that gives it back.
GIVE_BACK = {"cvcuda": "clear_cache", "nvidia.dali.backend": "ReleaseUnusedMemory"}

log = logging.getLogger(__name__)

LARGE_GPU_BYTES = 20 << 30  # GPUs with this much memory also get the large batches
# Beside the libraries of `methods`, what Octopus itself runs on.
RUNTIME = ("numba-cuda", "cuda-core", "cuda-bindings", "nvidia-nvvm")


class BatchCounts(Protocol):
    """Settings of a study on batches of several sizes."""

    counts: list[int]
    counts_large_gpu: list[int]


@dataclass(frozen=True, eq=False)
class Context:
    """One study's run."""

    study: str
    config: Config
    device: str  # {"cpu", "cuda"}
    manifest: Manifest
    data: Workload | Scene  # what the manifest points to; `workload` and `scene` give it by its kind
    machine: dict[str, Any]  # facts at the start of the study
    started: datetime
    throttle: GpuThrottle | CpuThrottle  # why the device was slowed down since the last call
    thread_count: int  # threads of the CPU methods
    code: str  # digest of the package when the study began
    rules: dict[str, str | None]  # the claims' rules when the study began
    # Which of the processes that share the comparisons on the host this is; 0 measures everything else, too
    process: int = 0
    # Methods by comparison (:attr:`octopus_study.studies.comparison.Comparison.key`): what process 0 has measured and
    # the others measure, too
    shared: dict[tuple, list[str]] = field(default_factory=dict)
    # What only this study knows; it goes into the provenance
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def workload(self) -> Workload:
        """Frame and boxes of the drone's data."""
        if not isinstance(self.data, Workload):
            raise DataError(f"{self.study} needs the manifest of visdrone-val, found one of {self.manifest.dataset}")
        return self.data

    @property
    def scene(self) -> Scene:
        """The satellite's band."""
        if not isinstance(self.data, Scene):
            raise DataError(f"{self.study} needs the manifest of sentinel2-b04, found one of {self.manifest.dataset}")
        return self.data

    @property
    def seed(self) -> int:
        """Of every random choice."""
        return self.config.seed

    @property
    def budget(self) -> Budget:
        """How long one comparison may take."""
        return Budget(**self.config.measure.model_dump(exclude={"processes", "stuck_seconds"}))

    def case(self, workload: str, n: int, input: str = "", dataset: str = "") -> Case:
        """A case of this study, by default on the drone's data."""
        return Case(self.study, dataset or self.workload.dataset, workload, n, input)

    def processes(self, layer: str) -> int:
        """How many processes share a comparison of a layer."""
        return self.config.measure.processes if layer in LAYERS else 1

    def measures(self, key: tuple, method: str | None = None) -> bool:
        """Whether this process measures a comparison, or a method of it."""
        if not self.process:
            return True
        return key in self.shared and (method is None or method in self.shared[key])

    def budget_within(self, seconds: float) -> Budget:
        """The same, ended after `seconds` where that is sooner, once it has its least number of blocks."""
        return replace(self.budget, max_seconds=min(self.budget.max_seconds, seconds))

    def counts(self, settings: BatchCounts) -> list[int]:
        """Items per batch that a study's settings name; more of them on GPUs with much memory."""
        large = self.device == "cuda" and cuda_memory.total_bytes() >= LARGE_GPU_BYTES
        return [*settings.counts, *(settings.counts_large_gpu if large else [])]

    def require_room(self, count: int) -> None:
        """Raise `Unavailable` if a batch of `count` objects does not fit. The host holds the expected result, what it
        is made of, and the result or a copy of it; the device the result and the published intermediate."""
        height, width = self.config.crop.size
        crop = height * width * self.workload.frame.shape[2]
        values, different = count * crop, min(count, len(self.workload.pool)) * crop
        # float32: the expected result, each different crop of it, and the result or its copy; uint8: the intermediate
        host = 4 * (2 * values + different) + (0 if self.device == "cuda" else values)
        require_room(f"a check of {count} objects", "cpu", host)
        if self.device == "cuda":
            require_room(f"a result of {count} objects", "cuda", 5 * values)

    def host_clock(self, kind: type[HostClock] = HostClock, **options: Any) -> HostClock:
        """Wall time to the synchronised result; beside a GPU each run follows an untimed one of the same method. A
        clock of another `kind`, or with `options` of its own, only does what these say."""
        plain = {"warm": self.device == "cuda"} if kind is HostClock and not options else options
        return kind(self._synchronize(), self.throttle, **plain)

    @property
    def kernel_layer(self) -> str:
        """Layer of the work alone: events with a cold L2 on a GPU, wall time on a CPU. A CPU has no cold state that
        could be made at will; its output is larger than its caches."""
        return "host" if self.device == "cpu" else "device"

    def clock(self, layer: str) -> Clock:
        """The clock of a layer: events on the device, or the host's wall time."""
        if layer != "device":
            return self.host_clock()
        from octopus_study.measure.cuda import CudaEventClock

        return CudaEventClock(self.throttle)

    def _synchronize(self) -> Any:
        if self.device == "cpu":
            return None
        from octopus_study.measure.cuda import synchronize

        return synchronize

    @contextmanager
    def threads(self, count: int) -> Iterator[None]:
        """Let the CPU methods use another number of threads."""
        before = _set_threads(count)
        try:
            yield
        finally:
            _set_threads(before)


def make_context(study: str, config: Config, manifest_path: Path) -> Context:
    """Resolve the device, load the data, and set the number of CPU threads."""
    # Waiting threads that spin take the cores from the one that works as soon as anything else runs; on two cores
    # that made small parallel regions tens of times slower. Read when the thread pool starts.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    device = backends.resolve(config.device)
    started = datetime.now(UTC)
    code = source_digest()
    threads = min(available_cores(), cpu.cores()) if config.threads == "auto" else config.threads
    _set_threads(threads)
    manifest = read_manifest(manifest_path)
    if manifest.synthetic:
        log.info("the data are synthetic (%s): the numbers of this run stand for themselves", manifest.reason)
    elif manifest.reason:
        log.info("a window of the scene is measured, not the whole: %s", manifest.reason)
    return Context(
        study=study,
        config=config,
        device=device,
        manifest=manifest,
        data=load_scene(manifest_path) if "sentinel2" in manifest.dataset else load_workload(manifest_path),
        machine=machine_facts(device, threads),
        started=started,
        throttle=GpuThrottle() if device == "cuda" else CpuThrottle(),
        thread_count=threads,
        code=code,
        rules=claims_rules(),
    )


def write_run(context: Context, rows: Iterable[Row], out: Path) -> Path:
    """Write a study's rows and, beside them, their provenance; `MeasureError` where the package's code was changed
    while the study ran, so that it is unknown what was measured."""
    if source_digest() != context.code:
        raise MeasureError(f"the code was changed while {context.study} ran; run the study again")
    write_rows(out, rows)
    record = provenance(
        context.study,
        context.config,
        context.manifest,
        context.started,
        datetime.now(UTC),
        context.machine,
        context.rules,
        packages=(*RUNTIME, *names.packages()),
        extra={
            "threads": context.thread_count,
            "omp_wait_policy": os.environ["OMP_WAIT_POLICY"],
            "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
            "workload_sha256": context.data.sha256,
            **onnx_runtime.imported(),
            **native_build.loaded(),
            **context.notes,
        },
    )
    write_provenance(out.with_suffix(".json"), record)
    return out


def empty_caches(device: str) -> None:
    """Collect garbage, and let libraries give back what they keep for later; torch's peak is counted anew."""
    gc.collect()
    if device != "cuda":
        return
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    for name, give_back in GIVE_BACK.items():
        if name in sys.modules:
            getattr(sys.modules[name], give_back)()
    pool = getattr(current().memory_resource, "handle", None)
    if pool is not None:
        driver().cuMemPoolTrimTo(pool, 0)


def _set_threads(count: int) -> int:
    """Let the library, Numba, with which the studies' own kernels run, and PyTorch use so many threads; returns those
    before."""
    import numba

    before = cpu.set_num_threads(count)
    numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))
    if "torch" in sys.modules:  # once it is imported, `need_torch` sees to it
        sys.modules["torch"].set_num_threads(count)
    return before
