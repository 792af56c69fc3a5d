"""Tables of the stage timing study."""

from __future__ import annotations

from octopus.report.captions import counts, kernel_layer, scope_title
from octopus.report.labels import METHODS, QUANTITIES, SHORT_METHODS, human
from octopus.report.numbers import Numbers
from octopus.report.tables.writers import MISSING, Table
from octopus.report.text import TIMES

STUDY = "stage_timing"
# (quantity, method) in the order of the way of a box; the layer of the middle ones is the machine's kernel
# layer.
_STAGES = (
    ("build_metadata", "published"),
    ("build_metadata", "octopus"),
    ("upload_metadata", "published"),
    ("upload_metadata", "octopus"),
    ("crop_resize", "published"),
    ("normalize", "published"),
    ("crop_resize_normalize", "octopus"),
    ("end_to_end", "n-launches"),
    ("end_to_end", "n-launches-fused"),
    ("end_to_end", "published"),
    ("end_to_end", "octopus"),
)
_KERNELS = ("crop_resize", "normalize", "crop_resize_normalize")
_SPEEDUPS = (
    ("octopus", "published"),
    ("octopus", "n-launches"),
    ("published", "n-launches"),
)
_ONE_THREAD = ("opencv", "opencv-inplace", "octopus")
_SHOWN_COUNTS = (100, 500, 1000, 2000)
_MEMORY = ("memory_payload", "memory_allocator_peak", "memory_device_delta", "memory_fixed")


def stages(numbers: Numbers) -> Table:
    """Every stage at every count: the published Jetson values, then each machine."""
    rows: list[list[str] | str] = ["Jetson Orin Nano, published (ms, 30 repetitions)"]
    rows += _published_rows(numbers)
    for scope in numbers.scopes(STUDY):
        rows.append(scope_title(numbers, scope, STUDY))
        rows += _scope_rows(numbers, scope)
    caption = (
        "Stage timing: medians over paired blocks; ratios are medians of per-block ratios. Kernels "
        "are timed by device events with a cold L2 cache on GPUs, everything else by the host clock."
    )
    header = ["Stage", "Method", *(f"n = {n}" for n in _SHOWN_COUNTS)]
    return Table("stage_timing", caption, header, rows, wide=True, text_columns=(0, 1))


def _published_rows(numbers: Numbers) -> list[list[str]]:
    rows = []
    for quantity, method in _STAGES:
        ids = [f"published.stage_timing.n{n}.{method}.{quantity}" for n in _SHOWN_COUNTS]
        rows += _row(numbers, human(QUANTITIES, quantity), human(SHORT_METHODS, method), ids)
    ids = [f"published.stage_timing.n{n}.published.speedup_over_n-launches" for n in _SHOWN_COUNTS]
    return rows + _row(numbers, "Speed-up", "Published over N launches", ids)


def _scope_rows(numbers: Numbers, scope: str) -> list[list[str]]:
    rows = []
    for quantity, method in _STAGES:
        layer = kernel_layer(numbers, scope) if quantity in _KERNELS else "host"
        ids = [f"{scope}.{STUDY}.visdrone.n{n}.{method}.{quantity}.{layer}" for n in _SHOWN_COUNTS]
        rows += _row(numbers, human(QUANTITIES, quantity), human(SHORT_METHODS, method), ids)
    for method, other in _SPEEDUPS:
        ids = [
            f"{scope}.{STUDY}.visdrone.n{n}.{method}.end_to_end.host.speedup_over_{other}"
            for n in _SHOWN_COUNTS
        ]
        name = f"{human(SHORT_METHODS, method)} over {human(SHORT_METHODS, other)}"
        rows += _row(numbers, "Speed-up", name, ids)
    return rows + _one_thread_rows(numbers, scope)


def _one_thread_rows(numbers: Numbers, scope: str) -> list[list[str]]:
    """Return Octopus and OpenCV with one thread each, measured on CPUs only."""
    rows = []
    prefix = f"{scope}.{STUDY}.visdrone-1thread"
    for method in _ONE_THREAD:
        ids = [f"{prefix}.n{n}.{method}.end_to_end.host" for n in _SHOWN_COUNTS]
        rows += _row(numbers, "One thread", human(SHORT_METHODS, method), ids)
    for other in _ONE_THREAD[:-1]:
        ids = [f"{prefix}.n{n}.octopus.end_to_end.host.speedup_over_{other}" for n in _SHOWN_COUNTS]
        rows += _row(numbers, "Speed-up, one thread", f"Octopus over {human(SHORT_METHODS, other)}", ids)
    return rows


def _row(numbers: Numbers, first: str, second: str, ids: list[str]) -> list[list[str]]:
    """Return one row; none when nothing was asked of the method, and the reason when it was unavailable."""
    found = [numbers.get(key) for key in ids]
    if not any(found):
        why = next((numbers.text(key) for key in ids if key in numbers), "")
        return [[first, f"{second} ({why})", *[MISSING] * len(ids)]] if why else []
    differs = any(number and number.note.startswith("different") for number in found)
    cells = [number.text if number else MISSING for number in found]
    return [[first, f"{second} (different answer)" if differs else second, *cells]]


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
    return Table("limits", caption, header, rows, wide=True)


def memory(numbers: Numbers) -> Table:
    """The four lines of memory at 1000 boxes."""
    methods = ("octopus", "published", "n-launches")
    rows: list[list[str] | str] = []
    for scope in numbers.scopes(STUDY):
        rows.append(scope_title(numbers, scope, STUDY))
        for line in _MEMORY:
            ids = [f"{scope}.{STUDY}.visdrone.n1000.{method}.{line}.memory" for method in methods]
            rows.append([human(QUANTITIES, line), *(_text(numbers, key) for key in ids)])
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
    return Table("launch_overhead", caption, ["Launch", "Slope", "95 %", "Residual", "Share of saving"], rows)


def _text(numbers: Numbers, identifier: str) -> str:
    number = numbers.get(identifier)
    return number.text if number else MISSING
