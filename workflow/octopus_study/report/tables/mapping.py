"""Tables of the mapping strategies: kernels, maps, the tuner, and the project's own targets."""

from __future__ import annotations

from collections.abc import Iterator

from octopus_study.report import mapping
from octopus_study.report.captions import scope_name, scope_title
from octopus_study.report.derive.mapping import BUILD_ITEMS, BUILD_MS, COPY_SHARE, REGRET, SLOWER_BY
from octopus_study.report.labels import DISTRIBUTIONS, STRATEGIES, human
from octopus_study.report.mapping import NO_RUN, STUDY
from octopus_study.report.numbers import Numbers
from octopus_study.report.tables import oldcells as cells
from octopus_study.report.tables.oldwriters import MISSING, Table
from octopus_study.report.text import quantity_text, significant, with_unit

OPERATION = "multiply"
# The distribution whose maps are shown: that of real data.
SHOWN = "visdrone"
_COLUMNS = {
    "lookup": "over A",
    "thread-search-scalar": "over B, one element",
    "thread-search": "over B",
    "block-metadata": "over C",
    "block-metadata-tuned": "over C, tuned",
}
_PUBLISHED = "published.block_metadata_gain"
_TUNER = "published.auto_tuner"


def kernels(numbers: Numbers) -> Table:
    """Kernel times of Octopus and its speed-ups over the other strategies, by distribution and number of items."""
    reasons = cells.Reasons()
    rows: list[list[str] | str] = []
    for scope in numbers.scopes(STUDY):
        rows += _kernel_section(numbers, scope, reasons)
    caption = (
        "Who owns which element: kernels that multiply float32 elements by their item's gain. Time of Octopus (block "
        "search), its share of the copy bound, and its speed-ups over A (lookup table), B (search by every thread) and "
        "C (block metadata), with the verdict where it isn't faster; C over B as published, one element per thread in "
        f"B. Medians, {cells.WIDE_NOTE}; floor: difference of Octopus to itself.{reasons.note}"
    )
    header = ["Items", "Elements", "Octopus", "Of copy", *_COLUMNS.values(), "C over B, one element", "Floor"]
    widths = ("1.6fr", "1.1fr", "1.2fr", *("1fr" for _ in header[3:]))
    return Table("mapping", caption if rows else f"Mapping strategies. {NO_RUN}", header, rows, widths=widths)


def _kernel_section(numbers: Numbers, scope: str, reasons: cells.Reasons) -> Iterator[list[str] | str]:
    lines = []
    for distribution in DISTRIBUTIONS:
        for n in mapping.map_counts(numbers, scope, distribution):
            lines.append(_kernel_row(numbers, scope, distribution, n, reasons))
    if lines:
        yield scope_title(numbers, scope, STUDY)
        yield from lines


def _kernel_row(numbers: Numbers, scope: str, distribution: str, n: int, reasons: cells.Reasons) -> list[str]:
    where = (distribution, OPERATION, n)
    key = mapping.key(numbers, scope, *where)
    elements = numbers.get(mapping.map_key(scope, distribution, n, "batch", "elements", "deterministic"))
    published = mapping.key(numbers, scope, *where, "block-metadata")
    floor = numbers.get(f"{key}.noise_floor")
    return [
        f"{human(DISTRIBUTIONS, distribution)}, {quantity_text(n, 'count')}",
        f"{significant(elements.value / 1e6)} M" if elements else MISSING,
        cells.time_cell(numbers, key, reasons),
        cells.text_cell(numbers, f"{key}.share_of_copy-bound"),
        *(speedup_cell(numbers, f"{key}.speedup_over_{other}") for other in _COLUMNS),
        speedup_cell(numbers, f"{published}.speedup_over_thread-search-scalar"),
        with_unit(significant(100 * floor.value, 2), "percent") if floor else MISSING,
    ]


def speedup_cell(numbers: Numbers, key: str) -> str:
    """Return a speed-up, with the verdict where it isn't ``faster``; a verdict of ``ambiguous`` for want of a noise
    floor is left out."""
    number = numbers.get(key)
    if number is None:
        return MISSING
    verdict = numbers.text(key.replace(".speedup_over_", ".verdict_over_"))
    return number.text if verdict in ("faster", "") else f"{number.text}, {verdict}"


def maps(numbers: Numbers) -> Table:
    """What building, uploading and holding each map takes, at the most items of each distribution."""
    reasons = cells.Reasons()
    rows: list[list[str] | str] = []
    for scope in numbers.scopes(STUDY):
        built = [name for name in DISTRIBUTIONS if mapping.map_counts(numbers, scope, name)]
        shown = SHOWN if SHOWN in built else built[-1] if built else ""
        rows += _map_section(numbers, scope, shown, reasons)
    caption = (
        "Maps of each strategy, at the most items: time to build on the host (of the table built "
        "on the device: that of its kernel), time to upload, bytes. A search by every thread and Octopus need the "
        f"offsets alone, which a ragged batch has anyway.{reasons.note}"
    )
    header = ["Strategy", "Build", "Upload", "Bytes", "Blocks"]
    return Table("mapping_maps", caption if rows else f"Maps. {NO_RUN}", header, rows)


def _map_section(
    numbers: Numbers, scope: str, distribution: str, reasons: cells.Reasons
) -> Iterator[list[str] | str]:
    counts = mapping.map_counts(numbers, scope, distribution)
    if not counts:
        return
    n = counts[-1]
    items = f"{quantity_text(n, 'count')} items"
    yield f"{scope_title(numbers, scope, STUDY)}: {human(DISTRIBUTIONS, distribution)}, {items}"
    for method in mapping.MAPS:
        keys = [mapping.map_key(scope, distribution, n, method, name) for name in ("setup", "upload")]
        texts = [cells.time_cell(numbers, key, reasons) for key in keys]
        size = mapping.map_key(scope, distribution, n, method, "map_bytes", "deterministic")
        blocks = mapping.map_key(scope, distribution, n, method, "blocks", "deterministic")
        line = [*texts, numbers.text(size, MISSING), numbers.text(blocks, MISSING)]
        if any(text != MISSING for text in line):
            yield [human(STRATEGIES, method), *line]


def tuner(numbers: Numbers) -> Table:
    """What the tuner takes and what its choice costs, beside the published tuner."""
    scopes = numbers.scopes(STUDY)
    rows: list[list[str] | str] = [
        _row(numbers, "Longest probe", numbers.text(f"{_TUNER}.all.tuner.probe_time"), "tuner.probe"),
        _row(numbers, "Choice against the best, worst", MISSING, "tuner.regret"),
    ]
    for operation, name in (("multiply", "multiply"), ("blur", "blur3x3")):
        published = numbers.text(f"{_TUNER}.{operation}.block-metadata.speedup_over_thread_search")
        texts = [_most_items(numbers, scope, name) for scope in scopes]
        rows.append([f"C over B, {operation}, VisDrone, most items", published, *texts])
    caption = (
        "The tuner: its longest probe, and time of its choice / least time - 1 over all comparisons of the same run, "
        "for a batch that is used once (kernel, and setup and upload of the map). "
        "C over B: block metadata over a search by every thread with one element each."
    )
    header = ["", "Jetson Orin Nano, published", *(scope_name(numbers, scope) for scope in scopes)]
    return Table("tuner", caption if scopes else f"{caption} {NO_RUN}", header, rows)


def _row(numbers: Numbers, name: str, published: str, key: str) -> list[str]:
    texts = [numbers.text(f"{scope}.{STUDY}.{key}", MISSING) for scope in numbers.scopes(STUDY)]
    return [name, published, *texts]


def _most_items(numbers: Numbers, scope: str, operation: str) -> str:
    counts = mapping.counts(numbers, scope, "visdrone", operation)
    if not counts:
        return MISSING
    key = mapping.key(numbers, scope, "visdrone", operation, counts[-1], "block-metadata")
    return speedup_cell(numbers, f"{key}.speedup_over_thread-search-scalar")


def targets(numbers: Numbers) -> Table:
    """The project's own targets, each with its outcome by rule."""
    scopes = numbers.scopes(STUDY)
    names = {
        "not_slower": (
            "Octopus against a search by every thread",
            f"time at most {1 + SLOWER_BY:g}\u00d7, beyond noise",
        ),
        "copy_share": (
            "Pointwise operations on large items",
            f"at least {COPY_SHARE:.0%} of the copy bound".replace("%", " %"),
        ),
        "build": (
            f"Block metadata of {quantity_text(BUILD_ITEMS, 'count')} items",
            f"built within {BUILD_MS:g} ms",
        ),
        "regret": ("The tuner's choice", f"at most {100 * REGRET:g} % slower than the best"),
    }
    rows: list[list[str] | str] = [
        [what, rule, *(numbers.text(f"{scope}.{STUDY}.target.{name}", MISSING) for scope in scopes)]
        for name, (what, rule) in names.items()
    ]
    caption = (
        "This project's own targets for the mapping strategies, and what became of them. A limit "
        f"counts as missed where the whole interval lies beyond it.{'' if scopes else ' ' + NO_RUN}"
    )
    header = ["What", "Target", *(scope_name(numbers, scope) for scope in scopes)]
    columns = tuple(range(len(header)))
    widths = ("1.2fr", "1.1fr", *("1.6fr" for _ in scopes))
    return Table("mapping_targets", caption, header, rows, text_columns=columns, widths=widths)
