"""Study `sequences`: ragged sequences and patches, normalised item by item, against what users do today.

The five published mixes of lengths. Padding, torch's nested tensors and lookup tables stand beside Octopus; values and
result lie where they are processed, so that `total` is what must be done per batch: make the map (or the padded batch),
bring it to the device, run, and end with flat values again.
"""

from __future__ import annotations

import logging

from octopus_study.data.ragged import sequence_lengths
from octopus_study.measure import Case, Clock, Row, unavailable
from octopus_study.measure.rows import describe
from octopus_study.peers.ragged_job import RaggedJob
from octopus_study.studies.contest import Entry, compare
from octopus_study.studies.context import Context
from octopus_study.studies.sequences.methods import NAMES, Way, make

log = logging.getLogger(__name__)

STUDY = "sequences"
OPERATION = "normalize"
PARTS = ("setup", "kernel", "total")


def rows(context: Context) -> list[Row]:
    """All rows of the study; progress goes to the log."""
    found: list[Row] = []
    for mix in context.config.sequences.mixes:
        log.info("%s", mix)
        found += _mix(context, mix)
    return found


def _mix(context: Context, mix: str) -> list[Row]:
    lengths = sequence_lengths(mix, context.seed)
    case = Case(STUDY, "synthetic", mix, len(lengths))
    job = RaggedJob(OPERATION, lengths[:, None], "float32", context.device, context.seed)
    padded = 4 * len(lengths) * int(lengths.max())
    found = [
        case.row("batch", "deterministic", "elements", "count", job.total),
        case.row("padded", "deterministic", "padding_waste", "fraction", 1 - 4 * job.total / padded),
    ]
    ways, missing = _ways(job)
    answers, kept = {}, None
    for way in ways:
        answers[way.name], kept = job.check(way.total, kept)
        found.append(case.row(way.name, "deterministic", "map_bytes", "bytes", way.bytes))
    for part in PARTS:
        clock = context.kernel_clocks()[0] if part == "kernel" else context.host_clock()
        found += _timed(context, case, part, ways, clock, answers)
        found += [unavailable(case, name, clock.layer, part, "ms", why) for name, why in missing.items()]
    return found


def _ways(job: RaggedJob) -> tuple[list[Way], dict[str, str]]:
    """Those that can be had here, and why the others can't."""
    ways, missing = [], {}
    for name in NAMES:
        try:
            ways.append(make(name, job))
        except Exception as error:  # a missing package or operation is a row, never the end of the study
            missing[name] = describe(error)
    return ways, missing


def _timed(
    context: Context, case: Case, part: str, ways: list[Way], clock: Clock, answers: dict[str, str]
) -> list[Row]:
    entries = [Entry(way.name, getattr(way, part)) for way in ways]
    return compare(context, case, part, entries, clock, "n/a" if part == "setup" else answers)
