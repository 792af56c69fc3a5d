"""The table of ragged sequences: gains over the lookup table as published, and Octopus against every other way."""

from __future__ import annotations

from collections.abc import Iterator

from octopus_study.report import sequences
from octopus_study.report.captions import kernel_layer, scope_title
from octopus_study.report.labels import SEQUENCE_WORKLOADS
from octopus_study.report.numbers import Numbers
from octopus_study.report.sequences import NO_RUN, STUDY
from octopus_study.report.tables import cells
from octopus_study.report.tables.mapping import speedup_cell
from octopus_study.report.tables.writers import MISSING, Table
from octopus_study.report.text import reason

_OTHERS = {
    "lookup-vectorised": "over A, one call",
    "lookup-published": "over A, as published",
    "padded": "over padding",
    "nested-jagged": "over nested tensors",
}
_GAINS = ("setup_gain", "memory_gain", "kernel_gain", "total_gain")


def table(numbers: Numbers) -> Table:
    """Every mix: published gains, measured gains, and speed-ups of Octopus from setup to result."""
    rows: list[list[str] | str] = ["RTX 4090, as published: lookup table over block metadata"]
    for mix, name in SEQUENCE_WORKLOADS.items():
        texts = [numbers.text(f"published.ragged_sequences.{mix}.{gain}", MISSING) for gain in _GAINS]
        elements = numbers.text(f"published.ragged_sequences.{mix}.elements")
        rows.append([name, elements, MISSING, *texts, MISSING, *(MISSING for _ in _OTHERS)])
    average = numbers.text("published.ragged_sequences.average.total_gain")
    rows.append(["Average", *(MISSING for _ in range(5)), average, MISSING, *(MISSING for _ in _OTHERS)])
    reasons = cells.Reasons()
    for scope in sequences.measured(numbers):
        rows += _section(numbers, scope, reasons)
    caption = (
        "Ragged sequences, each normalised by its own mean and deviation. Gains of block metadata (C) over the lookup "
        "table (A) as published: setup, memory, kernel, total. Then the total time of Octopus and its speed-ups in "
        "total time, with the verdict where it isn't faster. Waste: share of the padded batch that is padding."
        f"{reasons.note}{'' if sequences.measured(numbers) else ' ' + NO_RUN}"
    )
    gains = ("Setup", "Memory", "Kernel", "Total")
    header = [
        "Mix",
        "Elements",
        "Waste",
        *(f"C: {name.lower()}" for name in gains),
        "Octopus",
        *_OTHERS.values(),
    ]
    widths = ("1.5fr", *("1fr" for _ in header[1:]))
    return Table("sequences", caption, header, rows, widths=widths)


def _section(numbers: Numbers, scope: str, reasons: cells.Reasons) -> Iterator[list[str] | str]:
    yield scope_title(numbers, scope, STUDY)
    layer = kernel_layer(numbers, scope)
    table = "lookup-published"
    for mix, start in sequences.prefixes(numbers, scope).items():
        ours = f"{start}.block-metadata"
        yield [
            SEQUENCE_WORKLOADS[mix],
            numbers.text(f"{start}.batch.elements.deterministic", MISSING),
            numbers.text(f"{start}.padded.padding_waste.deterministic", MISSING),
            cells.text_cell(numbers, f"{ours}.setup.host.speedup_over_{table}"),
            cells.text_cell(numbers, f"{ours}.map_bytes.deterministic.gain_over_{table}"),
            cells.text_cell(numbers, f"{ours}.kernel.{layer}.speedup_over_{table}"),
            cells.text_cell(numbers, f"{ours}.total.host.speedup_over_{table}"),
            cells.time_cell(numbers, f"{start}.octopus.total.host", reasons),
            *(_over(numbers, start, other, reasons) for other in _OTHERS),
        ]
    average = numbers.text(f"{scope}.{STUDY}.average.block-metadata.total_gain_over_{table}", MISSING)
    ratios = [
        numbers.text(f"{scope}.{STUDY}.average.octopus.total_gain_over_{other}", MISSING) for other in _OTHERS
    ]
    yield ["Average", *(MISSING for _ in range(5)), average, MISSING, *ratios]


def _over(numbers: Numbers, start: str, other: str, reasons: cells.Reasons) -> str:
    text = speedup_cell(numbers, f"{start}.octopus.total.host.speedup_over_{other}")
    note = numbers.text(f"{start}.{other}.total.host")
    unavailable = text == MISSING and note.startswith("unavailable") and reason(note)
    return f"{MISSING} ({reasons.letter(note)})" if unavailable else text
