"""The catalogue of injected faults: each changes one file of a copied tree, and a check or a test must then fail."""

import ast
import csv
import io
import re
from collections.abc import Callable
from typing import NamedTuple

Edit = Callable[[str], str]
VERIFY = "verify:"  # before the name of a check of `octopus verify`; else a file, or a function, of tests

_STUDY, _TESTS, _BUILD = "workflow/octopus_study", "tests/study", "paper/build"
_DRONE = "data/reference/nvidia-h200/drone.csv"
_CLOCKS = f"{_TESTS}/measure/test_clocks.py"
_EFFORT = f"{_TESTS}/baselines/test_baseline_effort.py"
_CLAIMS = f"{_TESTS}/report/test_claims.py"
_RESIZE = "crop = cv2.resize(self.job.frame[y1:y2, x1:x2].astype(np.float32), self._size)"


class Fault(NamedTuple):
    """One fault, and what is wrong with it."""

    id: str
    file: str
    edit: Edit  # raises `LookupError` where it no longer fits the file
    fails: tuple[str, ...]  # what must fail, each by itself: `verify:<check>`, or tests as pytest names them
    why: str
    renewed: bool = False  # whether the digest of rows in their provenance follows the edit


def swap(old: str, new: str, within: str = "") -> Edit:
    """Return an edit of a text that stands once in a file, or once in a function (or ``Class.method``) of it."""

    def edit(source: str) -> str:
        first, last = _lines_of(source, within) if within else (0, None)
        lines = source.splitlines(keepends=True)
        part = "".join(lines[first:last])
        if part.count(old) != 1:
            raise LookupError(f"{old!r} stands {part.count(old)} times in {within or 'the file'}, not once")
        return "".join(lines[:first]) + part.replace(old, new) + "".join(lines[last:] if last else ())

    return edit


def _lines_of(source: str, name: str) -> tuple[int, int]:
    """Return the first line of a function, from zero, and the one behind its last."""
    node: ast.AST = ast.parse(source)
    for part in name.split("."):
        found = [one for one in ast.walk(node) if getattr(one, "name", "") == part]
        if len(found) != 1:
            raise LookupError(f"there are {len(found)} of {name}")
        node = found[0]
    return node.lineno - 1, node.end_lineno


def _first(old: str, new: str, pattern: bool = False) -> Edit:
    def edit(source: str) -> str:
        changed = re.sub(old if pattern else re.escape(old), lambda _: new, source, count=1)
        if changed == source:
            raise LookupError(f"{old!r} isn't there")
        return changed

    return edit


def _of_rows(change: Callable[[list[list[str]]], None]) -> Edit:
    def edit(source: str) -> str:
        rows, out = list(csv.reader(io.StringIO(source))), io.StringIO()
        change(rows)
        csv.writer(out, lineterminator="\n").writerows(rows)
        return out.getvalue()

    return edit


def _double(rows: list[list[str]]) -> None:
    value, method = rows[0].index("value"), rows[0].index("method")
    row = next(row for row in rows[1:] if row[method] == "octopus" and row[value])
    row[value] = repr(2 * float(row[value]))


def _swap_columns(rows: list[list[str]]) -> None:
    """Swap the cells of two columns, but not their names."""
    first, second = rows[0].index("method"), rows[0].index("layer")
    for row in rows[1:]:
        row[first], row[second] = row[second], row[first]


def _cut(rows: list[list[str]]) -> None:
    del rows[len(rows) // 2 :]


def _flip(rows: list[list[str]]) -> None:
    place = rows[0].index("verdict")
    next(row for row in rows[1:] if row[place] == "reproduced")[place] = "not reproduced"


FAULTS = (
    # answers
    Fault(
        "wrong-box", "octopus/kernels/cpu/bands.py",
        swap("(box[0], box[2],", "(box[0] + np.float32(1), box[2] + np.float32(1),", "box_axes"),
        (f"{_TESTS}/baselines/test_crop_methods.py",),
        "the kernel takes every box one pixel too far to the right",
    ),
    Fault(
        "unwritten-memory", f"{_STUDY}/studies/arena/layers.py", swap("poison(made.output())", "pass", "_answer"),
        (f"{_TESTS}/studies/test_arena.py::test_every_crop_is_compared_and_on_poisoned_memory",),
        "the memory of the result is not poisoned before an answer is checked",
    ),
    Fault(
        "first-crop", f"{_STUDY}/studies/arena/layers.py",
        swap("[replace(method, run=run)], batch.expected[made.edge])",
             "[replace(method, run=run, result=lambda result=method.result: result()[:1])], "
             "batch.expected[made.edge][:1])", "_answer"),
        (f"{_TESTS}/studies/test_arena.py::test_every_crop_is_compared_and_on_poisoned_memory",),
        "the first crop alone is compared",
    ),
    # clocks
    Fault(
        "scaled-timer", f"{_STUDY}/measure/clocks.py", swap("- start) / 1e6", "- start) / 1e5"), (_CLOCKS,),
        "the host's clock gives ten times the milliseconds",
    ),
    Fault(
        "scaled-rows", f"{_STUDY}/measure/_samples.py",
        swap("elapsed * PER_MS[unit]", "elapsed * PER_MS[unit] * 1e3", "method_rows"), (_CLOCKS,),
        "times are stored a thousand times too large",
    ),
    Fault(
        "warm-l2", f"{_STUDY}/measure/cuda.py",
        swap("self._flush.fill(self._writes % 256, stream=self._stream)", "pass"), (_CLOCKS,),
        "the L2 is not rewritten before a device time",
    ),
    Fault(
        "small-flush", f"{_STUDY}/measure/cuda.py", swap("max(2 * l2_bytes(), MIN_FLUSH_BYTES)", "MIN_FLUSH_BYTES"),
        (_CLOCKS,), "the buffer that is rewritten before a device time is smaller than the L2",
    ),
    # baselines
    Fault(
        "twice", f"{_STUDY}/baselines/opencv.py", swap(_RESIZE, f"{_RESIZE}\n        {_RESIZE}"),
        (_EFFORT,), "OpenCV resizes every crop twice",
    ),
    Fault(
        "slowed", f"{_STUDY}/baselines/opencv.py", swap(_RESIZE, f"{_RESIZE}\n        __import__('time').sleep(1e-3)"),
        (_EFFORT,), "OpenCV sleeps a millisecond for every crop",
    ),
    Fault(
        "roi-align-twice", f"{_STUDY}/baselines/torch_methods.py",
        swap("    self._result = self._roi", "    self._roi_align(self._planes)\n        self._result = self._roi"),
        (_EFFORT,), "ROI align pools every crop twice",
    ),
    Fault(
        "cvcuda-twice", f"{_STUDY}/baselines/cvcuda.py",
        swap("super().kernels()\n        if not", "super().kernels()\n        super().kernels()\n        if not"),
        (_EFFORT,), "CV-CUDA launches an operator twice",
    ),
    Fault(
        "torch-on-one-thread", f"{_STUDY}/baselines/availability.py",
        swap("torch.set_num_threads(cpu.get_num_threads())", "torch.set_num_threads(1)"),
        (f"{_TESTS}/baselines/test_availability.py",), "PyTorch has one thread, Octopus all",
    ),
    # sensors
    Fault(
        "millivolts", f"{_STUDY}/power/quantities.py",
        swap("voltage.value * current.value * 1e-6", "voltage.value * 1e-3"), (f"{_TESTS}/power/test_quantities.py",),
        "a voltage in millivolts is taken for a power",
    ),
    # stored rows
    Fault("edited-row", _DRONE, _of_rows(_double), (f"{VERIFY}digests",), "a time was changed after it was measured"),
    Fault("cut-csv", _DRONE, _of_rows(_cut), (f"{VERIFY}digests",), "half of the rows are missing"),
    Fault(
        "edited-row-renewed", _DRONE, _of_rows(_double), (f"{VERIFY}numbers",),
        "a time was changed, and its digest with it", renewed=True,
    ),
    Fault(
        "swapped-columns", _DRONE, _of_rows(_swap_columns), (f"{VERIFY}rows",),
        "two columns are swapped, and the digest follows", renewed=True,
    ),
    # what was built
    Fault(
        "stale-number", f"{_BUILD}/numbers.csv", _first(",ms,", ",us,"), (f"{VERIFY}numbers",),
        "a number of an older build is left in numbers.csv",
    ),
    Fault(
        "stale-table", f"{_BUILD}/tables/arena.md", _first(r"(?<=\| )\d(?=\d)", "0", pattern=True),
        (f"{VERIFY}tables",), "a number of an older build is left in a table",
    ),
    Fault(
        "flipped-verdict", f"{_BUILD}/claims.csv", _of_rows(_flip), (f"{VERIFY}verdicts",),
        "a verdict in claims.csv is turned",
    ),
    Fault(
        "lost-rows", f"{_BUILD}/numbers.csv",
        _first("method=octopus and write-bound", "method=octopus over write-bound"), (f"{VERIFY}selectors",),
        "a number names rows that are not there",
    ),
    # text and published values
    Fault(
        "unknown-number", "paper/supplement/arena.typ",
        lambda source: f'{source}\nIt takes #num("published.arena.none").\n', (f"{VERIFY}text",),
        "the paper names a number that there is not",
    ),
    Fault(
        "published-kernel", "data/published/arena.csv",
        swap("uniform-256,tensorrt,kernel,25.4", "uniform-256,tensorrt,kernel,35.4"),
        (f"{VERIFY}published",), "a published time was typed wrong",
    ),
    Fault(
        "published-total", "data/published/pipeline_gain.csv", swap("total,,gain,2.6", "total,,gain,3.6"),
        ("tests/golden/test_golden.py",), "a published gain was typed wrong",
    ),
    # derivation
    Fault(
        "seed", f"{_STUDY}/report/samples.py", swap("default_rng(0)", "default_rng(1)"), (f"{VERIFY}numbers",),
        "the bootstrap of a share draws other samples",
    ),
    Fault(
        "mean", f"{_STUDY}/report/measured.py",
        swap("statistics.median_interval(values, blocks)", "statistics.mean_interval(values)"),
        (f"{VERIFY}medians",), "means are shown as medians",
    ),
    Fault(
        "inverted-ratio", f"{_STUDY}/report/measured.py",
        swap("ratio_interval(others, mine, numbers)", "ratio_interval(mine, others, numbers)", "speedup"),
        (f"{VERIFY}ratios",), "a speed-up is that of the other method",
    ),
    Fault(
        "energy-as-time", f"{_STUDY}/report/studies/power.py",
        swap('parts["time"], parts["power"]', 'parts["energy"], parts["power"]'), (f"{VERIFY}energies",),
        "the time that is saved is computed from the ratio of energies",
    ),
    Fault(
        "wrong-prefix", f"{_STUDY}/units.py", swap('"GiB", 2.0**-30', '"GiB", 2.0**-31'),
        (f"{VERIFY}texts", f"{_TESTS}/report/test_text.py"), "a GiB has twice its bytes",
    ),
    Fault(
        "wrong-axis", f"{_STUDY}/report/studies/distribution.py",
        swap('"Kernels, all boxes (ms)"', '"Kernels, all boxes (us)"'), (f"{VERIFY}axes",),
        "an axis names microseconds where milliseconds are drawn",
    ),
    # verdicts
    Fault(
        "at-least-by-the-high-end", f"{_STUDY}/report/claims/outcome.py",
        swap("limits.low <= low and high <= limits.high", "limits.low <= high <= limits.high", "_side"),
        (f"{_CLAIMS}::test_both_ends_of_an_interval_count",), "the upper end of an interval alone must satisfy a rule",
    ),
    Fault(
        "verdict-ignores-noise", f"{_STUDY}/report/claims/outcome.py",
        swap("return low / (1 + floor), high * (1 + floor)", "return low, high", "_widened"),
        (f"{_CLAIMS}::test_a_verdict_follows_from_the_rule",), "a difference below the noise floor decides",
    ),
    Fault(
        "typed-claim", "config/claims.yaml",
        _first(r"    published: published\.\S+\n", "    value: 1.02\n", pattern=True),
        (f"{_CLAIMS}::test_published_values_are_read_and_never_typed",),
        "a rule has a typed value where the published one is read",
    ),
)  # fmt: skip
BY_ID = {fault.id: fault for fault in FAULTS}
