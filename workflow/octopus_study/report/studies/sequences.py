"""Ragged sequences: gains of block metadata over the lookup table, and of Octopus over every other method."""

from collections.abc import Iterator

from octopus_study.names import SEQUENCE_WORKLOADS, SUBJECT
from octopus_study.report import captions
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
from octopus_study.report.view import KERNEL, View

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
    """Yield the gains of block metadata over the table as published, step by step, and their arithmetic means over the
    five mixes, as the source averages; nothing where a mix is missing."""
    layers = {"setup": "host", "total": "host", "map_bytes": "deterministic"}
    layers["kernel"] = "device" if kind(run) == "gpu" else "host"
    numbers = list(memory_gains(run, OWNERS, (TABLE,)))
    for group, rows in groups(run, unit="ms"):
        table = pivot(rows)
        for owner in OWNERS if layers.get(group.quantity) == group.layer else ():
            numbers += list(speedup(run, group, table, (owner, TABLE), floor_of(table)))[:1]
    yield from numbers
    for owner in OWNERS:
        for quantity, name in (("setup", "setup"), ("kernel", "kernel"), ("map_bytes", "memory")):
            chosen = [one for one in numbers if (one.method, one.quantity) == (owner, quantity)]
            if len(chosen) == len(SEQUENCE_WORKLOADS):
                key = run.key("average", method=owner, derived=f"{name}_gain", other=TABLE)
                source = joined(*chosen)._replace(dataset="synthetic")
                mean = sum(one.value for one in chosen) / len(chosen)
                yield make_number(key, source, "ratio", mean, note="mean of the mixes' gains")


def averages(run: Run) -> Iterator[Number]:
    """Yield the arithmetic mean of the total gains over the five mixes; nothing where a mix is missing."""
    tables = {group.workload: pivot(rows) for group, rows in groups(run, unit="ms", quantity="total")}
    for method, other in AVERAGES:
        found = [tables[mix] for mix in SEQUENCE_WORKLOADS if {method, other} <= set(tables.get(mix, ()))]
        if len(found) == len(SEQUENCE_WORKLOADS) and all(len(table) > 1 for table in found):
            mean = sum(ratio_of(table, method, other) for table in found) / len(found)
            key = run.key("average", method=method, derived="total_gain", other=other)
            source = run.from_rows(
                "synthetic", where(workload=SEQUENCE_WORKLOADS, quantity="total", method=(method, other))
            )
            yield make_number(key, source, "ratio", mean, note="mean of the mixes' median ratios")


def cases(view: View) -> list[Key]:
    """Return the mixes in which Octopus was timed."""
    return view.cases(SUBJECT, "total", ("host",), order=list(SEQUENCE_WORKLOADS))


def _published(frame: Frame) -> Iterator[Row]:
    yield "RTX 4090, as published: lookup table over block metadata"
    steps = ("elements", "setup_gain", "memory_gain", "kernel_gain", "total_gain")
    for mix, name in {**SEQUENCE_WORKLOADS, "average": "Average"}.items():
        elements, *texts = (frame.text(published("ragged_sequences", mix, step), MISSING) for step in steps)
        yield [name, elements, MISSING, *texts, *[MISSING] * (2 + len(OVER))]


def _averages(view: View) -> Iterator[Row]:
    gained = [(OWNERS[0], TABLE, step) for step in ("setup", "memory", "kernel", "total")]
    gained.append((OWNER, TABLE, "total"))
    texts = [
        view.text(view.key("average", method=method, derived=f"{step}_gain", other=other), MISSING)
        for method, other, step in (*gained, *((SUBJECT, other, "total") for other in OVER))
    ]
    yield ["Average", MISSING, MISSING, *texts[:5], MISSING, *texts[5:]]


_BYTES = {"quantity": "map_bytes", "layer": "deterministic", "derived": "gain", "other": TABLE}
SEQUENCES = Spec(
    study="sequences",
    first="Mix",
    label=lambda view, key: SEQUENCE_WORKLOADS[key.workload],
    cases=cases,
    columns={
        "Elements": cells.fact(method="batch", quantity="elements", layer="deterministic"),
        "Waste": cells.fact(method="padded", quantity="padding_waste", layer="deterministic"),
        "C: setup": cells.speedup_alone(TABLE, method=OWNERS[0], quantity="setup"),
        "C: memory": cells.text(method=OWNERS[0], **_BYTES),
        "C: kernel": cells.speedup_alone(TABLE, method=OWNERS[0], quantity="kernel", layer=KERNEL),
        "C: total": cells.speedup_alone(TABLE, method=OWNERS[0]),
        "C compiled: total": cells.speedup_alone(TABLE, method=OWNER),
        "Octopus": cells.time(),
        **{head: cells.versus(other) for other, head in OVER.items()},
    },
    before=_published,
    after=_averages,
    caption=captions.TABLES["sequences"],
    absent=no_run("sequences"),
    widths=("1.5fr", *("1fr",) * 12),
)
REPORT = StudyReport(numbers=(gains, averages), compares=compares, tables={"sequences": SEQUENCES})
