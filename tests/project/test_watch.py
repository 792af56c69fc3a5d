"""Methods that end the process or never return cost a row each: a study with four of them, in a copy."""

from pathlib import Path

import pytest
import toy_study
from copies import copied
from test_recipes import COPIED, apply, commands, python

from octopus_study.data.fetch import fetch
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
    folder = copied(root, tmp_path_factory.mktemp("watched"), COPIED)
    apply(FILES, folder)
    fetch("visdrone-val", raw_dir=folder, mode="sample", progress=False)
    return folder


def test_methods_that_end_or_block_the_process_cost_a_row_each(copy: Path) -> None:
    commands(copy, MEASURE)
    rows = read_rows(copy / "results/toy.csv")
    timed = rows[rows.value.notna() & (rows.unit == "ms")]
    assert set(timed.workload[timed.method == "octopus"]) == {"first", "second"}
    said = rows[rows.method.isin(list(HOSTILE))].set_index("method").reason.to_dict()
    assert said == {name: reason for name, (_, reason) in HOSTILE.items()}
    assert (copy / "measured").read_text() == "once "  # what was complete isn't measured again


def test_a_library_that_aborts_at_the_end_of_a_process_costs_nothing(copy: Path) -> None:
    """One did on a GPU: its study had all rows, and lost them."""
    study = copy / "workflow/octopus_study/studies/toy/study.py"
    before = study.read_text()
    study.write_text(
        STUDY.replace("def plan(context):", "import atexit\natexit.register(os.abort)\n\n\ndef plan(context):")
    )
    (copy / "results/toy.csv").unlink(missing_ok=True)
    commands(copy, MEASURE)
    study.write_text(before)
    assert set(read_rows(copy / "results/toy.csv").workload) == {"first", "second"}


def test_a_process_that_ends_where_no_method_is_at_work_is_an_error(copy: Path) -> None:
    study = copy / "workflow/octopus_study/studies/toy/study.py"
    study.write_text(STUDY.replace("def _first(context, part):", "def _first(context, part):\n    os._exit(7)"))
    with pytest.raises(AssertionError, match="the process that measures toy ended the process with code 7"):
        python(copy, "-c", f"from octopus_study.cli.commands import app; app({MEASURE!r}, standalone_mode=False)")


def test_errors_of_a_watched_study_are_those_of_the_study(copy: Path) -> None:
    study = copy / "workflow/octopus_study/studies/toy/study.py"
    study.write_text(
        STUDY.replace("def plan(context):", "def plan(context):\n    raise compare.__globals__['InputError']('so')")
    )
    with pytest.raises(AssertionError, match=r"octopus\.errors\.InputError: so"):
        python(copy, "-c", f"from octopus_study.cli.commands import app; app({MEASURE!r}, standalone_mode=False)")
