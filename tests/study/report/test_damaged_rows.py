"""Whatever a machine's rows lack, the report is made, and says no 'nan'.

The rows are the committed ones of each study, few blocks of them, and a seeded choice of damages. OCTOPUS_FUZZ_ROWS=6
takes both machines, draws all, and damages six methods, quantities, layers, workloads or counts of each study;
OCTOPUS_FUZZ_ROWS=all takes every one (about an hour).
"""

import os
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from mutating import chosen, damaged, few_blocks, not_numbers, real_runs, shown

from octopus_study.power import lint
from octopus_study.report.studies import reports

WANTED = os.environ.get("OCTOPUS_FUZZ_ROWS", "")
CPU, GPU = "intel-xeon-2c", "nvidia-h200"
# On a CPU these have little more than reasons.
ON_GPU = ("concurrency", "reading", "power")
# Damages of one method, quantity, layer, workload or count; below zero: every one.
SINGLE = -1 if WANTED == "all" else int(WANTED or 2)
RUNS = [
    (machine, study) for study in reports() for machine in (CPU, GPU) if WANTED or (machine == GPU) == (study in ON_GPU)
]
# Drawing takes longest.
DRAWN = ("one block", "values emptied", "nothing works")


@pytest.fixture(scope="module", autouse=True)
def tables_are_linted_once() -> Iterator[None]:
    """The committed ones, which every report lints, whatever is damaged in memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lint, "lint_file", cache(lint.lint_file))
        yield


@pytest.mark.parametrize(("machine", "study"), RUNS, ids=lambda name: name)
def test_the_report_is_made(machine: str, study: str, tmp_path: Path) -> None:
    run = few_blocks(real_runs(machine)[study])
    for place, mutation in enumerate(chosen(run.rows, SINGLE)):
        drawn = bool(WANTED) or mutation.name.startswith(DRAWN)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # matplotlib's, of empty axes and legends
            warnings.simplefilter("error", RuntimeWarning)
            try:
                texts = list(shown(damaged(run, mutation), tmp_path / str(place), drawn))
            except Exception as error:
                pytest.fail(f"{machine}, {study}, {mutation.name}: {type(error).__name__}: {error}")
        assert not_numbers(iter(texts)) == [], mutation.name
