"""Numbers from the typed published tables."""

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from octopus.errors import InputError
from octopus_study.report.frame import PUBLISHED, Key, Number, Source, joined, make_number, published
from octopus_study.report.selector import where
from octopus_study.units import with_unit

# A key column for what is printed in words or as a list; it is no part of an id.
PRINTED = "printed"
COLUMNS = ("quantity", "value", "low", "high", "unit", "source")


def published_numbers(published_dir: str | Path) -> Iterator[Number]:
    """Yield one number per row of ``data/published/*.csv``; the digits stay as printed."""
    paths = sorted(Path(published_dir).glob("*.csv"))
    if not paths:
        raise InputError(f"No published tables (*.csv) in {published_dir}.")
    for path in paths:
        with open(path, newline="", encoding="utf-8") as stream:
            reader = csv.DictReader(stream)
            columns = tuple(reader.fieldnames or ())
            if columns[-len(COLUMNS) :] != COLUMNS:
                raise InputError(f"{path} must end with the columns {list(COLUMNS)}, found {list(columns)}.")
            names = columns[: -len(COLUMNS)]
            yield from (_number(path, record, names) for record in reader)


def derived(
    sources: Number | Sequence[Number], place: str, unit: str, value: float, note: str, **columns: Any
) -> Number:
    """Return a number that follows from published values, `sources` of one table, alone:
    ``published.derived.<place>.<columns>``, by a machine or table and the columns of a :class:`Key`."""
    source = joined(*([sources] if isinstance(sources, Number) else sources))
    return make_number(Key(PUBLISHED, "derived", place, **columns), source, unit, value, note=note)


def _number(path: Path, record: dict[str, str], names: tuple[str, ...]) -> Number:
    parts = [f"n{record[name]}" if name == "n" else record[name] for name in names if name != PRINTED]
    key = Key(
        PUBLISHED,
        path.stem,
        record.get("workload", ""),
        int(record["n"]) if record.get("n", "").isdigit() else None,
        record.get("method", ""),
        record["quantity"],
    )
    selector = where(**{name: record[name] for name in (*names, "quantity") if name != PRINTED})
    ends = (float(record[name]) if record[name] else math.nan for name in ("value", "low", "high"))
    return make_number(
        key,
        Source("published", "", path.as_posix(), selector),
        record["unit"],
        *ends,
        text=_text(record),
        note=record["source"],
        identifier=published(path.stem, *parts, record["quantity"]),
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
    # A fraction is shown as it is printed, and is no percentage.
    return digits if record["unit"] == "fraction" else with_unit(digits, record["unit"])
