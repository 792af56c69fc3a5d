"""``numbers.csv``: every number that a figure, a table, a claim or the paper shows, with where it comes from.

A number is named by its columns (:class:`Key`), from which its id follows:
``<machine>.<study>.<workload>.n<n>.<input>.<method>.<quantity>.<layer>`` is a median over blocks; one more part names
what was derived from it (``.speedup_over_published``, ``.per_object`` …). A part that says nothing is left out. The
machine is ``here`` for this machine's run, else the folder of the reference run (``nvidia-h200``), and ``published``
for typed values (``published.<table>.<keys>.<quantity>``). The rows ``alias.gpu`` and ``alias.cpu`` name the
reference machines that the paper means by ``gpu.`` and ``cpu.``, so its text needs no machine's name. Series, traces
and pictures are files of their own beside it (:mod:`octopus_study.report.series`).
"""

import csv
import difflib
import math
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

from octopus.errors import InputError
from octopus_study.measure._files import atomic_text
from octopus_study.measure.dependence import LAYERS, WINDOWS
from octopus_study.names import Facts, facts
from octopus_study.report.selector import either, values_of
from octopus_study.report.series import Series
from octopus_study.report.text import interval_text, quantity_text, telling_apart
from octopus_study.status import Answer, MethodStatus, unavailable
from octopus_study.units import shown_unit

HERE = "here"
PUBLISHED = "published"
SECOND = "again"  # the folder of a machine's second runs
WIDE = 0.05  # of a value: an interval that reaches farther to one side is shown beside it
# What stands between a derived quantity and the other method; "over" unless given.
_JOINED = {"share": "share_of_{}", "times": "times_{}", "over": "over_{}"}


class Key(NamedTuple):
    """What a number is of; empty columns say nothing."""

    machine: str
    study: str
    workload: str = ""
    n: int | None = None  # number of items
    method: str = ""
    quantity: str = ""
    layer: str = ""
    derived: str = ""  # what was derived from the median: ``speedup``, ``verdict``, ``noise_floor`` …
    other: str = ""  # the method that it was derived against
    input: str = ""  # what was handed over

    @property
    def id(self) -> str:
        """The columns as one text, empty ones left out."""
        count = "" if self.n is None else f"n{self.n}"
        derived = self.derived
        if self.other:
            derived = _JOINED.get(derived, f"{derived}_over_{{}}").format(self.other)
        parts = (*self[:3], count, self.input, self.method, self.quantity, self.layer, derived)
        return ".".join(part for part in parts if part)

    @property
    def facts(self) -> Facts:
        """What its names say: distribution, operation, dtype and the like."""
        return facts(self.study, self.workload, self.method, self.quantity)

    def but(self, **columns: Any) -> Self:
        """Return the key with other values in some columns."""
        return self._replace(**columns)

    def derive(self, derived: str, other: str = "") -> Self:
        """Return the key of what was derived from this number."""
        return self._replace(derived=derived, other=other)

    def speedup(self, other: str) -> Self:
        """Return the key of the speed-up over another method: time of the other / time of this one."""
        return self.derive("speedup", other)


class Source(NamedTuple):
    """What a number rests on."""

    role: str  # ``here``, ``reference`` or ``published``
    dataset: str
    file: str  # and how its rows were chosen:
    selector: str
    commit: str = ""  # the commit that measured the rows, empty where provenance doesn't say


class Number(NamedTuple):
    """One number and its origin; `value`, `low` and `high` are NaN where there is none."""

    id: str  # made from the columns of its :class:`Key`; a published one from its table, keys and quantity
    machine: str  # as in :class:`Key`, to `input`
    study: str
    workload: str
    n: int | None
    method: str
    quantity: str
    layer: str
    derived: str
    other: str
    input: str
    role: str  # as in :class:`Source`, like `dataset`, `file`, `selector` and `commit`
    dataset: str
    value: float
    low: float  # the 95 % interval of a measured value, or the published range
    high: float
    unit: str
    text: str  # the value as a reader sees it, with its unit
    note: str  # how the value was derived, and below the function that derived it
    file: str
    selector: str
    commit: str
    function: str
    # How many blocks, windows or frames its interval rests on, and of how many processes they are; None where that
    # isn't known or there is no interval.
    blocks: int | None = None
    processes: int | None = None
    resampled: bool = False  # whether its interval was resampled
    status: str = ""  # ``different`` of a median whose method gives another answer, ``unavailable`` without a value
    reason: str = ""  # why it is different or unavailable
    chosen: str = ""  # the method that was chosen from several, such as the fastest that ``best_baseline`` stands for

    @property
    def key(self) -> Key:
        """The columns that name it."""
        return Key(*self[1:11])

    @property
    def source(self) -> Source:
        """What it rests on."""
        return Source(self.role, self.dataset, self.file, self.selector, self.commit)

    def named(self, key: Key) -> Self:
        """Return the same number under another name."""
        return self._replace(id=key.id, **key._asdict())

    @property
    def known(self) -> bool:
        """Whether it has a value."""
        return math.isfinite(self.value)

    @property
    def interval(self) -> str:
        """The interval as text, empty where there is none."""
        return interval_text(self.value, self.low, self.high, self.unit)

    @property
    def precise(self) -> str:
        """The text with as many digits as its interval, for where both stand side by side."""
        if not self.interval or self.text != quantity_text(self.value, self.unit):
            return self.text
        _, factor = shown_unit(self.value, self.unit)
        return quantity_text(self.value, self.unit, telling_apart(factor * self.low, factor * self.high))

    @property
    def wide(self) -> bool:
        """Whether its interval reaches farther than `WIDE` to one side, so that it is shown beside it."""
        reach = max(self.high - self.value, self.value - self.low)
        return reach > WIDE * abs(self.value)

    @property
    def differs(self) -> bool:
        """Whether it is of another answer than the reference."""
        return self.status == MethodStatus.DIFFERENT

    @property
    def absent(self) -> bool:
        """Whether it has no value, and says why."""
        return self.status == MethodStatus.UNAVAILABLE

    @property
    def of_one_process(self) -> bool:
        """Whether it was timed on the host's clock in one process, so that its interval doesn't hold another run."""
        if self.processes != 1 or (self.blocks or 0) < 2 or f"/{SECOND}/" in self.file:
            return False
        return not {*LAYERS, *WINDOWS}.isdisjoint([self.layer] if self.layer else values_of(self.selector, "layer"))

    @property
    def synthetic(self) -> bool:
        """Whether the number rests on generated data: by design, or in place of real ones (see `labels.stand_in`)."""
        return "synthetic" in self.dataset


def make_number(
    key: Key,
    source: Source,
    unit: str,
    value: float,
    low: float = math.nan,
    high: float = math.nan,
    blocks: int | None = None,
    processes: int | None = None,
    resampled: bool = False,
    *,
    text: str | None = None,
    note: str = "",
    identifier: str = "",
    answer: Answer | None = None,
) -> Number:
    """Make a number; `text` follows from the value, and the id from the key, unless given. An
    :class:`~octopus_study.measure.statistics.Interval` can stand for `value` and what follows; `answer` is that of the
    method, where that is different or unavailable."""
    shown = quantity_text(value, unit) if text is None else text
    role, dataset, file, selector, commit = source
    where = (file, selector, commit)
    middle = (float(value), low, high)
    rests = (blocks, processes, resampled)
    said = (str(answer.status), answer.reason) if answer else ("", "")
    return Number(identifier or key.id, *key, role, dataset, *middle, unit, shown, note, *where, "", *rests, *said)


def make_absent(key: Key, source: Source, unit: str, why: str) -> Number:
    """Return a number without a value that says why there is none."""
    answer = unavailable(why)
    return make_number(key, source, unit, math.nan, text=answer, answer=answer)


def make_text(key: Key, source: Source, text: str, note: str = "") -> Number:
    """Make a fact in words: a number without a value."""
    return make_number(key, source, "text", math.nan, text=text, note=note)


def joined(*numbers: Number) -> Source:
    """Return what a number rests on that follows from others of one run: all of their rows."""
    return numbers[0].source._replace(selector=either(number.selector for number in numbers))


def published(table: str, *keys: str) -> str:
    """Return the id of a published number: the name of its table, its keys and its quantity."""
    return ".".join((PUBLISHED, table, *keys))


class Frame:
    """The numbers: by id with aliases of machines resolved, and by columns."""

    def __init__(self, numbers: Iterable[Number], folder: Path | None = None) -> None:
        self.folder = folder
        self._by_id: dict[str, Number] = {}
        for number in numbers:
            if number.id in self._by_id:
                raise InputError(f"Two numbers have the id {number.id!r}: {number.selector}.")
            self._by_id[number.id] = number
        self.aliases = {number.study: number.text for number in self if number.machine == "alias"}

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read ``numbers.csv``; `InputError` where the file is absent or has other columns."""
        if not Path(path).is_file():
            raise InputError(f"No numbers at {path}: run `octopus report numbers` first.")
        with open(path, newline="", encoding="utf-8") as stream:
            reader = csv.reader(stream)
            header = tuple(next(reader, ()))
            if header != Number._fields:
                raise InputError(f"{path} has the columns {list(header)}, not {list(Number._fields)}.")
            return cls(map(_from_record, reader), Path(path).parent)

    def write(self, path: str | Path) -> Path:
        """Write ``numbers.csv``, whole or not at all."""
        with atomic_text(Path(path)) as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(Number._fields)
            writer.writerows([_cell(value) for value in number] for number in self)
        return Path(path)

    def __iter__(self) -> Iterator[Number]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, key: Key | str) -> bool:
        return self.resolve(key) in self._by_id

    def __getitem__(self, key: Key | str) -> Number:
        number = self.find(key)
        if number is not None:
            return number
        identifier = self.resolve(key)
        near = ", ".join(difflib.get_close_matches(identifier, self._by_id, n=3)) or "none"
        raise InputError(f"There is no number {identifier!r}. Nearest: {near}.")

    def find(self, key: Key | str) -> Number | None:
        """Return the number or fact, also one without a value; None where there is none."""
        return self._by_id.get(self.resolve(key))

    def get(self, key: Key | str) -> Number | None:
        """Return the number, or None where there is none or where it was unavailable."""
        number = self.find(key)
        return number if number is not None and number.known else None

    def value(self, key: Key | str) -> float:
        """Return the value, NaN where there is none."""
        number = self.get(key)
        return math.nan if number is None else number.value

    def reason(self, key: Key | str) -> str:
        """Return why a number has no value; empty where it has one, or there is no such number."""
        number = self.find(key)
        return number.reason if number is not None and number.absent else ""

    def text(self, key: Key | str, default: str = "") -> str:
        """Return the text of a number or fact, `default` where there is none."""
        number = self.find(key)
        return default if number is None else number.text

    def resolve(self, key: Key | str) -> str:
        """Return the id; an alias of a machine, such as ``gpu``, is replaced by the machine that it stands for."""
        if isinstance(key, Key):
            return key.id
        alias, dot, rest = key.partition(".")
        return f"{self.aliases.get(alias, alias)}{dot}{rest}"

    def select(self, machine: str, study: str, **columns: Any) -> list[Number]:
        """Return the numbers of a run whose columns have the given values, in the order of its rows. What was derived
        from a median is only found by naming `derived`."""
        columns = {"derived": ""} | columns
        narrow = (machine, study, columns.get("quantity"), columns["derived"])
        numbers = self._index.get(narrow if "quantity" in columns else narrow[:2], [])
        names = [name for name in columns if name != "quantity"]
        return [n for n in numbers if all(getattr(n, name) == columns[name] for name in names)]

    @cached_property
    def _index(self) -> dict[tuple[str, ...], list[Number]]:
        index: dict[tuple[str, ...], list[Number]] = {}
        for number in self:
            for key in (number[1:3], (*number[1:3], number.quantity, number.derived)):
                index.setdefault(key, []).append(number)
        return index

    def machines(self, study: str = "") -> list[str]:
        """Return the machines that have numbers of a study, or of any: this one first, then the reference GPU, other
        GPUs, and CPUs."""
        runs = [key for key in self._index if key[2:] == ("measured_on", "") and study in ("", key[1])]
        gpu = self.aliases.get("gpu")
        return sorted({key[0] for key in runs}, key=lambda one: (one != HERE, one != gpu, not self.is_gpu(one), one))

    def shown(self, study: str = "") -> list[str]:
        """Return the machines of a study, or of any, that tables and figures show: this one and the references of the
        text. What others measured is in the verdicts and on the results page."""
        text = {HERE, *self.aliases.values()}
        return [machine for machine in self.machines(study) if machine in text or not self.aliases]

    def fact(self, machine: str, name: str) -> str:
        """Return a fact about a machine, empty where it isn't known."""
        return self.text(Key(machine, "machine", quantity=name))

    def is_gpu(self, machine: str) -> bool:
        """Say whether a machine measured on a GPU."""
        return self.fact(machine, "kind") == "gpu"

    def machine_name(self, machine: str) -> str:
        """Return a machine's name; where this machine's run is shown too, say which is which."""
        name = self.fact(machine, "name") or machine
        if machine == HERE:
            return f"{name} (this machine)"
        return f"{name} (reference)" if self.fact(HERE, "id") else name

    def series(self, machine: str, study: str, name: str) -> Series | None:
        """Return a series that was written beside ``numbers.csv``; None where there is none."""
        return Series.read(self.folder, machine, study, name) if self.folder else None


def _from_record(record: list[str]) -> Number:
    cells: list[Any] = list(record)
    cells[4] = int(cells[4]) if cells[4] else None
    cells[13:16] = [float(text) if text else math.nan for text in cells[13:16]]
    cells[23:25] = [int(text) if text else None for text in cells[23:25]]
    cells[25] = bool(cells[25])
    return Number(*cells)


def _cell(value: str | float | bool | None) -> str:
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else ""
    return "" if value is None or value is False else str(value)
