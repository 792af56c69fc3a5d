"""Methods that end the process or never return cost a row each: a study with four of them, in a copy."""

from pathlib import Path

import pytest
import toy_study
from test_recipes import commands, with_sample

from octopus_study.measure.rows import read_rows

HOSTILE = {
    "exits": ("os._exit(7)", "it ended the process with code 7"),
    "crashes": ("os.kill(os.getpid(), signal.SIGSEGV)", "it ended the process by SIGSEGV"),
    "hangs": ("time.sleep(1000)", "it was at work for 2 s without an end, and was ended"),
    "asks": ("sys.exit(3)", "it asked Python to exit with 3"),
}
STUDY = f"""
import os
import signal
import sys
import time

from octopus_study.measure import Case, Method
from octopus_study.studies.comparison import Comparison, Part, compare

HOSTILE = {dict((name, code) for name, (code, _) in HOSTILE.items())!r}


def plan(context):
    first = Case("toy", context.workload.dataset, "first", 1)
    yield Part(_first, (Comparison(first, "total", "host", ("octopus",)),))
    second = first._replace(workload="second")
    yield Part(_second, (Comparison(second, "total", "host", ("octopus", *HOSTILE)),))


def _first(context, part):
    with open("measured", "a") as file:
        file.write("once ")
    yield from compare(context, part.comparisons[0], [Method("octopus", lambda: sum(range(9999)))])


def _second(context, part):
    methods = [Method("octopus", lambda: sum(range(9999)))]
    methods += [Method(name, lambda code=code: exec(code)) for name, code in HOSTILE.items()]
    yield from compare(context, part.comparisons[0], methods)
"""
FILES = toy_study.FILES | {"workflow/octopus_study/studies/toy/study.py": [("", STUDY)]}
MEASURE = [
    "measure", "toy", "--config=config/quick.yaml", "--set=device=cpu", "--set=measure.stuck_seconds=2",
    "--manifest=visdrone-val.json", "--out=results/toy.csv",
]  # fmt: skip


@pytest.fixture(scope="module")
def copy(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_sample(root, tmp_path_factory.mktemp("watched"), FILES)


def measured(copy: Path, old: str = "", new: str = "") -> None:
    """Measure the study, or another one with a text replaced."""
    (copy / "workflow/octopus_study/studies/toy/study.py").write_text(STUDY.replace(old, new))
    commands(copy, MEASURE)


def test_methods_that_end_or_block_the_process_cost_a_row_each_and_one_that_aborts_at_its_end_none(copy: Path) -> None:
    """A library did so on a GPU: its study had all rows, and lost them."""
    measured(copy, "def plan(context):", "import atexit\natexit.register(os.abort)\n\n\ndef plan(context):")
    rows = read_rows(copy / "results/toy.csv")
    timed = rows[rows.value.notna() & (rows.unit == "ms")]
    assert set(timed.workload[timed.method == "octopus"]) == {"first", "second"}
    said = rows[rows.method.isin(list(HOSTILE))].set_index("method").reason.to_dict()
    assert said == {name: reason for name, (_, reason) in HOSTILE.items()}
    assert (copy / "measured").read_text() == "once "  # what was complete isn't measured again


@pytest.mark.parametrize(("place", "code", "said"), [
    ("def _first(context, part):", "os._exit(7)", "the process that measures toy ended the process with code 7"),
    ("def plan(context):", "raise compare.__globals__['InputError']('so')", r"octopus\.errors\.InputError: so"),
], ids=["where no method is at work", "of the study"])  # fmt: skip
def test_other_ends_and_errors_are_errors(copy: Path, place: str, code: str, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        measured(copy, place, f"{place}\n    {code}")
