"""Study `images`: images of any size on their way into a model, as patch rows for Qwen2-VL or a batch for SigLIP.

Layers. `device`: the work on the GPU alone, by events with a cold L2, and beside it what bounds it, filling the result
and copying as many bytes as are read and written. `host`: from a list of images where the work is done to the
synchronised result, all that a user must do per batch. Octopus gets the batch in the other order at each run, as new
sizes are what a model gets; `octopus-same-sizes` alone may keep what it knows of them. Who owns which tile is measured
in both layers (`owners`). A CPU has the layer `host` alone. Launches are counted by PyTorch's profiler, which sees
those of every library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import prod
from typing import Any

import numpy as np

from octopus_study.baselines.availability import Unavailable, make_all, need_torch, require_room
from octopus_study.measure import Case, Method, Row
from octopus_study.measure.bandwidth import copying, fill
from octopus_study.status import NO_ANSWER
from octopus_study.studies.comparison import Comparison, Part, compare, counted
from octopus_study.studies.context import Context, empty_caches
from octopus_study.studies.images import embeddings, libraries, own
from octopus_study.studies.images.job import BATCHES, ImageJob, ImageMethod, job_of
from octopus_study.studies.images.owners import OWNERS, BlockSearch

KERNEL, WHOLE, LAUNCHES = "kernel", "end_to_end", "launches"
# What fills a result, and what copies as many bytes as are read and written, by the result's dtype.
BOUNDS = {
    "write-bound": np.float32, "copy-bound": np.float32,
    "write-bound-bf16": np.uint16, "copy-bound-bf16": np.uint16,
}  # fmt: skip
RESULTS_PER_METHOD = 3  # its own result, and about as much beside it
IN_TORCH = libraries.Torchvision, libraries.TorchvisionGrouped
# Who is compared, by the device, quantity and layer, in the order of the report.
METHODS: dict[str, dict[tuple[str, str], tuple[type[ImageMethod], ...]]] = {
    "cuda": {
        (KERNEL, "device"): (own.Octopus, own.Bfloat16, own.SimpleKernelAlone, *OWNERS),
        (LAUNCHES, "deterministic"): (own.Octopus, libraries.Transformers),
        (WHOLE, "host"): (
            own.Octopus, own.OneCall, own.SameSizes, *OWNERS, libraries.Transformers, libraries.TransformersOnHost,
            *IN_TORCH, libraries.DaliImages, libraries.CvCudaImages,
        ),
    },
    "cpu": {
        (WHOLE, "host"): (
            own.Octopus, own.PillowRounding, own.Bilinear, libraries.Transformers, *IN_TORCH, libraries.Pillow,
            libraries.PillowSimd, libraries.KorniaRs, libraries.DaliImages,
        ),
    },
}  # fmt: skip
BOUNDED: dict[str, dict[str, tuple[str, ...]]] = {
    "cuda": {KERNEL: tuple(BOUNDS)},
    "cpu": {WHOLE: ("write-bound", "copy-bound")},
}


def kinds(device: str) -> dict[str, type[ImageMethod]]:
    """All methods of a device, by name."""
    return {kind.name: kind for group in METHODS[device].values() for kind in group}


def plan(context: Context) -> Iterator[Part]:
    """Every batch in its layers, and from there to embeddings."""
    for name in context.config.images.workloads:
        count = BATCHES[name].number_on(context.device, context.config.images.cpu_part)
        case = context.case(name, count)
        yield Part(_measure, tuple(_comparisons(case, context.device)))
    yield from embeddings.parts(context)


def _comparisons(case: Case, device: str) -> Iterator[Comparison]:
    for (quantity, layer), group in METHODS[device].items():
        methods = (*(kind.name for kind in group), *BOUNDED[device].get(quantity, ()))
        yield Comparison(case, quantity, layer, methods, "count" if quantity == LAUNCHES else "ms")


def _measure(context: Context, part: Part) -> Iterator[Row]:
    yield from _rows(context, part)
    empty_caches(context.device)


def _rows(context: Context, part: Part) -> Iterator[Row]:
    job, chosen = (
        job_of(context, part.case.workload, part.case.n),
        [one for one in part.comparisons if context.measures(one.key)],
    )
    makers = {
        name: partial(_made, kind, job)
        for name, kind in kinds(context.device).items()
        if any(name in one.methods and context.measures(one.key, name) for one in chosen)
    }
    made, missing = make_all(makers)
    for comparison in chosen:
        taking_part = {name: made[name] for name in comparison.methods if name in made}
        if comparison.quantity == LAUNCHES:
            yield from counted(
                comparison, {name: partial(count_launches, one.run) for name, one in taking_part.items()}
            )
            yield from comparison.missing(missing)
        else:
            yield from _timed(context, comparison, taking_part, missing, job)
    for name, method in made.items():
        if isinstance(method, BlockSearch):
            yield part.case.row(name, "deterministic", "table_bytes", "bytes", method.table_bytes)


def _made(kind: type[ImageMethod], job: ImageJob) -> ImageMethod:
    require_room(kind.name, job.device, RESULTS_PER_METHOD * 4 * prod(job.shape))
    return kind(job)


def count_launches(run: Callable[[], object]) -> int:
    """Kernels that PyTorch's profiler sees on the GPU, whoever launches them.

    Raises
    ------
    Unavailable
        There is no PyTorch, or its profiler sees nothing on this machine.
    """
    torch: Any = need_torch("cuda", "baselines")
    run()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        run()
        torch.cuda.synchronize()
    on_gpu = [event.name for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    count = sum(not name.startswith(("Memcpy", "Memset")) for name in on_gpu)
    if not count:
        raise Unavailable("the profiler saw no kernel")
    return count


def _timed(
    context: Context, comparison: Comparison, made: Mapping[str, ImageMethod], missing: Mapping[str, str], job: ImageJob
) -> list[Row]:
    """Check each method, written over NaN, and time all beside their bounds."""
    methods, answers = [], {}
    for name, method in made.items():
        if context.measures(comparison.key, name):
            methods.append(method.timed(method.kernels if comparison.quantity == KERNEL else None))
            method.poison()
            answers[name] = job.check(methods[-1], method.right)
    for name in (name for name in BOUNDS if name in comparison.methods):
        out = job.out if BOUNDS[name] == np.float32 else job.room(BOUNDS[name])
        nbytes = sum(image.nbytes for image in job.images) + out.nbytes
        methods.append(Method(name, fill(out) if name.startswith("write") else copying(nbytes, job.on_gpu)))
        answers[name] = NO_ANSWER
    budget = context.budget_within(context.config.images.max_seconds)
    return compare(context, comparison, methods, answers, missing, budget=budget)
