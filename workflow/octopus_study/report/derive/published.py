"""Numbers from the typed published tables."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from octopus.errors import InputError
from octopus_study.report.derive.edge_published import published_edge_numbers
from octopus_study.report.derive.power_published import published_power_numbers
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.text import with_unit

# One crop as the paper defines it: 3 channels of 224 x 224 pixels in float32.
OUTPUT_BYTES = 3 * 224 * 224 * 4
# A key column for what is printed in words or as a list; it is no part of an id.
PRINTED = "printed"
COLUMNS = ("quantity", "value", "low", "high", "unit", "source")


def published_numbers(published_dir: str | Path) -> Iterator[Number]:
    """Yield one number per row of ``data/published/*.csv``; the digits stay as printed.

    Raises
    ------
    InputError
        The folder holds no table, or a table lacks a column.
    """
    paths = sorted(Path(published_dir).glob("*.csv"))
    if not paths:
        raise InputError(f"No published tables (*.csv) in {published_dir}.")
    for path in paths:
        with open(path, newline="", encoding="utf-8") as stream:
            reader = csv.DictReader(stream)
            columns = tuple(reader.fieldnames or ())
            if columns[-len(COLUMNS) :] != COLUMNS:
                raise InputError(f"{path} must end with the columns {list(COLUMNS)}, found {list(columns)}.")
            keys = columns[: -len(COLUMNS)]
            yield from (_number(path, record, keys) for record in reader)


def derived_numbers(numbers: Iterable[Number]) -> Iterator[Number]:
    """Yield what follows from published values alone: the published kernels as a multiple of the write-only
    bound, and the ratios of the power tables.

    The bound is the output (float32, three channels) over the memory bandwidth stated for the Jetson.
    """
    known = {number.id: number for number in numbers}
    yield from published_power_numbers(known.values())
    yield from published_edge_numbers(known)
    bandwidth = known.get("published.machines.jetson-orin-nano.memory_bandwidth")
    for identifier, crop in known.items():
        match = re.fullmatch(r"published\.stage_timing\.n(\d+)\.published\.crop_resize", identifier)
        if not match or bandwidth is None:
            continue
        normalize = known[f"{identifier.rpartition('.')[0]}.normalize"]
        bound = int(match[1]) * OUTPUT_BYTES / (bandwidth.value * 1e6)
        for name, unit, value in (
            ("write_bound", "ms", bound),
            ("times_write_bound", "ratio", (crop.value + normalize.value) / bound),
            ("share_of_write_bound", "fraction", bound / (crop.value + normalize.value)),
        ):
            key = f"published.derived.jetson-orin-nano.n{match[1]}.{name}"
            note = f"{OUTPUT_BYTES} bytes per crop at {bandwidth.text}"
            yield make_number(
                key, ("published", "jetson-orin-nano", "", crop.source), crop.selector, unit, value, note=note
            )


def _number(path: Path, record: dict[str, str], keys: tuple[str, ...]) -> Number:
    parts = [f"n{record[key]}" if key == "n" else record[key] for key in keys if key != PRINTED]
    identifier = ".".join(["published", path.stem, *parts, record["quantity"]])
    value, low, high = (float(record[key]) if record[key] else math.nan for key in ("value", "low", "high"))
    origin = ("published", record.get("machine", ""), "", path.as_posix())
    selector = ", ".join(f"{key}={record[key]}" for key in (*keys, "quantity"))
    return make_number(
        identifier,
        origin,
        selector,
        record["unit"],
        value,
        low,
        high,
        text=_text(record),
        note=record["source"],
    )


def _text(record: dict[str, str]) -> str:
    """Show what is printed: words or a list, a value, a range, or a one-sided limit."""
    low, high = record["low"], record["high"]
    if printed := record.get(PRINTED):
        # Words name their unit themselves.
        return with_unit(printed, record["unit"]) if printed[-1].isdigit() else printed
    if record["value"]:
        digits = record["value"]
    elif low and high:
        digits = f"{low}\u2013{high}"
    else:
        digits = f"≤ {high}" if high else f"≥ {low}"
    return with_unit(digits, record["unit"])
