"""Tables of the stage timing study."""

from __future__ import annotations

from collections.abc import Iterator

from octopus_study.report.captions import bound_text, counts, kernel_layer, scope_title, within_cache
from octopus_study.report.derive.stage_timing import SAVINGS
from octopus_study.report.labels import METHODS, QUANTITIES, SAVING_STEPS, SHORT_METHODS, human
from octopus_study.report.numbers import Numbers
from octopus_study.report.tables import oldcells as cells
from octopus_study.report.tables.oldwriters import MISSING, Table
from octopus_study.report.text import TIMES

STUDY = "stage_timing"
PUBLISHED = "published"
JETSON = "Jetson Orin Nano, as published"
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
_ONE_THREAD = ("opencv", "opencv-inplace", "octopus")
_KERNELS = ("crop_resize", "normalize", "crop_resize_normalize")
# (workload, method, other) in the order of the table.
_SPEEDUPS = (
    ("visdrone", "octopus", "published"),
    ("visdrone", "octopus", "n-launches"),
    ("visdrone", "octopus", "n-launches-fused"),
    ("visdrone", "published", "n-launches"),
    ("visdrone-1thread", "octopus", "opencv"),
    ("visdrone-1thread", "octopus", "opencv-inplace"),
)
_N = 1000
_MEMORY = ("memory_payload", "memory_allocator_peak", "memory_device_delta", "memory_fixed")


def stages(numbers: Numbers) -> Table:
    """Every stage at 1000 boxes: the published Jetson values beside each machine."""
    sources = [PUBLISHED, *numbers.scopes(STUDY)]
    reasons = cells.Reasons()
    rows: list[list[str] | str] = []
    for quantity, method in _STAGES:
        ids = [_stage_id(numbers, scope, method, quantity) for scope in sources]
        rows += _row(numbers, human(QUANTITIES, quantity), human(SHORT_METHODS, method), ids, reasons)
    for method in _ONE_THREAD:
        ids = [f"{scope}.{STUDY}.visdrone-1thread.n{_N}.{method}.end_to_end.host" for scope in sources]
        rows += _row(numbers, "End to end, one thread", human(SHORT_METHODS, method), ids, reasons)
    caption = (
        f"Stages at n = {_N}, published beside measured: medians over blocks; {cells.WIDE_NOTE}. Kernels are "
        "timed by device events with a cold L2 cache on GPUs, everything else by the host clock. "
        f"{cells.DIFFERENT_NOTE}; the published kernels round to uint8 between their two passes. "
        f"{cells.LAUNCH_BOUND_NOTE}.{reasons.note}"
    )
    header = ["Stage", "Method", JETSON, *(scope_title(numbers, scope, STUDY) for scope in sources[1:])]
    widths = ("auto", "auto", *("1fr" for _ in sources))
    return Table("stage_timing", caption, header, rows, text_columns=(0, 1), widths=widths)


def _stage_id(numbers: Numbers, scope: str, method: str, quantity: str) -> str:
    if scope == PUBLISHED:
        return f"published.stage_timing.n{_N}.{method}.{quantity}"
    layer = kernel_layer(numbers, scope) if quantity in _KERNELS else "host"
    return f"{scope}.{STUDY}.visdrone.n{_N}.{method}.{quantity}.{layer}"


def _row(
    numbers: Numbers, first: str, second: str, ids: list[str], reasons: cells.Reasons
) -> list[list[str]]:
    """Return one row of times, none when no cell has anything to say; a method that can't run says so."""
    shown = [cells.time_cell(numbers, key, reasons) for key in ids]
    if all(cell == MISSING for cell in shown):
        return []
    differs = any(key in numbers and numbers[key].note.startswith("different") for key in ids)
    return [[first, f"{second} {cells.DIFFERENT}" if differs else second, *shown]]


def speedups(numbers: Numbers) -> Table:
    """Ratios end to end at every count, machine by machine, each with its verdict and noise floor."""
    scopes = numbers.scopes(STUDY)
    shown = sorted({n for scope in scopes for n in counts(numbers, scope)})
    rows: list[list[str] | str] = []
    for scope in (PUBLISHED, *scopes):
        rows.append(JETSON if scope == PUBLISHED else scope_title(numbers, scope, STUDY))
        rows += _speedup_rows(numbers, scope, shown)
    caption = (
        "Speed-ups end to end at every number of boxes n: medians of per-block ratios. "
        f"{cells.RATIO_NOTE}; {cells.DIFFERENT}: one of the two answers differs from the reference."
    )
    header = ["Speed-up", *(f"n = {n}" for n in shown)]
    return Table("speedups", caption, header, rows)


def _speedup_rows(numbers: Numbers, scope: str, shown: list[int]) -> Iterator[list[str]]:
    for workload, method, other in _SPEEDUPS:
        ids = [
            f"published.stage_timing.n{n}.{method}.speedup_over_{other}"
            if scope == PUBLISHED
            else f"{scope}.{STUDY}.{workload}.n{n}.{method}.end_to_end.host.speedup_over_{other}"
            for n in shown
        ]
        texts = [cells.ratio_cell(numbers, key) for key in ids]
        if any(text != MISSING for text in texts):
            name = f"{human(SHORT_METHODS, method)} over {human(SHORT_METHODS, other)}"
            if workload == "visdrone-1thread":
                name = f"1 thread: over {human(SHORT_METHODS, other)}"
            differs = scope != PUBLISHED and "published" in (method, other)
            mark = f" {cells.DIFFERENT}" if differs or other == "n-launches" else ""
            yield [f"{name}{mark}", *texts]


def limits(numbers: Numbers) -> Table:
    """Measured bandwidth, and the time of the kernel as a multiple of the time to write its output."""
    scopes = numbers.scopes(STUDY)
    shown = sorted({n for scope in scopes for n in counts(numbers, scope, "crop_resize_normalize")})
    rows: list[list[str] | str] = []
    for scope in scopes:
        kernel = (
            f"{scope}.{STUDY}.visdrone.n{{}}.octopus.crop_resize_normalize.{kernel_layer(numbers, scope)}"
        )
        bandwidth = [
            cells.text_cell(numbers, f"{scope}.{STUDY}.bandwidth.{kind}")
            for kind in ("write", "read", "copy")
        ]
        times = [_bound_cell(numbers, kernel.format(n)) for n in shown]
        rows.append([scope_title(numbers, scope, STUDY), *bandwidth, *times])
    header = ["Machine", "Write", "Read", "Copy", *(f"n = {n}" for n in shown)]
    caption = (
        "Measured bandwidth limits, and kernel time / bound time of Octopus: a multiple of the time that filling "
        f"the output takes (1{TIMES} is the write bound), in brackets the share of the bound that it reaches. "
        f"{cells.WITHIN_CACHE_NOTE}."
    )
    return Table("limits", caption, header, rows)


def _bound_cell(numbers: Numbers, key: str) -> str:
    text = bound_text(numbers, key) or MISSING
    return f"{text} {cells.WITHIN_CACHE}" if text != MISSING and within_cache(numbers, key) else text


def memory(numbers: Numbers) -> Table:
    """The four lines of memory at 1000 boxes."""
    methods = ("octopus", "published", "n-launches")
    reasons = cells.Reasons()
    rows: list[list[str] | str] = []
    for scope in numbers.scopes(STUDY):
        rows.append(scope_title(numbers, scope, STUDY))
        for line in _MEMORY:
            pattern = rf"{scope}\.{STUDY}\.visdrone\.n\d+\.{{}}\.{line}\.memory"
            found = [numbers.matching(pattern.format(method)) for method in methods]
            texts = [_memory_cell(match[0][1].text, reasons) if match else MISSING for match in found]
            rows.append([human(QUANTITIES, line), *texts])
    caption = (
        "Memory, four lines that mean different things: bytes computed from shapes; peak of the allocator; growth "
        "of used memory in a fresh process; imports, modules and context. On a CPU the frame exists before the "
        f"growth is counted, so it is smaller than the payload by the frame.{reasons.note}"
    )
    header = ["Line", *(human(SHORT_METHODS, method) for method in methods)]
    return Table("memory", caption, header, rows)


def _memory_cell(text: str, reasons: cells.Reasons) -> str:
    return reasons.cell(text) if text.startswith("unavailable") else text


def launch_overhead(numbers: Numbers) -> Table:
    """Cost of a launch by slope, and the share that it explains of the saving that saves just such launches."""
    rows: list[list[str] | str] = []
    for scope in numbers.scopes(STUDY):
        found = list(_launch_rows(numbers, scope))
        rows += [scope_title(numbers, scope, STUDY), *found] if found else []
    caption = (
        f"What launches explain at n = {_N}. Slope: cost of one launch, from series of 1 to 256 empty kernels with "
        "the argument lists of the real ones, by the line of Theil and Sen. "
        "Expected: slope times launches saved. Share: expected / measured "
        "saving, with the ends that both intervals allow."
    )
    header = ["From … to", "Launch", "Slope", "Saved", "Expected", "Measured", "Share"]
    return Table("launch_overhead", caption, header, rows, text_columns=(0, 1))


def _launch_rows(numbers: Numbers, scope: str) -> Iterator[list[str]]:
    for saving in SAVINGS:
        key = f"{scope}.{STUDY}.visdrone.n{_N}.saving.{saving.name}"
        launcher = numbers.text(f"{key}.launcher")
        if not launcher:
            continue
        slope = numbers[f"{scope}.{STUDY}.launch-overhead.{launcher}.slope"]
        share = numbers.get(f"{key}.explained")
        yield [
            human(SAVING_STEPS, saving.name),
            human(METHODS, launcher),
            cells.with_interval(slope),
            cells.text_cell(numbers, f"{key}.launches_saved"),
            cells.text_cell(numbers, f"{key}.expected"),
            cells.text_cell(numbers, key),
            cells.with_interval(share) if share else MISSING,
        ]
