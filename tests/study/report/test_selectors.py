"""A selector takes exactly the rows that a number rests on."""

import dataclasses
import random
from collections.abc import Callable, Iterator

import pytest
from committed_runs import GPU, REFERENCE

from octopus.errors import InputError
from octopus_study.report.build import by, vetted
from octopus_study.report.frame import Number
from octopus_study.report.measured import comparisons, medians
from octopus_study.report.runs import Run, load_runs
from octopus_study.report.selector import Table, either, selects_rows, where
from octopus_study.report.studies import report_of

ROWS = Table({"workload": ["a", "a", "b-x", "b-y"], "n": [1, 2, 1, 2], "method": ["m", "m-again", "m", "other"]})


@pytest.mark.parametrize(("selector", "taken"), [
    ("workload=a", [0, 1]), ("workload=a, n=2", [1]), ("workload=b-*", [2, 3]), ("method=m and other", [0, 2, 3]),
    ("method!=*-again and other", [0, 2]), ("workload=a, n=1; or method=other", [0, 3]), ("all rows", [0, 1, 2, 3]),
    ("workload=c", []),
])  # fmt: skip
def test_a_selector_takes_its_rows(selector: str, taken: list[int]) -> None:
    assert ROWS.rows(selector).tolist() == taken


@pytest.mark.parametrize("selector", ["block-metadata over thread-search", "n", "size=3", "30 comparisons"])
def test_what_is_no_selector_is_refused(selector: str) -> None:
    with pytest.raises(InputError, match=r"no condition|No column"):
        ROWS.rows(selector)


def test_an_alternative_may_be_of_another_table() -> None:
    assert ROWS.rows("workload=a; or number=3", one_of_several=True).tolist() == [0, 1]


def test_selectors_are_made_and_joined() -> None:
    one, two = where(workload="a", n=1), where(workload="a", n=(2, 3))
    assert (one, two) == ("workload=a, n=1", "workload=a, n=2 and 3")
    assert either([one, two, one]) == "workload=a, n=1 and 2 and 3"
    assert either([one, "method=m"]) == "workload=a, n=1; or method=m"


def drawn(run: Run, seen: set[tuple[str, Callable, str]]) -> Iterator[tuple[Callable, tuple, Number]]:
    """Yield a number of each function of a run and of each kind that was not seen before, with what makes it."""
    report = report_of(run.study)
    functions = [(medians, (report,)), *(() if report.windows else ((comparisons, (report,)),))]
    functions += [(function, ()) for function in report.numbers]
    for function, given in functions:
        kinds: dict[str, list[Number]] = {}
        for number in by(function, run, *given):
            kinds.setdefault(number.derived or number.quantity, []).append(number)
        for kind, numbers in kinds.items():
            if (run.study, function, kind) not in seen:
                seen.add((run.study, function, kind))
                yield function, given, random.Random(run.scope).choice(numbers)


def table_of(run: Run) -> Table:
    names = ("workload", "n", "method", "quantity", "layer", "unit", "block", "input")
    return Table({name: run.rows[name].tolist() for name in names})


def rest(run: Run, table: Table, number: Number) -> Run:
    """Return a run with the rows of one number alone; of windows with one energy, which says what was measured."""
    chosen = set(table.rows(number.selector).tolist())
    if report_of(run.study).windows:
        energies = (run.rows["quantity"] == "energy_per_frame") & run.rows["value"].notna()
        chosen |= {int(place) for place in energies.to_numpy().nonzero()[0][:1]}
    return dataclasses.replace(run, rows=run.rows.iloc[sorted(chosen)].reset_index(drop=True))


def test_a_number_follows_from_its_rows_alone() -> None:
    """Of the GPU, and of a CPU what it alone has."""
    wrong: list[str] = []
    seen: set[tuple[str, Callable, str]] = set()
    for run in sorted(vetted(load_runs(None, REFERENCE)), key=lambda run: run.scope != GPU):
        table = table_of(run)
        for function, given, number in drawn(run, seen):
            if selects_rows(number.selector):
                again = {one.id: one for one in by(function, rest(run, table, number), *given)}.get(number.id)
                if again is None or repr(again) != repr(number):
                    wrong.append(f"{number.id}: {number.selector}")
    assert wrong == []
