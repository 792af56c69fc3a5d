"""Tables of the total cost: times of every method, gains over each lookup table, reuse, and the unfair baselines."""

from __future__ import annotations

import math
from collections.abc import Iterator

from octopus_study.report import total_cost
from octopus_study.report.captions import kernel_layer, scope_name, scope_title
from octopus_study.report.derive.total_cost import CHALLENGERS, GAINS, NEVER, NO_DOWNLOAD, TABLES, UNDECIDED
from octopus_study.report.labels import IMAGE_KERNELS, IMAGE_MIXES, STRATEGIES
from octopus_study.report.numbers import Numbers
from octopus_study.report.tables import oldcells as cells
from octopus_study.report.tables.oldwriters import MISSING, Table
from octopus_study.report.total_cost import NO_RUN, STUDY

_FORMS = {
    "lookup-published": "as published",
    "lookup-vectorised": "one call",
    "lookup-device": "on the device",
}
_GAINS = {
    "setup": "Setup",
    "upload": "Upload",
    "memory": "Memory",
    "kernel": "Kernel",
    "total": "Total",
    "without_download": "Total without download",
}
_PUBLISHED = {
    "setup": "setup_gain",
    "memory": "memory_gain",
    "kernel": "kernel_gain",
    "without_download": "total_gain",
}
# Beyond, a number of uses is too far off for its interval to matter.
_MOST_EXACT = 1000
RTX = "RTX 4090, as published: table over block metadata"


def times(numbers: Numbers) -> Table:
    """Time of one batch from the sizes to the result on the host, method by method."""
    reasons = cells.Reasons()
    rows: list[list[str] | str] = []
    for scope in total_cost.measured(numbers):
        rows.append(scope_title(numbers, scope, STUDY))
        for (mix, kernel), start in total_cost.workloads(numbers, scope).items():
            texts = [_total(numbers, start, method, reasons) for method in total_cost.METHODS]
            rows.append([f"{IMAGE_MIXES[mix]}, {kernel}", *texts])
    caption = (
        "Total cost of one batch of uint8 images, timed end to end: setup, upload, kernel and download of the result "
        f"(on a CPU setup and kernel). Light: blur 3\u00d73; heavy: blur 5\u00d75 and Sobel. Medians, "
        f"{cells.WIDE_NOTE}.{reasons.note}"
    )
    header = ["Images, kernel", *(STRATEGIES[method] for method in total_cost.METHODS)]
    widths = ("1.7fr", *("1.1fr" for _ in total_cost.METHODS))
    return Table("total_cost", caption if rows else f"Total cost. {NO_RUN}", header, rows, widths=widths)


def _total(numbers: Numbers, start: str, method: str, reasons: cells.Reasons) -> str:
    return cells.time_cell(numbers, f"{start}.{method}.total.host", reasons)


def gains(numbers: Numbers) -> Table:
    """Gains of block metadata over each form of the table, mix by mix, beside the published ones."""
    rows: list[list[str] | str] = [RTX]
    for name, quantity in _PUBLISHED.items():
        keys = [f"published.pipeline_images.{mix}.{quantity}" for mix in IMAGE_MIXES]
        rows.append([_GAINS[name], *(numbers.text(key, MISSING) for key in keys)])
    for scope in total_cost.measured(numbers):
        rows.append(f"{scope_title(numbers, scope, STUDY)}: light / heavy kernel")
        for name in _GAINS:
            rows += _gain_rows(numbers, scope, name)
    caption = (
        "Gains of block metadata over the lookup table: time or bytes with the table / with block metadata. The table "
        "is filled image by image (as published), by one call, or by a kernel on the device. Below 1\u00d7, the table "
        "is the better one. The published total per mix leaves out the download; "
        f"with it the published total is {numbers.text('published.pipeline_gain.total.gain')}."
        f"{'' if total_cost.measured(numbers) else ' ' + NO_RUN}"
    )
    header = ["Gain", *IMAGE_MIXES.values()]
    return Table("total_gains", caption, header, rows)


def _gain_rows(numbers: Numbers, scope: str, name: str) -> Iterator[list[str]]:
    part = GAINS[name].format(layer=kernel_layer(numbers, scope))
    found = total_cost.workloads(numbers, scope)
    # Bytes and kernels are those of one table, however it was filled.
    for table in TABLES[:1] if name in ("memory", "kernel") else TABLES:
        texts = []
        for mix in IMAGE_MIXES:
            starts = [found.get((mix, kernel), "") for kernel in IMAGE_KERNELS]
            known = [
                numbers.get(f"{start}.block-metadata{part}{table}") if start else None for start in starts
            ]
            shown = dict.fromkeys(number.text if number else MISSING for number in known)
            texts.append(" / ".join(shown))
        if any(text != MISSING for text in texts):
            form = "" if name in ("memory", "kernel") else f", {_FORMS[table]}"
            yield [f"{_GAINS[name]}{form}", *texts]


def reuse(numbers: Numbers) -> Table:
    """From how many uses of one batch on each table is the cheaper one."""
    columns = [(table, method) for method in CHALLENGERS for table in TABLES]
    rows: list[list[str] | str] = ["RTX 4090, as published"]
    for kernel in IMAGE_KERNELS:
        text = numbers.text(f"published.amortisation.{kernel}.break_even")
        rows.append([f"{IMAGE_KERNELS[kernel].capitalize()}", text, *(MISSING for _ in columns[1:])])
    for scope in total_cost.measured(numbers):
        rows.append(scope_title(numbers, scope, STUDY))
        for (mix, kernel), start in total_cost.workloads(numbers, scope).items():
            texts = [_uses(numbers, f"{start}.{table}.crossover_over_{method}") for table, method in columns]
            rows.append([f"{IMAGE_MIXES[mix]}, {kernel}", *texts])
    caption = (
        "Uses of one batch from which on a lookup table is the cheaper way: setup + upload + uses \u00d7 kernel, with "
        f"the interval that follows from the kernels' paired differences. {NEVER.capitalize()}: its kernel is no "
        f"faster. {UNDECIDED.capitalize()}: the interval of the difference holds zero."
        f"{'' if total_cost.measured(numbers) else ' ' + NO_RUN}"
    )
    names = {"block-metadata": "C", "octopus": "D"}
    header = ["Images, kernel", *(f"{names[method]}: table {_FORMS[table]}" for table, method in columns)]
    widths = ("1.6fr", *("1fr" for _ in columns))
    return Table("amortisation", caption, header, rows, widths=widths)


def _uses(numbers: Numbers, key: str) -> str:
    number = numbers.get(key)
    if number is None:
        return numbers.text(key, MISSING)
    known = math.isfinite(number.low) and number.low != number.high and number.value < _MOST_EXACT
    last = f"{number.high:.0f}" if math.isfinite(number.high) else NEVER
    return f"{number.text} [{number.low:.0f}\u2013{last}]" if known else number.text


_RUNGS = {
    "one-thread-per-image": "One thread per image",
    "grid-stride-linear-search": "Linear search by every thread",
    "grid-stride-lookup-kernel-only": "Lookup table, kernel alone",
    "grid-stride-lookup-with-setup": "Lookup table with its setup",
}


def ladder(numbers: Numbers) -> Table:
    """The ladder of baselines: how much of a gain is the baseline's weakness."""
    scopes = total_cost.measured(numbers)
    rows: list[list[str] | str] = []
    for rung, name in _RUNGS.items():
        published = numbers.text(f"published.baseline_ladder.{rung}.gain")
        rows.append([name, published, *(_rung(numbers, scope, rung) for scope in scopes)])
    caption = (
        "Baselines from unfair to fair, on 500 images with the light kernel: time of the baseline / time of Octopus; "
        "as published, of block metadata. The same method gains a lot or nothing, by what it is compared with. The "
        f"table is the published one.{'' if scopes else ' ' + NO_RUN}"
    )
    header = ["Baseline", "RTX 4090, published", *(scope_name(numbers, scope) for scope in scopes)]
    return Table("ladder", caption, header, rows)


def _rung(numbers: Numbers, scope: str, rung: str) -> str:
    start = f"{total_cost.prefix(numbers, scope, 'flickr-500', 'light')}.octopus"
    keys = {
        "one-thread-per-image": f"{scope}.{STUDY}.ladder.one-thread-per-image",
        "grid-stride-linear-search": f"{scope}.{STUDY}.ladder.linear-search",
        "grid-stride-lookup-kernel-only": (
            f"{start}.kernel.{kernel_layer(numbers, scope)}.speedup_over_lookup-published"
        ),
        "grid-stride-lookup-with-setup": f"{start}.{NO_DOWNLOAD}.host.gain_over_lookup-published",
    }
    return cells.text_cell(numbers, keys[rung])
