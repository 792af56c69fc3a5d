"""The tuner against the study: how long its probes take, and what its choice costs beside the best."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from octopus.ragged import tuner
from octopus_study.measure import Case, Row
from octopus_study.measure.statistics import MIN_BLOCKS
from octopus_study.studies.context import Context
from octopus_study.studies.mapping.maps import METHODS

RUNS = MIN_BLOCKS
NAMES = {"block_search": "octopus", "thread_search": "thread-search", "lookup": "lookup"}
_Times = dict[tuple[str, int, str, str], float]


def tuner_rows(context: Context, rows: list[Row]) -> list[Row]:
    """Rows of `tuner_probe` and, for every case that was measured, `tuner_regret`.

    Regret is time of the tuner's choice / least time - 1, for a batch that is used once: kernel, and setup and upload
    of the map, which the operations pay at every call.
    """
    tunings = [tuner.tune(context.device, keep=False) for _ in range(RUNS)]
    case = Case(context.study, "synthetic", "tuner", tuner.ELEMENTS[context.device])
    probes = [
        case.row("tuner", "host", "tuner_probe", "ms", tuning.probe_ms, block=number)
        for number, tuning in enumerate(tunings)
    ]
    return probes + _regrets(tunings[-1], rows)


def _regrets(tuning: tuner.Tuning, rows: list[Row]) -> list[Row]:
    times = _medians(rows)
    regrets = []
    cases = dict.fromkeys((row.dataset, row.workload, row.n) for row in rows if row.quantity == "kernel")
    for dataset, workload, n in cases:
        costs = _costs(times, workload, n)
        group = "stencil" if "-blur" in workload else "pointwise"
        chosen = costs.get(_method(tuning, group))
        if chosen is not None:
            case = Case(rows[0].study, dataset, workload, n)
            regret = chosen / min(costs.values()) - 1
            regrets.append(case.row("tuner", "deterministic", "tuner_regret", "fraction", regret))
    return regrets


def _method(tuning: tuner.Tuning, group: str) -> str:
    """The choice by its name among the rows; a tuned threshold other than the default counts as the default."""
    return NAMES.get(tuning.choice[group], "block-metadata-tuned")


def _medians(rows: list[Row]) -> _Times:
    blocks = defaultdict(list)
    for row in rows:
        if row.value is not None and row.unit == "ms":
            blocks[row.workload, row.n, row.method, row.quantity].append(row.value)
    return {key: float(np.median(values)) for key, values in blocks.items()}


def _costs(times: _Times, workload: str, n: int) -> dict[str, float]:
    """Milliseconds of one use by method, for those whose every part was measured."""
    distribution = workload.partition("-")[0]
    costs = {}
    for method in METHODS:
        kernel = times.get((workload, n, method, "kernel"))
        setup = times.get((distribution, n, method, "setup"))
        upload = times.get((distribution, n, method, "upload"), 0.0)
        if kernel is not None and setup is not None:
            costs[method] = kernel + setup + upload
    return costs
