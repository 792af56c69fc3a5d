"""Study `arena`: Octopus against everything that a user would pick instead, on the same boxes and the same frame.

Four layers, which are never compared with each other. `device`: the work on the GPU alone, by events with a cold L2;
whatever a method needs ready (views, rois, grids, a padded batch) is ready. `host`: from the boxes on the host to the
synchronised result, the frame where the work is done; all that a user must do per batch counts, a padded batch
included. `pipelined`: the same for batches in a row, per batch, where the next may begin before one is done.
`pipeline`: `host` with the frame's way to the GPU and the result's way back, through page-locked memory. A CPU has the
layer `host` alone.

The kernel itself is measured beside them: its steps (`ladder`), its variants beside their bounds (`variants`), frames
of video (`video`), and what a call costs (`calls`).

Whoever gives another answer (a resized padded image is not a resized crop) may take part, and its rows say so. What
reads across the edge of a box is compared with Octopus that does so too, `octopus-image`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from octopus_study.measure import Row
from octopus_study.names import MEMORY_METHODS
from octopus_study.studies.arena import byte_crops, calls, ladder, memory, variants, video
from octopus_study.studies.arena.layers import Batch, PageLocked, layers, names
from octopus_study.studies.arena.workloads import LARGE, ONE_SCALE, VISDRONE, boxes_of, shared_count
from octopus_study.studies.comparison import Comparison, Part
from octopus_study.studies.context import Context
from octopus_study.studies.crops import (
    ReferenceCrops,
    crop_job,
    every_checked,
    one_thread_part,
    padding_rows,
    reference_of,
)

ONE_THREAD = (VISDRONE, "uniform", LARGE)  # boxes that grow, that hardly change, that shrink
EDGES = ("box", "image")
# As YOLO normalises; there CV-CUDA's operator needs no second pass. Of the others none gains by it.
MEAN, DEVIATION, ONE_PASS = 0.0, 255.0, ("octopus", "cvcuda", "cvcuda-views", "write-bound")
SWITCHED_OFF = "not measured in this run (arena.memory is false)"


def plan(context: Context) -> Iterator[Part]:
    """Every batch in all layers; on a CPU one thread each and bytes; on a GPU the kernel's steps and variants, what a
    call costs, frames of video, and the memory."""
    settings, shared = context.config.arena, shared_count(context)
    crops = reference_of(context)
    batches = Batches(crops, min(settings.counts))
    for workload in settings.workloads:
        for count in context.counts(settings):
            compared = layers(context.case(workload, count), context.device)
            yield Part(batches.measure, compared, batches.recall)
    if context.device == "cpu":
        for workload in ONE_THREAD:
            boxes = boxes_of(context, workload, shared)
            yield one_thread_part(context.case(f"{workload}-1thread", shared), crops, boxes)
            yield from byte_crops.parts(context, workload, boxes)
    else:
        kernels, whole, *_ = layers(context.case(ONE_SCALE, shared), context.device)
        yield Part(one_scale, (replace(kernels, methods=ONE_PASS), replace(whole, methods=ONE_PASS[:-1])))
        yield from ladder.parts(context, crops)
        yield from variants.parts(context)
        yield from calls.parts(context, crops)
        yield from video.parts(context)
        yield Part(batches.memory, memory.comparisons(context.case(VISDRONE, shared), MEMORY_METHODS))


def _takes(context: Context, comparison: Comparison, name: str) -> bool:
    return name in comparison.methods and context.measures(comparison.key, name)


def one_scale(context: Context, part: Part) -> Iterator[Row]:
    """The same boxes normalised by one mean and one deviation."""
    crop, channels = context.config.crop, context.workload.frame.shape[2]
    crop = crop.model_copy(update={"mean": (MEAN,) * channels, "std": (DEVIATION,) * channels})
    changed = replace(context, config=context.config.model_copy(update={"crop": crop}))
    return Batches(reference_of(changed), least=0).measure(changed, part)


@dataclass
class Batches:
    """What the batches of a run share."""

    crops: ReferenceCrops
    least: int  # boxes of the smallest batch; in a larger one a method may be missing for want of room
    # Why methods can't be made on this machine, whatever the batch
    missing: dict[str, str] = field(default_factory=dict)

    def measure(self, context: Context, part: Part) -> Iterator[Row]:
        """One workload and number of boxes in every layer."""
        settings, count = context.config.arena, part.case.n
        boxes = boxes_of(context, part.case.workload, count)
        yield from padding_rows(part.case, boxes)
        context.require_room(count)
        every = every_checked(count)
        job = crop_job(context, boxes)
        locked = PageLocked(job) if job.on_gpu and count <= settings.pipeline_max_count else None
        if locked is not None:
            job = replace(job, host_out=locked.result)
        right = {edge: self.crops.of(boxes[::every], edge) for edge in EDGES}
        batch = Batch(context, job, right, every, locked)
        chosen = [comparison for comparison in part.comparisons if context.measures(comparison.key)]
        batch.gather([name for name in names() if any(_takes(context, each, name) for each in chosen)])
        if count == self.least:
            self.missing |= batch.missing
        for comparison in chosen:
            yield from batch.rows(comparison)
        batch.release()

    def recall(self, rows: Sequence[Row]) -> None:
        """The same of a batch that an earlier process measured: what has no time in any layer could not be made."""
        timed = {row.method for row in rows if row.value is not None}
        for row in rows:
            if row.n == self.least and row.method not in timed:
                self.missing.setdefault(row.method, row.reason)

    def memory(self, context: Context, part: Part) -> Iterator[Row]:
        """Every method in a process of its own, but those that the batches could not make."""
        off = {} if context.config.arena.memory else dict.fromkeys(names(), SWITCHED_OFF)
        boxes = boxes_of(context, VISDRONE, part.case.n)
        return memory.rows(context, part, boxes, off | self.missing)
