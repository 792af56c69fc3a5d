"""Study `images`: images of any size on their way into a model, as patch rows for Qwen2-VL or a batch for SigLIP.

Layers. `device`: the work on the GPU alone, by events with a cold L2, and beside it what bounds it, filling the result
and copying as many bytes as are read and written. `host`: from a list of images where the work is done to the
synchronised result, all that a user must do per batch. Octopus gets the batch in the other order at each run, as new
sizes are what a model gets; `octopus-same-sizes` alone may keep what it knows of them. Who owns which tile is measured
in both layers (`owners`). A CPU has the layer `host` alone. Launches are counted by PyTorch's profiler, which sees
those of every library.
"""

from __future__ import annotations

from collections.abc import Iterator

from octopus_study.measure import Case, Row
from octopus_study.studies.comparison import Part
from octopus_study.studies.context import Context, empty_caches
from octopus_study.studies.images.job import ImageJob
from octopus_study.studies.images.layers import Layers, comparisons
from octopus_study.studies.images.own import OctopusImages
from octopus_study.studies.images.registry import names
from octopus_study.studies.images.workloads import BATCHES, count_of, images_of


def plan(context: Context) -> Iterator[Part]:
    """Every batch in its layers."""
    for name in context.config.images.workloads:
        case = Case(context.study, context.workload.dataset, name, count_of(context, name))
        yield Part(_measure, tuple(comparisons(case, context.device)))


def _measure(context: Context, part: Part) -> Iterator[Row]:
    workload, measures = part.case.workload, context.measures
    job = ImageJob(images_of(context, workload), BATCHES[workload].task, context.device)
    counted = {"read_bytes": job.read_bytes, "result_bytes": job.result_bytes}
    for quantity, nbytes in counted.items():
        yield part.case.row("batch", "deterministic", quantity, "bytes", nbytes)
    chosen = [each for each in part.comparisons if measures(each.key)]
    wanted = [name for name in names(context.device) if any(measures(each.key, name) for each in chosen)]
    layers = Layers(context, job, wanted)
    for comparison in chosen:
        yield from layers.rows(comparison)
    yield from _tables(part.case, layers)
    del layers
    empty_caches(context.device)


def _tables(case: Case, layers: Layers) -> Iterator[Row]:
    for name, method in layers.made.items():
        if isinstance(method, OctopusImages) and method.table_bytes:
            yield case.row(name, "deterministic", "table_bytes", "bytes", method.table_bytes)
