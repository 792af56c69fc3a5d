"""The machines that results come from."""

from collections.abc import Sequence

from octopus_study.names import human, in_order, machine_name
from octopus_study.report import captions
from octopus_study.report.frame import Frame
from octopus_study.report.tables.writers import MISSING, Table

# What a row says, and the facts in it.
_FACTS = {
    "GPU": ("machine.gpu",),
    "Seen by its runs": ("machine.instances",),
    "Driver, CUDA": ("machine.driver", "machine.cuda"),
    "Power limit (W)": ("machine.power_limit",),
    "CPU": ("machine.cpu",),
    "Cores, threads": ("machine.cores", "machine.threads"),
    "System": ("machine.os",),
    "Python, Numba, numba-cuda": ("machine.python", "machine.numba", "machine.numba_cuda"),
    "Baselines": ("machine.baselines",),
    "Power sensor": ("power.sensor.title",),
}


def machines(frame: Frame) -> Table:
    """One column per machine, one row per fact, and per study its day, commit, data and load."""
    names = frame.machines()
    rows = [[name, *(_facts(frame, machine, keys) for machine in names)] for name, keys in _FACTS.items()]
    rows.append(["Discarded blocks", *(_discarded(frame, machine) for machine in names)])
    shown: list[list[str] | str] = [row for row in rows if any(cell != MISSING for cell in row[1:])]
    ran = in_order({number.study for number in frame if number.quantity == "measured_on"})
    shown.append("Measured on, commit, data")
    shown += [[human({}, study), *(_run(frame, machine, study) for machine in names)] for study in ran]
    return by_machine(frame, captions.TABLES["machines"], [""], shown, names, ("auto",))


def by_machine(
    frame: Frame, caption: str, header: list[str], rows: list, machines: list[str], widths: Sequence[str]
) -> Table:
    """Return a table of texts with a column per machine behind the first ones."""
    header = [*header, *(frame.machine_name(machine) for machine in machines)]
    return Table(caption, header, rows, tuple(range(len(header))), (*widths, *("1fr" for _ in machines)))


def _facts(frame: Frame, machine: str, names: tuple[str, ...]) -> str:
    keys = [f"{machine}.{name}" for name in names]
    texts = (frame.reason(key) or frame.text(key) for key in keys)
    return ", ".join(machine_name(text) for text in texts if text) or MISSING


def _run(frame: Frame, machine: str, study: str) -> str:
    facts = _facts(frame, machine, tuple(f"{study}.{name}" for name in ("measured_on", "commit", "dataset")))
    load, unlike = (frame.text(f"{machine}.{study}.{name}") for name in ("other_load", "unlike"))
    return "; ".join(filter(None, (facts, unlike, f"load {load}" if load else "")))


def _discarded(frame: Frame, machine: str) -> str:
    """Return how many blocks each study discarded, those with none together; or why that can't be known."""
    numbers = [number for number in frame if number.machine == machine and number.quantity == "discarded_blocks"]
    counts = {number.study: int(number.value) for number in numbers if number.known}
    if not counts:
        return ", ".join(dict.fromkeys(number.reason for number in numbers)) or MISSING
    some = [f"{count} ({human({}, study)})" for study, count in counts.items() if count]
    if len(some) < len(counts):
        some.append("0 in the other studies" if some else "0 in all studies")
    return ", ".join(some)
