"""One batch in its layers, with every method that can take part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from octopus.backends import cpu
from octopus.backends.cuda import memory
from octopus_study.measure import Case, Method, Row
from octopus_study.measure.bandwidth import copying, fill
from octopus_study.peers.availability import make_all, require_room
from octopus_study.status import NO_ANSWER
from octopus_study.studies.comparison import Comparison, compare
from octopus_study.studies.context import Context
from octopus_study.studies.images.job import ImageJob
from octopus_study.studies.images.method import ImageMethod
from octopus_study.studies.images.registry import make, names
from octopus_study.studies.trace import count_launches

KERNEL, WHOLE, LAUNCHES = "kernel", "end_to_end", "launches"
# What fills a result, and what copies as many bytes as are read and written, by the result's dtype.
BOUNDS = {
    "write-bound": np.float32, "copy-bound": np.float32,
    "write-bound-bf16": np.uint16, "copy-bound-bf16": np.uint16,
}  # fmt: skip
RESULTS_PER_METHOD = 3  # its own result, and about as much beside it


def comparisons(case: Case, device: str) -> Iterator[Comparison]:
    """Those of a batch; a CPU has no device beside its host."""
    methods = names(device)
    if device == "cuda":
        yield Comparison(case, KERNEL, "device", (*methods, *BOUNDS))
        yield Comparison(case, LAUNCHES, "deterministic", methods, "count")
        yield Comparison(case, WHOLE, "host", methods)
    else:
        yield Comparison(case, WHOLE, "host", (*methods, *BOUNDS))


class Layers:
    """The methods of one batch, and why the others of `wanted` can't be had."""

    def __init__(self, context: Context, job: ImageJob, wanted: Sequence[str]) -> None:
        self.context, self.job = context, job
        self.made, self.missing = make_all({name: partial(self._make, name) for name in wanted})

    def _make(self, name: str) -> ImageMethod:
        free = memory.free_bytes() if self.job.on_gpu else cpu.free_bytes()
        require_room(name, self.job.device, RESULTS_PER_METHOD * self.job.result_bytes, free)
        return make(name, self.job)

    def rows(self, comparison: Comparison) -> list[Row]:
        """The rows of a comparison, by its quantity."""
        if comparison.quantity == LAUNCHES:
            return self._launches(comparison)
        kernels = comparison.quantity == KERNEL
        reasons = {name: method.why_no_device for name, method in self.made.items() if kernels}
        missing = self.missing | {name: why for name, why in reasons.items() if why}
        methods, answers = self._checked(comparison, kernels, missing)
        bounds = self._bounds(comparison)
        answers |= {bound.name: NO_ANSWER for bound in bounds}
        budget = self.context.budget_within(self.context.config.images.max_seconds)
        return compare(self.context, comparison, [*methods, *bounds], answers, missing, budget=budget)

    def _checked(
        self, comparison: Comparison, kernels: bool, missing: Mapping[str, str]
    ) -> tuple[list[Method], dict[str, str]]:
        """What is timed, and its answers, each written over NaN."""
        methods, answers = [], {}
        for name, method in self.made.items():
            if name not in missing and self.context.measures(comparison.key, name):
                methods.append(method.timed(method.kernels if kernels else None))
                method.poison()
                answers[name] = self.job.check(methods[-1], method.right)
        return methods, answers

    def _bounds(self, comparison: Comparison) -> list[Method]:
        job, made = self.job, []
        for name in (name for name in BOUNDS if name in comparison.methods):
            out = job.out if BOUNDS[name] == np.float32 else job.room(BOUNDS[name])
            run = fill(out) if name.startswith("write") else copying(job.read_bytes + out.nbytes, job.on_gpu)
            made.append(Method(name, run))
        return made

    def _launches(self, comparison: Comparison) -> list[Row]:
        found, missing = make_all(
            {name: partial(count_launches, method.run) for name, method in self.made.items()}
        )
        rows = [
            comparison.case.row(name, comparison.layer, LAUNCHES, comparison.unit, count)
            for name, count in found.items()
        ]
        return [*rows, *comparison.missing(self.missing | missing)]
