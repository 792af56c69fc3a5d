"""Pages of text read by RapidOCR as it is and with Octopus: where the time goes, and whether the texts are the same."""

from collections.abc import Iterator
from itertools import islice

from octopus_study.names import BOUND, READING_METHODS, READING_STEPS, STRATEGIES, SUBJECT
from octopus_study.report import captions
from octopus_study.report.frame import Frame, Key, Number, joined, make_number
from octopus_study.report.measured import floor_of, speedup
from octopus_study.report.missing import no_run
from octopus_study.report.runs import Run
from octopus_study.report.samples import groups, pivot
from octopus_study.report.study import StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Spec
from octopus_study.report.view import View, every_view

STUDY, WHOLE, ENGINE, PADDED = "reading", "whole", "rapidocr", "padded"
SUMS = ("inputs", "beside")
STEADY = "octopus-steady"  # beside what it replaces, and beside the engine with the option that is quicker on a GPU
COUNTED = {"layer": "deterministic"}
_ORDER = {name: place for place, name in enumerate(READING_METHODS)}
_WAYS = STRATEGIES | READING_METHODS | {SUBJECT: STRATEGIES[SUBJECT]}


def pages(view: View) -> list[Key]:
    """Return the ways to read each number of pages that a machine was asked to read."""
    found = {number.key for number in view.select(workload="pages", quantity=WHOLE, layer="host")}
    return sorted((key for key in found if key.method in READING_METHODS), key=lambda key: (key.n, _ORDER[key.method]))


def more_errors(frame: Frame) -> Iterator[Number]:
    """Yield by how much the rate of character errors with Octopus is above that of the engine as it is."""
    for view in every_view(frame, STUDY):
        for own in view.select(method=SUBJECT, quantity="character_errors", **COUNTED):
            other = view.get(own.key.but(method=ENGINE))
            if own.known and other:
                key = view.key("pages", own.n, quantity="more_character_errors")
                yield make_number(key, joined(own, other), own.unit, own.value - other.value, note="a difference")


def steady(run: Run) -> Iterator[Number]:
    """Yield the speed-ups of steady shapes, which the comparisons of Octopus as it is leave out."""
    for group, rows in groups(run, layer="host"):
        table = pivot(rows)
        floor = floor_of(table)
        for other in (ENGINE, f"{ENGINE}-default") if STEADY in table else ():
            found = speedup(run, group, table, (STEADY, other), floor)
            yield from found if floor == floor else islice(found, 1)  # where nothing ran twice: no verdict


def crops(view: View) -> list[Key]:
    """Return the ways to cut boxes to one height, where a machine timed them."""
    timed = [number.key for number in view.select(quantity="kernel", layer="device") if number.known]
    return [key for key in timed if key.method in (*STRATEGIES, PADDED, BOUND)]


def _named(view: View, key: Key) -> str:
    count = "1 page" if key.n == 1 else f"{key.n} pages"
    return f"{count}: {READING_METHODS[key.method]}"


def _over_pages(view: View) -> str:
    return f"{view.name}, drawn pages, {view.fact('measured_on')}"


TIMES = Spec(
    study=STUDY,
    first="Read by",
    label=_named,
    cases=pages,
    columns={
        "Whole": cells.time(),
        **{name: cells.time(quantity=step) for step, name in READING_STEPS.items() if step not in SUMS},
        "Gain, whole": cells.versus(ENGINE),
        "Over DEFAULT": cells.versus(f"{ENGINE}-default"),
        "Gain, beside": cells.versus(ENGINE, quantity="beside"),
        "Gain, inputs": cells.versus(ENGINE, quantity="inputs"),
    },
    title=_over_pages,
    caption=captions.TABLES["reading"],
    absent=no_run(STUDY),
    widths=("2.2fr", *("1fr",) * 9),
)
TEXTS = Spec(
    study=STUDY,
    first="Read by",
    label=_named,
    cases=pages,
    columns={
        "Lines drawn": cells.text(method="pages", quantity="lines", **COUNTED),
        "Boxes": cells.fact(quantity="boxes", **COUNTED),
        "Same lines": cells.fact(quantity="lines_equal", **COUNTED),
        "Character errors": cells.fact(quantity="character_errors", **COUNTED),
        "Host memory": cells.fact(quantity="host_peak", layer="memory"),
    },
    title=_over_pages,
    caption=captions.TABLES["reading_texts"],
    absent=no_run(STUDY),
    widths=("2.2fr", *("1fr",) * 5),
)
CROPS = Spec(
    study=STUDY,
    first="Boxes",
    label=lambda view, key: f"{key.n}: {_WAYS[key.method]}",
    cases=crops,
    columns={
        "Time": cells.time(),
        "Octopus over it": lambda view, key: cells.versus(key.method)(view, key.but(method=SUBJECT)),
        "Of the bound": cells.text(derived="share", other=BOUND),
    },
    caption=captions.TABLES["reading_crops"],
    absent=lambda frame: "Boxes to one height were timed on no GPU." if frame.shown(STUDY) else no_run(STUDY),
    widths=("2.4fr", "1fr", "1fr", "1fr"),
)
REPORT = StudyReport(
    numbers=(steady,), of_all=(more_errors,), tables={"reading": TIMES, "reading_texts": TEXTS, "reading_crops": CROPS}
)
