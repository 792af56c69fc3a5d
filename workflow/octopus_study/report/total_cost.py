"""What figures and tables of the total cost share: mixes, methods and the time of several uses."""

from __future__ import annotations

from octopus_study.report.derive.total_cost import LADDER, Cost, shared_case
from octopus_study.report.labels import IMAGE_KERNELS, IMAGE_MIXES
from octopus_study.report.numbers import Numbers

STUDY = "total_cost"
NO_RUN = "No run of the study total_cost is at hand: older results lack it."
NO_TIMES = "No run of the study total_cost that is shown timed anything."
METHODS = (
    "lookup-published",
    "lookup-vectorised",
    "lookup-device",
    "thread-search",
    "block-metadata",
    "octopus",
)
TABLES = METHODS[:3]
PARTS = ("setup", "upload", "kernel", "download")
UNFAIR = LADDER


def prefix(numbers: Numbers, scope: str, mix: str, kernel: str) -> str:
    """Return the start of a workload's ids; empty where it wasn't measured."""
    pattern = rf"({scope}\.{STUDY}\.{mix}-{kernel}\.n\d+)\.octopus\.total\.host"
    found = [match[1] for match, number in numbers.matching(pattern) if number.value == number.value]
    return found[0] if found else ""


def workloads(numbers: Numbers, scope: str) -> dict[tuple[str, str], str]:
    """Return the measured (mix, kernel) pairs, each with the start of its ids."""
    pairs = [(mix, kernel) for kernel in IMAGE_KERNELS for mix in IMAGE_MIXES]
    found = {pair: prefix(numbers, scope, *pair) for pair in pairs}
    return {pair: start for pair, start in found.items() if start}


def measured(numbers: Numbers) -> list[str]:
    """Return the machines that measured some workload."""
    return [scope for scope in numbers.scopes(STUDY) if workloads(numbers, scope)]


def parts(numbers: Numbers, start: str, method: str) -> dict[str, float]:
    """Return the milliseconds of each step that a method has.

    Setup and copies are those of the mix, whatever the kernel, and the result's way back is the same for all methods.
    """
    mix = shared_case(start)
    back = [numbers.value(f"{mix}.{name}.download.host") for name in (method, "octopus")]
    found = {
        "setup": numbers.value(f"{mix}.{method}.setup.host"),
        "upload": numbers.value(f"{mix}.{method}.upload.host"),
        "kernel": numbers.value(f"{start}.{method}.kernel.host"),
        "download": next((value for value in back if value == value), back[0]),
    }
    return {part: value for part, value in found.items() if value == value}


def cost(numbers: Numbers, start: str, method: str) -> Cost | None:
    """Return what a method costs once and per use; None where its kernel or set-up was not measured."""
    found = parts(numbers, start, method)
    if "kernel" not in found or "setup" not in found:
        return None
    return Cost(found["setup"] + found.get("upload", 0.0), found["kernel"])
