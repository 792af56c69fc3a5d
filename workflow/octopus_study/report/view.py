"""One machine's numbers of one study: what a section of a table and a panel of a figure show."""

from collections.abc import Collection, Sequence
from typing import Any

from octopus_study.report.frame import Frame, Key, Number
from octopus_study.report.series import Series

# A layer that stands for the one on which a machine times its kernels.
KERNEL = "kernel"


class Reasons:
    """Collects why cells have no number, and letters them for a note below the table."""

    def __init__(self) -> None:
        self._letters: dict[str, str] = {}

    def letter(self, reason: str) -> str:
        """Return the letter of a reason."""
        return self._letters.setdefault(reason, chr(ord("a") + len(self._letters)))

    def cell(self, reason: str) -> str:
        """Return the cell of what is unavailable for a reason."""
        return f"unavailable ({self.letter(reason)})"

    @property
    def note(self) -> str:
        """The reasons as sentences of a caption; empty where every cell has a number."""
        return "".join(f" ({letter}) {why}." for why, letter in self._letters.items())


class View:
    """One machine's numbers of one study. Cells note in `reasons` why they are empty; the views of one table share
    it."""

    def __init__(self, frame: Frame, machine: str, study: str, reasons: Reasons | None = None) -> None:
        self.frame, self.machine, self.study = frame, machine, study
        self.reasons = Reasons() if reasons is None else reasons

    def key(self, workload: str = "", n: int | None = None, method: str = "", **columns: str) -> Key:
        """Return the key of one of its numbers; the layer ``kernel`` is that on which the machine times its
        kernels."""
        if columns.get("layer") == KERNEL:
            columns["layer"] = self.kernel_layer
        return Key(self.machine, self.study, workload, n, method, **columns)

    def get(self, key: Key) -> Number | None:
        """Return the number, None where there is none or where it was unavailable."""
        return self.frame.get(key)

    def text(self, key: Key, default: str = "") -> str:
        """Return the text of a number or fact, `default` where there is none."""
        return self.frame.text(key, default)

    def reason(self, key: Key) -> str:
        """Return why a number has no value; see :meth:`Frame.reason`."""
        return self.frame.reason(key)

    def fact(self, name: str) -> str:
        """Return a fact about the run, such as its ``dataset``."""
        return self.frame.text(self.key(quantity=name))

    def select(self, **columns: Any) -> list[Number]:
        """Return the numbers and facts whose columns have the given values; see :meth:`Frame.select`."""
        return self.frame.select(self.machine, self.study, **columns)

    def cases(self, method: str, quantity: str, layers: Collection[str] = (), order: Sequence[str] = ()) -> list[Key]:
        """Return the keys under which a method has a value, by workload, n and layer: only of these layers and
        workloads, in this order and by ascending n; all of them, as in the rows, when empty."""
        layers = [self.kernel_layer if layer == KERNEL else layer for layer in layers]
        numbers = self.select(method=method, quantity=quantity)
        keys = [number.key for number in numbers if number.known and (not layers or number.layer in layers)]
        if order:
            keys = sorted(
                (key for key in keys if key.workload in order), key=lambda key: (list(order).index(key.workload), key.n)
            )
        return keys

    def series(self, name: str) -> Series | None:
        """Return a series of the run, None where there is none."""
        return self.frame.series(self.machine, self.study, name)

    @property
    def name(self) -> str:
        """The machine's name; where this machine's run is shown too, it says which is which."""
        return self.frame.machine_name(self.machine)

    @property
    def title(self) -> str:
        """Machine, data set and day of the run."""
        return ", ".join(filter(None, (self.name, self.fact("dataset"), self.fact("measured_on"))))

    @property
    def is_gpu(self) -> bool:
        """Whether the machine measured on a GPU."""
        return self.frame.is_gpu(self.machine)

    @property
    def kernel_layer(self) -> str:
        """The layer of kernels alone: device events on a GPU, the host's clock on a CPU."""
        return "device" if self.is_gpu else "host"


def views(frame: Frame, study: str) -> list[View]:
    """Return a view of each machine of a study that is shown, with one list of reasons for all of them."""
    reasons = Reasons()
    return [View(frame, machine, study, reasons) for machine in frame.shown(study)]


def every_view(frame: Frame, study: str) -> list[View]:
    """Return a view of each machine with a run of a study, shown or not: numbers are derived for all."""
    return [View(frame, machine, study) for machine in frame.machines(study)]
