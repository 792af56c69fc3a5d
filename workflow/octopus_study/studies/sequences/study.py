"""Study `sequences`: ragged sequences and patches, normalised item by item, against what users do today.

The five published mixes of lengths. Padding, torch's nested tensors and lookup tables stand beside Octopus; values and
result lie where they are processed, so that `total` is what must be done per batch: make the map (or the padded batch),
bring it to the device, run, and end with flat values again.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.availability import make_all
from octopus_study.baselines.ragged_job import RaggedJob
from octopus_study.baselines.ragged_methods import stage
from octopus_study.data.ragged import sequence_lengths
from octopus_study.measure import Row
from octopus_study.status import NO_ANSWER
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.context import Context
from octopus_study.studies.sequences.methods import NAMES, make

OPERATION = "normalize"


def plan(context: Context) -> list[Part]:
    """A part for each mix: what is made per batch, the operation on it, and all of it."""
    return [_part(context, mix) for mix in context.config.sequences.mixes]


def _part(context: Context, mix: str) -> Part:
    lengths = sequence_lengths(mix, context.seed)
    case = context.case(mix, len(lengths), dataset="synthetic")
    layers = {"setup": "host", "kernel": context.kernel_layer, "total": "host"}
    comparisons = (Comparison(case, quantity, layer, NAMES) for quantity, layer in layers.items())
    return Part(partial(_measure, lengths), tuple(comparisons))


def _measure(lengths: NDArray[np.int64], context: Context, part: Part) -> Iterator[Row]:
    case, job = part.case, RaggedJob(OPERATION, lengths[:, None], "float32", context.device, context.seed)
    padded = 4 * len(lengths) * int(lengths.max())
    yield case.row("batch", "deterministic", "elements", "count", job.total)
    yield case.row("padded", "deterministic", "padding_waste", "fraction", 1 - 4 * job.total / padded)
    made, missing = make_all({name: partial(make, name, job) for name in NAMES})
    methods = list(made.values())
    answers = job.check([job.method(method.name, method.total) for method in methods])
    for method in methods:
        yield case.row(method.name, "deterministic", "map_bytes", "bytes", method.bytes)
    for comparison in part.comparisons:
        verdicts = NO_ANSWER if comparison.quantity == "setup" else answers
        yield from compare(context, comparison, stage(methods, comparison.quantity), verdicts, missing)
