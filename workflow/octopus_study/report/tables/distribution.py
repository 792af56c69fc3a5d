"""Tables of the distribution study."""

from __future__ import annotations

from octopus_study.report.captions import bound_text, generated_boxes, kernel_layer, scope_title, workloads
from octopus_study.report.labels import WORKLOADS, human
from octopus_study.report.numbers import Number, Numbers
from octopus_study.report.tables import oldcells as cells
from octopus_study.report.tables.oldwriters import MISSING, Table
from octopus_study.report.text import with_unit

STUDY = "distribution"
_PADDING = (("actual_bytes", "MiB"), ("padded_bytes", "MiB"), ("padding_waste", "percent"))
_SCALE = {"bytes": 2.0**-20, "fraction": 100.0}


def padding_waste(numbers: Numbers) -> Table:
    """Published beside computed padding waste, with the verdict whether they print the same."""
    scopes = numbers.scopes(STUDY)
    rows: list[list[str] | str] = []
    if scopes:
        found = workloads(numbers, scopes[0])
        rows += [_padding_row(numbers, prefix, workload) for workload, prefix in found.items()]
    caption = (
        "Bytes of all boxes (1000, as published) as uint8 with three channels, stored as they are / padded to the "
        "largest, and the share that padding wastes. Identical: every published digit agrees. "
        f"{numbers.text(f'shown.{STUDY}')}."
    )
    header = ["Sizes", "Computed", "Published", "Verdict"]
    return Table("padding_waste", caption, header, rows, text_columns=(0, 3))


def _padding_row(numbers: Numbers, prefix: str, workload: str) -> list[str]:
    computed = {quantity: numbers[f"{prefix}.padding.{quantity}.deterministic"] for quantity, _ in _PADDING}
    printed = {
        quantity: with_unit(str(round(number.value * _SCALE[number.unit])), unit)
        for (quantity, unit), number in zip(_PADDING, computed.values(), strict=True)
    }
    ids = _published_ids(workload, prefix.rpartition(".")[2])
    published = {quantity: numbers.text(key) for quantity, key in ids.items() if key in numbers}
    number = computed["padding_waste"]
    return [
        workload_name(workload, number),
        _in_one_cell(printed),
        _in_one_cell(published),
        _verdict(printed, published, number),
    ]


def _in_one_cell(texts: dict[str, str]) -> str:
    """Return actual and padded bytes, with one unit, and the waste; or what there is of them."""
    if len(texts) < len(_PADDING):
        return ", ".join(texts.values()) or MISSING
    actual, padded, waste = texts.values()
    return f"{actual.partition(' ')[0]} / {padded}, {waste}"


def _published_ids(workload: str, count: str) -> dict[str, str]:
    """Return where the published values are; a run with another count finds none."""
    if workload == "visdrone" and count == "n1000":
        return {"padding_waste": "published.device_independent_facts.visdrone-sample.padding_waste"}
    return {quantity: f"published.padding_waste.{workload}.{count}.{quantity}" for quantity, _ in _PADDING}


def _verdict(printed: dict[str, str], published: dict[str, str], number: Number) -> str:
    if not published:
        return "not published"
    if number.dataset.startswith("synthetic-"):
        return "not comparable"
    return "identical" if all(printed[key] == text for key, text in published.items()) else "differs"


def workload_name(workload: str, number: Number) -> str:
    """Return the name of a distribution, marked where its boxes are generated."""
    name = human(WORKLOADS, workload)
    return f"{name} (synthetic)" if number.synthetic else name


def speed(numbers: Numbers) -> Table:
    """Time of 1000 crops for each distribution of sizes."""
    rows: list[list[str] | str] = []
    for scope in numbers.scopes(STUDY):
        rows.append(scope_title(numbers, scope, STUDY))
        layer = kernel_layer(numbers, scope)
        found = workloads(numbers, scope)
        rows += [row for name, prefix in found.items() if (row := _speed_row(numbers, prefix, name, layer))]
    caption = (
        "Speed by size distribution, n = 1000: time of the kernels (crop, resize, normalise), speed-up over the "
        "published ones, kernel time / bound time with the share of the write bound, and end to end. "
        f"{cells.RATIO_NOTE}; {cells.WIDE_NOTE}. {cells.DIFFERENT_NOTE}. (synthetic): {generated_boxes(numbers)}."
    )
    header = ["Sizes", "Octopus", f"Published {cells.DIFFERENT}", "Speed-up", "Time / bound", "End to end"]
    return Table("distribution_speed", caption, header, rows)


def _speed_row(numbers: Numbers, prefix: str, workload: str, layer: str) -> list[str]:
    kernel = f"{prefix}.octopus.crop_resize_normalize.{layer}"
    first = numbers.get(kernel)
    if first is None:
        return []
    return [
        workload_name(workload, first),
        cells.time_cell(numbers, kernel),
        cells.time_cell(numbers, f"{prefix}.published.crop_resize_normalize.{layer}"),
        cells.ratio_cell(numbers, f"{kernel}.speedup_over_published"),
        bound_text(numbers, kernel) or MISSING,
        cells.time_cell(numbers, f"{prefix}.octopus.end_to_end.host"),
    ]
