"""Ragged sequences: gains of block metadata over the lookup table, and of Octopus over every other method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from octopus_study.names import SEQUENCE_WORKLOADS, STRATEGIES, SUBJECT
from octopus_study.report.charts import ratios, style
from octopus_study.report.charts.spec import Chart
from octopus_study.report.frame import Frame, Key, Number, joined, make_number, published
from octopus_study.report.machines import kind
from octopus_study.report.measured import floor_of, memory_gains, ratio_of, speedup
from octopus_study.report.missing import no_run
from octopus_study.report.runs import Run
from octopus_study.report.samples import Group, groups, pivot
from octopus_study.report.selector import where
from octopus_study.report.study import StudyReport
from octopus_study.report.tables import cells
from octopus_study.report.tables.spec import Row, Spec
from octopus_study.report.tables.writers import MISSING
from octopus_study.report.view import KERNEL, View, views

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NO_TIMES = "No run of the study sequences that is shown timed anything."
OWNER, TABLE = "block-metadata", "lookup-published"
OWNERS = ("block-metadata-published", OWNER)  # built by a loop on the host, as published, or by compiled code
OVER = {
    "lookup-vectorised": "over A, one call",
    TABLE: "over A, as published",
    "padded": "over padding",
    "nested-jagged": "over nested tensors",
}
# Averages that the table and the paper show.
AVERAGES = (
    *((owner, table) for owner in OWNERS for table in (TABLE, "lookup-vectorised")),
    *((SUBJECT, other) for other in OVER),
)


def compares(group: Group, other: str) -> bool:
    """Octopus is compared in total time alone."""
    return group.quantity == "total"


def gains(run: Run) -> Iterator[Number]:
    """Yield the gains of block metadata over the table as published, step by step."""
    for group, rows in groups(run, unit="ms"):
        table = pivot(rows)
        for owner in OWNERS if group.quantity in ("setup", "kernel", "total") and len(table) > 1 else ():
            if {owner, TABLE} <= set(table):
                yield from speedup(run, group, table, (owner, TABLE), floor_of(table))
    yield from memory_gains(run, OWNERS, (TABLE,))


def averages(run: Run) -> Iterator[Number]:
    """Yield the arithmetic mean of the total gains over the five mixes, as the source averages, and of each step's gain
    of block metadata over the published table; nothing where a mix is missing."""
    yield from _steps(run)
    tables = {group.workload: pivot(rows) for group, rows in groups(run, unit="ms", quantity="total")}
    for method, other in AVERAGES:
        pairs = [
            tables[mix] for mix in SEQUENCE_WORKLOADS if mix in tables and {method, other} <= set(tables[mix])
        ]
        ratios = [ratio_of(table, method, other) for table in pairs if len(table) > 1]
        if len(ratios) == len(SEQUENCE_WORKLOADS):
            key = run.key("average", method=method, derived="total_gain", other=other)
            chosen = where(workload=SEQUENCE_WORKLOADS, quantity="total", method=(method, other))
            source = run.from_rows("synthetic", chosen)
            mean = sum(ratios) / len(ratios)
            yield make_number(key, source, "ratio", mean, note="mean of the mixes' median ratios")


def _steps(run: Run) -> Iterator[Number]:
    """Yield the means of the gains in setup, kernel and memory."""
    layers = {
        "setup": "host",
        "kernel": "device" if kind(run) == "gpu" else "host",
        "map_bytes": "deterministic",
    }
    numbers = [
        number for number in gains(run) if layers.get(number.quantity) == number.layer and number.known
    ]
    for owner in OWNERS:
        for quantity, name in (("setup", "setup"), ("kernel", "kernel"), ("map_bytes", "memory")):
            chosen = [one for one in numbers if (one.method, one.quantity) == (owner, quantity)]
            values = [one.value for one in chosen]
            if len(values) == len(SEQUENCE_WORKLOADS):
                key = run.key("average", method=owner, derived=f"{name}_gain", other=TABLE)
                source = joined(*chosen)._replace(dataset="synthetic")
                yield make_number(
                    key, source, "ratio", sum(values) / len(values), note="mean of the mixes' gains"
                )


def cases(view: View) -> list[Key]:
    """Return the mixes in which Octopus was timed."""
    return view.cases(SUBJECT, "total", ("host",), order=list(SEQUENCE_WORKLOADS))


def _published(frame: Frame) -> Iterator[Row]:
    yield "RTX 4090, as published: lookup table over block metadata"
    steps = ("setup_gain", "memory_gain", "kernel_gain", "total_gain")
    for mix, name in SEQUENCE_WORKLOADS.items():
        elements, *texts = (
            frame.text(published("ragged_sequences", mix, quantity), MISSING)
            for quantity in ("elements", *steps)
        )
        yield [name, elements, MISSING, *texts, MISSING, *(MISSING for _ in OVER)]
    total = frame.text(published("ragged_sequences", "average", "total_gain"))
    yield _average([*[MISSING] * 3, total], [MISSING] * len(OVER))


def _averages(view: View) -> Iterator[Row]:
    def text(method: str, other: str, step: str = "total") -> str:
        return view.text(view.key("average", method=method, derived=f"{step}_gain", other=other), MISSING)

    gained = [text(OWNER, TABLE, step) for step in ("setup", "memory", "kernel", "total")]
    yield _average(gained, [text(SUBJECT, other) for other in OVER])


def _average(gained: list[str], speedups: list[str]) -> list[str]:
    return ["Average", MISSING, MISSING, *gained, MISSING, *speedups]


SEQUENCES = Spec(
    study="sequences",
    first="Mix",
    label=lambda view, key: SEQUENCE_WORKLOADS[key.workload],
    cases=cases,
    columns={
        "Elements": cells.fact(method="batch", quantity="elements", layer="deterministic"),
        "Waste": cells.fact(method="padded", quantity="padding_waste", layer="deterministic"),
        "C: setup": cells.speedup_alone(TABLE, method=OWNER, quantity="setup"),
        "C: memory": cells.text(
            method=OWNER, quantity="map_bytes", layer="deterministic", derived="gain", other=TABLE
        ),
        "C: kernel": cells.speedup_alone(TABLE, method=OWNER, quantity="kernel", layer=KERNEL),
        "C: total": cells.speedup_alone(TABLE, method=OWNER),
        "Octopus": cells.time(),
        **{head: cells.versus(other) for other, head in OVER.items()},
    },
    before=_published,
    after=_averages,
    caption="Ragged sequences, each normalised by its own mean and deviation. Gains of block metadata (C), built by "
    "compiled code, over the lookup table (A) as published: setup, memory beside the offsets, kernel, total. Then the "
    "total time of Octopus and its speed-ups in total time, with the verdict where it isn't faster. Waste: share of "
    "the padded batch that is padding.",
    absent=no_run("sequences"),
    widths=("1.5fr", *("1fr",) * 11),
)


def draw(frame: Frame) -> Figure:
    """Draw the whole time of a batch as a multiple of that of Octopus, one panel per machine."""
    shown = [view for view in views(frame, "sequences") if cases(view)]
    if not shown:
        return style.empty(NO_TIMES)
    return ratios.draw(shown, cases, [OWNER, *OVER], STRATEGIES, lambda key: SEQUENCE_WORKLOADS[key.workload])


REPORT = StudyReport(
    numbers=(gains, averages),
    compares=compares,
    tables={"sequences": SEQUENCES},
    figures={
        "sequences": Chart(
            draw,
            "Total time of each way over that of Octopus, from lengths on the host to the result.",
        )
    },
    claims="claims_mapping",
)
