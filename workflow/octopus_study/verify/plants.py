"""Faults that are planted to see that a check notices: an edit of code, of rows, or of what was built."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from octopus.errors import InputError

Edit = Callable[[Path], None]
_STUDY, _BUILD = "workflow/octopus_study", Path("paper/build")
_ROWS = Path("data/reference/nvidia-h100-80gb-hbm3")
_RESIZE = "crop = cv2.resize(self.job.frame[y1:y2, x1:x2].astype(np.float32), self._size)"


class Plant(NamedTuple):
    """One fault.

    Attributes
    ----------
    check : str
        The check that must notice.
    what : str
    edit : callable
        Plants it in a copy of the checkout.
    built : bool
        Whether the copy holds a report that was built before; without one, the check builds its own with the fault.
    study : str
        The study whose results alone are copied; all of them unless given.
    """

    check: str
    what: str
    edit: Edit
    built: bool = True
    study: str = ""


def code(file: str, old: str, new: str) -> Edit:
    """Return an edit of one place in a file of the artifact or the library."""
    return partial(_replace, file=Path(file), old=old, new=new)


def _replace(root: Path, file: Path, old: str, new: str) -> None:
    """Replace a text that stands once in a file.

    Raises
    ------
    InputError
        It stands there never, or more than once: the plant no longer fits the code.
    """
    path = root / file
    text = path.read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise InputError(
            f"{file} has {old!r} {text.count(old)} times, not once: this plant no longer fits it."
        )
    _write(path, text.replace(old, new))


def _write(path: Path, text: str) -> None:
    path.unlink()  # it may be a link to the file that must stay as it is
    path.write_text(text, encoding="utf-8", newline="")


def _stored(root: Path, name: str, change: Callable[[list[list[str]]], None], renewed: bool = False) -> None:
    """Change the rows of a result, header first; with `renewed` the digest in its provenance follows."""
    path = root / _ROWS / name
    with open(path, newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    change(rows)
    path.unlink()
    with open(path, "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)
    if renewed:
        record_path = path.with_suffix(".json")
        record = json.loads(record_path.read_text(encoding="utf-8"))
        record["results"] |= {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "rows": len(rows) - 1}
        _write(record_path, json.dumps(record))


def _double(rows: list[list[str]]) -> None:
    """Double the first time of Octopus."""
    value, method = rows[0].index("value"), rows[0].index("method")
    row = next(row for row in rows[1:] if row[method] == "octopus" and row[value])
    row[value] = repr(2 * float(row[value]))


def _swap(rows: list[list[str]]) -> None:
    """Swap the cells of two columns, but not their names."""
    first, second = rows[0].index("method"), rows[0].index("layer")
    for row in rows[1:]:
        row[first], row[second] = row[second], row[first]


def _cut(rows: list[list[str]]) -> None:
    del rows[len(rows) // 2 :]


def _in_build(root: Path, name: str, old: str, new: str) -> None:
    """Change the first place in something that was built."""
    path = root / _BUILD / name
    text = path.read_text(encoding="utf-8")
    if old not in text:
        raise InputError(f"{_BUILD / name} has no {old!r}: this plant no longer fits it.")
    path.write_text(text.replace(old, new, 1), encoding="utf-8", newline="")


def _flip(root: Path) -> None:
    """Turn the first verdict of ``claims.csv``."""
    path = root / _BUILD / "claims.csv"
    with open(path, newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    place = rows[0].index("verdict")
    row = next(row for row in rows[1:] if row[place] == "reproduced")
    row[place] = "not reproduced"
    with open(path, "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)


def _name_none(root: Path) -> None:
    """Name a number that there is not in the paper's text."""
    path = root / "paper" / "supplement" / "arena.typ"
    path.write_text(
        f'{path.read_text(encoding="utf-8")}\nIt takes #num("published.arena.none").\n', encoding="utf-8"
    )


def _stale(root: Path) -> None:
    """Change the first digit of the first number in a cell of a table."""
    path = root / _BUILD / "tables" / "arena.md"
    text = path.read_text(encoding="utf-8")
    changed = re.sub(r"(?<=\| )\d", lambda match: str((int(match[0]) + 1) % 10), text, count=1)
    path.write_text(changed, encoding="utf-8")


PLANTS: dict[str, Plant] = {
    "wrong-box": Plant(
        "answers",
        "the kernel takes every box one pixel too far to the right",
        code(
            "octopus/kernels/cpu/box.py",
            "horizontal = _box_axis(box[0], box[2], np.int32(frame[2]))",
            "horizontal = _box_axis(box[0] + np.float32(1), box[2] + np.float32(1), np.int32(frame[2]))",
        ),
    ),
    "unwritten-memory": Plant(
        "answers",
        "the memory of the result is not poisoned before an answer is checked",
        code(
            f"{_STUDY}/studies/arena/layers.py",
            "poison(made.output())",
            "pass",
        ),
    ),
    "first-crop": Plant(
        "answers",
        "the first crop alone is compared",
        code(
            f"{_STUDY}/studies/arena/layers.py",
            "answer = check_answers([replace(method, run=run)], batch.expected[made.edge])[method.name]",
            "first = replace(method, run=run, result=lambda result=method.result: result()[:1])\n"
            "    answer = check_answers([first], batch.expected[made.edge][:1])[method.name]",
        ),
    ),
    "scaled-timer": Plant(
        "clocks",
        "the host's clock gives ten times the milliseconds",
        code(f"{_STUDY}/measure/clocks.py", "- start) / 1e6", "- start) / 1e5"),
    ),
    "scaled-rows": Plant(
        "clocks",
        "microseconds are stored a thousand times too large",
        code(f"{_STUDY}/measure/_samples.py", '"us": 1e3', '"us": 1e6'),
    ),
    "warm-l2": Plant(
        "clocks",
        "the L2 is not rewritten before a device time",
        code(
            f"{_STUDY}/measure/cuda.py",
            "self._flush.fill(self._writes % 256, stream=self._stream)",
            "pass",
        ),
    ),
    "small-flush": Plant(
        "clocks",
        "the buffer that is rewritten before a device time is smaller than the L2",
        code(
            f"{_STUDY}/measure/cuda.py",
            "max(2 * l2_bytes(), MIN_FLUSH_BYTES)",
            "MIN_FLUSH_BYTES",
        ),
    ),
    "twice": Plant(
        "opponents",
        "OpenCV resizes every crop twice",
        code(
            f"{_STUDY}/peers/opencv.py",
            _RESIZE,
            f"{_RESIZE}\n        {_RESIZE}",
        ),
    ),
    "slowed": Plant(
        "opponents",
        "OpenCV sleeps a millisecond for every crop",
        code(
            f"{_STUDY}/peers/opencv.py",
            _RESIZE,
            f"{_RESIZE}\n        __import__('time').sleep(1e-3)",
        ),
    ),
    "millivolts": Plant(
        "sensors",
        "a voltage in millivolts is taken for a power",
        code(
            f"{_STUDY}/power/quantities.py",
            "return cls._make(voltage.value * current.value * 1e-6)",
            "return cls._make(voltage.value * 1e-3)",
        ),
    ),
    "edited-row": Plant(
        "digests",
        "a time was changed after it was measured",
        partial(_stored, name="drone.csv", change=_double),
    ),
    "cut-csv": Plant(
        "digests", "half of the rows are missing", partial(_stored, name="drone.csv", change=_cut)
    ),
    "edited-row-renewed": Plant(
        "numbers",
        "a time was changed, and its digest with it",
        partial(_stored, name="drone.csv", change=_double, renewed=True),
    ),
    "swapped-columns": Plant(
        "rows",
        "two columns are swapped, and the digest follows",
        partial(_stored, name="drone.csv", change=_swap, renewed=True),
    ),
    "stale-number": Plant(
        "numbers",
        "a number of an older build is left in numbers.csv",
        partial(_in_build, name="numbers.csv", old=",ms,", new=",us,"),
    ),
    "stale-table": Plant("tables", "a number of an older build is left in a table", _stale),
    "flipped-verdict": Plant("verdicts", "a verdict in claims.csv is turned", _flip),
    "unknown-number": Plant("text", "the paper names a number that there is not", _name_none),
    "retyped": Plant(
        "published",
        "a published value was typed wrong",
        code(
            "data/published/arena.csv", "uniform-256,tensorrt,kernel,25.4", "uniform-256,tensorrt,kernel,35.4"
        ),
    ),
    "lost-rows": Plant(
        "selectors",
        "a number names rows that are not there",
        partial(
            _in_build,
            name="numbers.csv",
            old="method=octopus and write-bound",
            new="method=octopus over write-bound",
        ),
    ),
    "seed": Plant(
        "numbers",
        "the bootstrap of a share draws other samples",
        code(f"{_STUDY}/report/samples.py", "np.random.default_rng(0)", "np.random.default_rng(1)"),
    ),
    "mean": Plant(
        "medians",
        "means are shown as medians",
        code(
            f"{_STUDY}/report/measured.py",
            "(mean_interval if report.windows else median_interval)(values)",
            "mean_interval(values)",
        ),
        built=False,
        study="total_cost",
    ),
    "inverted-ratio": Plant(
        "ratios",
        "a speed-up is that of the other method",
        code(
            f"{_STUDY}/report/measured.py",
            "times = ratio_interval(both[other], both[method])",
            "times = ratio_interval(both[method], both[other])",
        ),
        built=False,
        study="total_cost",
    ),
    "energy-as-time": Plant(
        "energies",
        "the time that is saved is computed from the ratio of energies",
        code(
            f"{_STUDY}/report/studies/power.py",
            '(time, low, high), power = parts["time"]',
            '(time, low, high), power = parts["energy"]',
        ),
        built=False,
        study="power",
    ),
    "wrong-prefix": Plant(
        "texts",
        "a GiB has twice its bytes",
        code(f"{_STUDY}/units.py", '"GiB", 2.0**-30', '"GiB", 2.0**-31'),
        built=False,
        study="image_shape",
    ),
    "wrong-axis": Plant(
        "axes",
        "an axis names microseconds where milliseconds are drawn",
        code(
            f"{_STUDY}/report/studies/arena_figures.py",
            '"Device, all boxes (ms)"',
            '"Device, all boxes (us)"',
        ),
    ),
    "wrong-axis-energy": Plant(
        "axes",
        "an axis names joules where millijoules are drawn",
        code(
            f"{_STUDY}/report/studies/power_figures.py",
            "Energy per frame (mJ)",
            "Energy per frame (J)",
        ),
    ),
}
