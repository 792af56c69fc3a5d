"""What a figure or a table says about the run it shows: machine, data set, day."""

from __future__ import annotations

from octopus_study.report.frame import HERE
from octopus_study.report.labels import WORKLOADS
from octopus_study.report.numbers import Numbers

# From this share on, launches take most of a time.
LAUNCH_BOUND_SHARE = 0.5


def scope_name(numbers: Numbers, scope: str) -> str:
    """Return a machine's name; where this machine's run is shown too, say which is which."""
    name = numbers.text(f"{scope}.machine.name", scope)
    if scope == HERE:
        return f"{name} (this machine)"
    return f"{name} (reference)" if numbers.text(f"{HERE}.machine.id") else name


def scope_title(numbers: Numbers, scope: str, study: str) -> str:
    """Return machine, data set and day of a run."""
    dataset = numbers.text(f"{scope}.{study}.dataset")
    day = numbers.text(f"{scope}.{study}.measured_on")
    return ", ".join(part for part in (scope_name(numbers, scope), dataset, day) if part)


def generated_boxes(numbers: Numbers) -> str:
    """Say what the generated distributions are: synthetic boxes, and on which pixels."""
    return numbers.text("shown.distribution.generated")


def is_synthetic(numbers: Numbers, study: str) -> bool:
    """Say whether any number of a study rests on the generated stand-in for real data; a run that measured nothing has
    none."""
    stand_ins = [
        scope for scope in numbers.scopes(study) if numbers.text(f"{scope}.{study}.synthetic") == "yes"
    ]
    starts = tuple(f"{scope}.{study}." for scope in stand_ins)
    return bool(starts) and any(
        number.id.startswith(starts) and number.value == number.value for number in numbers
    )


def counts(numbers: Numbers, scope: str, quantity: str = "end_to_end", method: str = "octopus") -> list[int]:
    """Return the counts at which the stage timing study measured a quantity, ascending."""
    found = numbers.matching(rf"{scope}\.stage_timing\.visdrone\.n(\d+)\.{method}\.{quantity}\.\w+")
    return sorted({int(match[1]) for match, number in found if number.value == number.value})


def workloads(numbers: Numbers, scope: str) -> dict[str, str]:
    """Return the size distributions of a run, each with the start of its ids, in a fixed order."""
    found = numbers.matching(
        rf"({scope}\.distribution\.([\w-]+)\.n\d+)\.padding\.padding_waste\.deterministic"
    )
    prefixes = {match[2]: match[1] for match, _ in found}
    return {name: prefixes[name] for name in WORKLOADS if name in prefixes}


def kernel_layer(numbers: Numbers, scope: str) -> str:
    """Return the layer on which a machine times its kernels: device events on a GPU, the host clock on a
    CPU."""
    return "device" if numbers.text(f"{scope}.machine.kind") == "gpu" else "host"


def is_launch_bound(numbers: Numbers, key: str) -> bool:
    """Say whether launches alone take at least half of a time (for a kernel: as long as the kernel itself)."""
    return numbers.value(f"{key}.launch_share") >= LAUNCH_BOUND_SHARE


def bound_text(numbers: Numbers, key: str) -> str:
    """Return a kernel's time / bound time and the share of the write bound, or ``launch-bound``."""
    number = numbers.get(f"{key}.times_write-bound")
    if number is None:
        return ""
    if is_launch_bound(numbers, key):
        return "launch-bound"
    share = numbers.text(f"{key}.share_of_write-bound")
    return f"{number.text} ({share})"


def within_cache(numbers: Numbers, key: str) -> bool:
    """Say whether the write bound that a kernel is compared with fills its output partly within a cache."""
    parts = key.split(".")
    return numbers.text(".".join([*parts[:4], "write-bound", *parts[5:], "within_cache"])) == "yes"
