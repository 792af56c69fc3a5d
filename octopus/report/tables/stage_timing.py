"""Tables of the stage timing study."""

from __future__ import annotations

from octopus.report.captions import counts, kernel_layer, scope_title
from octopus.report.labels import METHODS, QUANTITIES, SHORT_METHODS, human
from octopus.report.numbers import Numbers
from octopus.report.tables.writers import MISSING, Table
from octopus.report.text import TIMES

STUDY = "stage_timing"
PUBLISHED = "published"
DIFFERENT = "\u2020"
# (quantity, method) in the order of the way of a box.
_STAGES = (
    ("build_metadata", "published"),
    ("build_metadata", "octopus"),
    ("upload_metadata", "published"),
    ("upload_metadata", "octopus"),
    ("crop_resize", "published"),
    ("normalize", "published"),
    ("crop_resize_normalize", "published"),
    ("crop_resize_normalize", "octopus"),
    ("end_to_end", "n-launches"),
    ("end_to_end", "n-launches-fused"),
    ("end_to_end", "published"),
    ("end_to_end", "octopus"),
)
_KERNELS = ("crop_resize", "normalize", "crop_resize_normalize")
_SPEEDUPS = (("octopus", "published"), ("octopus", "n-launches"), ("published", "n-launches"))
_ONE_THREAD = ("opencv", "opencv-inplace")
_N = 1000
_MEMORY = ("memory_payload", "memory_allocator_peak", "memory_device_delta", "memory_fixed")


def stages(numbers: Numbers) -> Table:
    """Every stage at 1000 boxes: the published Jetson values beside each machine."""
    sources = [PUBLISHED, *numbers.scopes(STUDY)]
    rows: list[list[str] | str] = []
    for quantity, method in _STAGES:
        ids = [_stage_id(numbers, scope, _N, method, quantity) for scope in sources]
        rows += _row(numbers, human(QUANTITIES, quantity), human(SHORT_METHODS, method), ids)
    rows += _speedup_rows(numbers, sources, [_N])
    for other in _ONE_THREAD:
        ids = [
            f"{scope}.{STUDY}.visdrone-1thread.n{_N}.octopus.end_to_end.host.speedup_over_{other}"
            for scope in sources
        ]
        rows += _row(numbers, "Speed-up, one thread", f"Octopus over {human(SHORT_METHODS, other)}", ids)
    caption = (
        "Stages at n = 1000, published beside measured: medians over paired blocks; speed-ups, end to end, "
        "are medians of per-block ratios. Kernels are timed by device events with a cold L2 cache on GPUs, "
        f"everything else by the host clock. {DIFFERENT}: the answer differs from the reference; the published "
        "kernels round to uint8 between their two passes."
    )
    titles = [scope_title(numbers, scope, STUDY) for scope in sources[1:]]
    header = ["Stage", "Method", "Jetson Orin Nano, as published", *titles]
    widths = ("auto", "auto", *("1fr" for _ in sources))
    return Table("stage_timing", caption, header, rows, text_columns=(0, 1), widths=widths)


def scaling(numbers: Numbers) -> Table:
    """End to end and speed-ups at every count, machine by machine."""
    sources = [PUBLISHED, *numbers.scopes(STUDY)]
    shown = sorted({n for scope in sources[1:] for n in counts(numbers, scope)})
    rows: list[list[str] | str] = []
    for scope in sources:
        title = "Jetson Orin Nano, as published" if scope == PUBLISHED else scope_title(numbers, scope, STUDY)
        rows.append(title)
        for quantity, method in _STAGES[-4:]:
            ids = [_stage_id(numbers, scope, n, method, quantity) for n in shown]
            rows += _row(numbers, "Time", human(SHORT_METHODS, method), ids)
        rows += _speedup_rows(numbers, [scope], shown)
    caption = (
        "End to end at every number of boxes n: medians, and medians of per-block ratios. "
        f"{DIFFERENT}: the answer differs from the reference."
    )
    header = ["", "Method", *(f"n = {n}" for n in shown)]
    return Table("scaling", caption, header, rows, text_columns=(0, 1))


def _stage_id(numbers: Numbers, scope: str, n: int, method: str, quantity: str) -> str:
    if scope == PUBLISHED:
        return f"published.stage_timing.n{n}.{method}.{quantity}"
    layer = kernel_layer(numbers, scope) if quantity in _KERNELS else "host"
    return f"{scope}.{STUDY}.visdrone.n{n}.{method}.{quantity}.{layer}"


def _speedup_rows(numbers: Numbers, scopes: list[str], shown: list[int]) -> list[list[str]]:
    rows = []
    for method, other in _SPEEDUPS:
        ids = [
            f"published.stage_timing.n{n}.{method}.speedup_over_{other}"
            if scope == PUBLISHED
            else f"{scope}.{STUDY}.visdrone.n{n}.{method}.end_to_end.host.speedup_over_{other}"
            for scope in scopes
            for n in shown
        ]
        name = f"{human(SHORT_METHODS, method)} over {human(SHORT_METHODS, other)}"
        rows += _row(numbers, "Speed-up", name, ids)
    return rows


def _row(numbers: Numbers, first: str, second: str, ids: list[str]) -> list[list[str]]:
    """Return one row of texts, none when no cell has anything to say; a method that can't run says so."""
    cells = []
    for key in ids:
        text = numbers.text(key, MISSING)
        cells.append("unavailable" if text.startswith("unavailable") else text)
    if all(cell == MISSING for cell in cells):
        return []
    differs = any(key in numbers and numbers[key].note.startswith("different") for key in ids)
    return [[first, f"{second} {DIFFERENT}" if differs else second, *cells]]


def limits(numbers: Numbers) -> Table:
    """Measured bandwidth, and the time of the kernel as a multiple of the time to write its output."""
    rows: list[list[str] | str] = []
    scopes = numbers.scopes(STUDY)
    shown = sorted({n for scope in scopes for n in counts(numbers, scope, "crop_resize_normalize")})
    for scope in scopes:
        layer = kernel_layer(numbers, scope)
        bandwidth = [
            _text(numbers, f"{scope}.{STUDY}.bandwidth.{kind}") for kind in ("write", "read", "copy")
        ]
        key = f"{scope}.{STUDY}.visdrone.n{{}}.octopus.crop_resize_normalize.{layer}.times_write-bound"
        times = [_text(numbers, key.format(n)) for n in shown]
        rows.append([scope_title(numbers, scope, STUDY), *bandwidth, *times])
    header = ["Machine", "Write", "Read", "Copy", *(f"n = {n}" for n in shown)]
    caption = (
        "Measured bandwidth limits, and the time of the Octopus kernel as a multiple of the time "
        f"that filling its output takes (1{TIMES} is the write-only bound)."
    )
    return Table("limits", caption, header, rows)


def memory(numbers: Numbers) -> Table:
    """The four lines of memory at 1000 boxes."""
    methods = ("octopus", "published", "n-launches")
    rows: list[list[str] | str] = []
    for scope in numbers.scopes(STUDY):
        rows.append(scope_title(numbers, scope, STUDY))
        for line in _MEMORY:
            pattern = rf"{scope}\.{STUDY}\.visdrone\.n\d+\.{{}}\.{line}\.memory"
            found = [numbers.matching(pattern.format(method)) for method in methods]
            cells = [match[0][1].text.partition(":")[0] if match else MISSING for match in found]
            rows.append([human(QUANTITIES, line), *cells])
    caption = (
        "Memory at n = 1000, four lines that mean different things: bytes computed from shapes; peak "
        "of the allocator; growth of used memory in a fresh process; context and modules."
    )
    header = ["Line", *(human(SHORT_METHODS, method) for method in methods)]
    return Table("memory", caption, header, rows)


def launch_overhead(numbers: Numbers) -> Table:
    """Cost of a launch by slope, and the share of the saving that it explains."""
    rows: list[list[str] | str] = []
    for scope in numbers.scopes(STUDY):
        found = numbers.matching(rf"{scope}\.{STUDY}\.launch-overhead\.([\w-]+)\.slope")
        if found:
            rows.append(scope_title(numbers, scope, STUDY))
        for match, slope in found:
            prefix = f"{scope}.{STUDY}.launch-overhead.{match[1]}"
            share = f"{scope}.{STUDY}.visdrone.n1000.saving.total_explained_by_{match[1]}"
            cells = [slope.text, slope.interval, _text(numbers, f"{prefix}.residual"), _text(numbers, share)]
            rows.append([human(METHODS, match[1]), *cells])
    isolated = _text(numbers, "published.stage_timing.n1000.n-launches.isolated_launch")
    caption = (
        "Cost of one launch: slope of the time of 1 to 256 empty launches, its 95 % interval, the "
        "distance of the medians from the line, and the share of the saving from N launches to "
        f"Octopus (n = 1000) that slope times launches explains. The published figure, {isolated} for "
        "one isolated launch, contains the run time of the kernel."
    )
    header = ["Launch", "Slope", "95 %", "Residual", "Share of saving"]
    return Table("launch_overhead", caption, header, rows)


def _text(numbers: Numbers, identifier: str) -> str:
    number = numbers.get(identifier)
    return number.text if number else MISSING
