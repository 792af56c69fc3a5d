"""From result rows and published tables to ``numbers.csv`` and the series beside it."""

import json
import math
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from octopus_study.measure._files import atomic_text
from octopus_study.report import studies
from octopus_study.report.frame import HERE, Frame, Number
from octopus_study.report.machines import aliases, machine_facts, of_text, shown_runs
from octopus_study.report.measured import comparisons, medians
from octopus_study.report.published import published_numbers
from octopus_study.report.rows import AND
from octopus_study.report.runs import Run, load_runs
from octopus_study.report.series import FOLDER
from octopus_study.report.study import StudyReport


def build_numbers(
    results_dir: str | Path | None, reference_dir: str | Path | None, published_dir: str | Path, out: str | Path
) -> Path:
    """Derive every number from the result rows and the published tables; write ``numbers.csv`` at `out`, what authors
    need of it as ``numbers.json``, and ``series/`` anew. The folders are those of
    :func:`octopus_study.report.runs.load_runs`, and ``data/published``."""
    runs = vetted(load_runs(results_dir, reference_dir))
    whole = Frame(numbers_of(runs, published_dir))
    write_series(runs, Path(out).parent)
    with atomic_text(Path(out).with_suffix(".json")) as stream:
        json.dump(for_authors(whole), stream, ensure_ascii=False, indent=0)
    return whole.write(out)


def numbers_of(runs: list[Run], published_dir: str | Path) -> list[Number]:
    """Return every number of vetted runs and of the published tables."""
    printed = Frame(by(published_numbers, published_dir))
    derived = [number for report in studies.reports().values() for number in _by_each(report.of_published, printed)]
    frame = Frame([*derive_all(runs), *printed, *derived])
    compared = [number for report in studies.reports().values() for number in _by_each(report.of_all, frame)]
    beside = [number for run in runs for number in _by_each(studies.report_of(run.study).beside_all, run, frame)]
    return [*frame, *compared, *beside]


def for_authors(frame: Frame) -> dict[str, dict]:
    """Return what the paper reads: by id the text, the interval, the text beside that, and the status; and what may
    stand for a machine's name in an id."""
    here = {HERE: HERE} if frame.fact(HERE, "id") else {}
    texts = {one.id: (one.text, one.interval, one.precise, one.status) for one in frame}
    return {"machines": frame.aliases | here, "numbers": texts}


def write_series(runs: list[Run], folder: Path) -> None:
    """Write what figures draw and is no number, into a folder that is made anew."""
    shutil.rmtree(folder / FOLDER, ignore_errors=True)
    (folder / FOLDER).mkdir(parents=True)
    for run in runs:
        for make in studies.report_of(run.study).series:
            for series in make(run):
                series.write(folder)


def vetted(runs: list[Run]) -> list[Run]:
    """Return the runs without what must not be believed."""
    return [_vetted(run) for run in runs]


def _vetted(run: Run) -> Run:
    check = studies.report_of(run.study).vetted
    made = check(run) if check else run
    return replace(made, second=_vetted(run.second)) if run.second else made


def derive_all(runs: list[Run]) -> Iterator[Number]:
    """Yield every number of vetted runs, study by study, then the facts about machines and runs."""
    for run in runs:
        yield from derive(run, studies.report_of(run.study))
    yield from by(machine_facts, runs)
    told = of_text(runs)
    yield from by(shown_runs, told)
    for study in dict.fromkeys(run.study for run in told):
        chosen = [run for run in told if run.study == study]
        yield from _by_each(studies.report_of(study).of_runs, chosen)
    yield from by(aliases, runs)


def derive(run: Run, report: StudyReport) -> Iterator[Number]:
    """Yield the numbers of one run; if there is a second one, with intervals that hold both."""
    again = {} if run.second is None else {number.id: number for number in derive(run.second, report)}
    for number in _derived(run, report):
        yield holding(number, again[number.id]) if number.id in again else number


def holding(number: Number, again: Number) -> Number:
    """Return a number of a first run whose interval holds that of the second one; or a verdict on which they agree, or
    the larger noise floor.

    The rule was set before there was a second run: the value stays the first run's, and the interval reaches from the
    least to the greatest end of both. So whatever is judged by the interval is judged by both runs. Both are named."""
    both = number._replace(file=AND.join((number.file, again.file)))
    if number.derived == "verdict":
        same = number.text == again.text
        return both if same else both._replace(text="ambiguous", note=f"{number.note}; a second run: {again.text}")
    if number.derived == "noise_floor":
        larger = {"value": again.value, "text": again.text, "note": f"of the second run; {number.note}"}
        return both._replace(**larger) if again.value > number.value else both
    ends = [end for end in (number.low, number.high, again.low, again.value, again.high) if math.isfinite(end)]
    if not (math.isfinite(number.low) and math.isfinite(again.value)):
        return number
    note = "; ".join(filter(None, ("the interval holds a second run's", number.note)))
    return both._replace(low=min(ends), high=max(ends), note=note)


def _derived(run: Run, report: StudyReport) -> Iterator[Number]:
    yield from by(medians, run, report)
    if not report.windows:
        yield from by(comparisons, run, report)
    yield from _by_each(report.numbers, run)


def by(function: Callable[..., Iterable[Number]], *given: object) -> Iterator[Number]:
    """Yield what a function derives, each number with its name."""
    name = f"{function.__module__}.{function.__qualname__}"
    for number in function(*given):
        yield number._replace(function=name)


def _by_each(functions: Iterable[Callable[..., Iterable[Number]]], *given: object) -> Iterator[Number]:
    for function in functions:
        yield from by(function, *given)
